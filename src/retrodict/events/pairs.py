"""Batches of complete streams of which it is known what was observed: what a proposal is trained and scored on."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from retrodict.events.batch import Batch, make_batch
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

    def to(self, device: torch.device | str) -> PairBatch:
        """The same batch on another device."""
        return PairBatch(self.complete.to(device), self.missing.to(device), self.observed.to(device))


def make_pairs(
    observed: StreamSet,
    missing: StreamSet,
    index: NDArray[np.int64] | None = None,
    *,
    dtype: torch.dtype = torch.float32,
    device: torch.device | str = "cpu",
) -> PairBatch:
    """Pad the streams at ``index`` (all by default); both sets hold the same streams."""
    index = np.arange(len(observed)) if index is None else np.asarray(index)
    complete, is_missing = combine(observed[index], missing[index])
    batch = make_batch(complete, dtype=dtype, device=device)
    flags = torch.zeros_like(batch.mask)
    flags[batch.mask] = torch.as_tensor(is_missing, device=device)
    seen = make_batch(observed, index, dtype=dtype, device=device)
    return PairBatch(replace(batch, index=seen.index), flags, seen)
