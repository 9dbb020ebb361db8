"""Batches of complete streams with a mark on each missing event: a proposal is trained and scored on them."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from retrodict.events.batch import Batch, Packed
from retrodict.events.combine import combine
from retrodict.events.stream_set import StreamSet


@dataclass(frozen=True)
class PairBatch:
    """x ⊔ z and x for B streams.

    ``complete``: all events, L wide. ``missing`` [B, L]: which of them are in z. ``observed``: x alone.
    """

    complete: Batch
    missing: Tensor
    observed: Batch

    @property
    def index(self) -> Tensor:
        """Which streams of the set these are, [B]."""
        return self.complete.index

    @property
    def durations(self) -> Tensor:
        """[B]."""
        return self.complete.durations

    @property
    def num_events(self) -> int:
        """Missing events in the batch."""
        return int(self.missing.sum())

    def rows(self, which: slice) -> PairBatch:
        """Some of its streams."""
        return PairBatch(self.complete.rows(which), self.missing[which], self.observed.rows(which))


class PackedPairs:
    """Complete streams with a mark on each missing event, on a device, to be padded into batches there.

    ``missing`` [E] says which events are in z; at equal times observed ones come first (``combine``).
    """

    def __init__(self, complete: StreamSet, missing: NDArray[np.bool_], device: torch.device | str = "cpu") -> None:
        self.complete = Packed(complete, device)
        self.observed = Packed(complete.keep(~missing), device)
        self.missing = torch.tensor(missing, device=device)

    def batch(self, index: NDArray[np.int64], dtype: torch.dtype = torch.float32) -> PairBatch:
        """Pad the streams at ``index``."""
        complete = self.complete.batch(index, dtype)
        mask, source = self.complete.places(index, complete.index)
        facts = {name: getattr(complete, name) for name in ("starts", "ids", "durations")}  # one tensor for both
        return PairBatch(complete, mask & self.missing[source], replace(self.observed.batch(index, dtype), **facts))


def make_pairs(
    observed: StreamSet, missing: StreamSet, *, dtype: torch.dtype = torch.float32, device: torch.device | str = "cpu"
) -> PairBatch:
    """All streams, padded; both sets hold the same ones."""
    return PackedPairs(*combine(observed, missing), device).batch(np.arange(len(observed)), dtype)


def pairs_of_draws(observed: Batch, times: Tensor, types: Tensor, counts: Tensor) -> PairBatch:
    """x with each of its drawn z, B S streams in all: stream by stream, draw by draw.

    ``times`` and ``types`` [B, S, C] hold each draw's events in order of time, the first ``counts`` [B, S] of them.
    """
    B, S, _ = times.shape
    repeated = Batch(*(getattr(observed, f.name).repeat_interleave(S, 0) for f in fields(observed)))
    counts = counts.reshape(B * S, 1)
    width = int(counts.max()) if B * S else 0
    drawn = torch.arange(width, device=counts.device) < counts
    at = torch.where(drawn, times.reshape(B * S, -1)[:, :width], torch.inf)
    # Padding goes last; of two events at the same time the observed one comes first.
    both = torch.cat([torch.where(repeated.mask, repeated.times, torch.inf), at], 1)
    order = both.argsort(dim=1, stable=True)[:, : int((repeated.mask.sum(1) + counts[:, 0]).max()) if B * S else 0]

    def ordered(seen: Tensor, new: Tensor) -> Tensor:
        return torch.cat([seen, new], 1).gather(1, order)

    mask = ordered(repeated.mask, drawn)
    sorted_times = torch.where(mask, both.gather(1, order), repeated.durations[:, None])
    zero = torch.zeros_like(repeated.durations[:, None])
    complete = replace(
        repeated,
        times=sorted_times,
        types=torch.where(mask, ordered(repeated.types, types.reshape(B * S, -1)[:, :width]), 0),
        mask=mask,
        gaps=torch.cat([zero, sorted_times, repeated.durations[:, None]], 1).diff(dim=1).to(observed.gaps.dtype),
    )
    return PairBatch(complete, ordered(torch.zeros_like(repeated.mask), drawn), repeated)
