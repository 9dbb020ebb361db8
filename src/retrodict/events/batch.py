"""Padded batches of streams on a device, grouped by length so that little is padding.

Times inside a batch are relative to each stream's start and stay float64; what models compute with are the
gaps between consecutive events, taken in float64 and only then rounded to the model's precision.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, fields

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from retrodict.events.stream_set import StreamSet
from retrodict.random import stream_keys


@dataclass(frozen=True)
class Batch:
    """B streams padded to the longest, L events.

    ``times`` [B, L] float64, since the start; padding repeats the duration.
    ``types`` [B, L] int64; padding is 0.
    ``mask`` [B, L] bool; true at real events.
    ``gaps`` [B, L+1]: time from the previous event (or the start) to event i, and, after the last event,
    to the end; zero beyond, so that padding adds nothing to an integral.
    ``durations`` [B] float64. ``starts`` [B] float64: when each stream starts on its own axis, which for dated streams
    counts from 1970. ``index`` [B]: which streams of the set these are. ``ids`` [B] int64: a number that follows from
    each stream's id alone.
    """

    times: Tensor
    types: Tensor
    mask: Tensor
    gaps: Tensor
    durations: Tensor
    starts: Tensor
    index: Tensor
    ids: Tensor

    @property
    def num_events(self) -> int:
        """Real events in the batch."""
        return int(self.mask.sum())

    def to(self, device: torch.device | str) -> Batch:
        """The same batch on another device."""
        return Batch(*(getattr(self, f.name).to(device, non_blocking=True) for f in fields(self)))


def make_batch(
    streams: StreamSet,
    index: NDArray[np.int64] | None = None,
    *,
    dtype: torch.dtype = torch.float32,
    device: torch.device | str = "cpu",
) -> Batch:
    """Pad the streams at ``index`` (all by default) into one batch."""
    index = np.arange(len(streams)) if index is None else np.asarray(index)
    lengths = streams.lengths[index]
    width = int(lengths.max(initial=0))
    column = np.arange(width + 1)
    mask = column[None, :width] < lengths[:, None]
    source = np.minimum(streams.offsets[index][:, None] + column[None, :width], max(streams.num_events - 1, 0))
    durations = streams.durations[index]
    if streams.num_events:
        times = np.where(mask, streams.event_times[source] - streams.starts[index][:, None], durations[:, None])
        types = np.where(mask, streams.event_types[source], 0)
    else:
        times = np.zeros((len(index), 0))
        types = np.zeros((len(index), 0), dtype=np.int64)
    edges = np.concatenate([np.zeros((len(index), 1)), times, durations[:, None]], axis=1)
    return Batch(
        times=torch.as_tensor(times, device=device),
        types=torch.as_tensor(types, device=device),
        mask=torch.as_tensor(mask, device=device),
        gaps=torch.as_tensor(np.diff(edges, axis=1), device=device).to(dtype),
        durations=torch.as_tensor(durations, device=device),
        starts=torch.as_tensor(streams.starts[index] + streams.axis.since_1970, device=device),
        index=torch.as_tensor(index, device=device),
        ids=stream_keys(0, (streams.ids[i] for i in index)).to(device),
    )


def batches_by_length(
    lengths: NDArray[np.int64], batch_size: int, generator: np.random.Generator | None = None
) -> list[NDArray[np.int64]]:
    """Indices of batches of streams of like length.

    With a generator the order is random: streams of equal length are shuffled before they are grouped, and
    so are the batches, so that every epoch sees other batches. Without one the order is by length.
    """
    if generator is None:
        order = np.argsort(lengths, kind="stable")
    else:
        jitter = generator.random(len(lengths))
        order = np.lexsort((jitter, lengths))
    groups = [order[i : i + batch_size] for i in range(0, len(order), batch_size)]
    if generator is not None:
        generator.shuffle(groups)
    return groups


def iterate_batches(
    streams: StreamSet,
    batch_size: int = 256,
    *,
    dtype: torch.dtype = torch.float32,
    device: torch.device | str = "cpu",
) -> Iterator[Batch]:
    """All streams once, in batches of like length."""
    for index in batches_by_length(streams.lengths, batch_size):
        yield make_batch(streams, index, dtype=dtype, device=device)
