"""Padded batches of streams on a device, grouped by length so that little is padding.

Times inside a batch are relative to each stream's start and stay float64; models compute with the
gaps between consecutive events, which are taken in float64 and then rounded to the model's precision.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, fields, replace

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from retrodict.events.stream_set import StreamSet


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
    each stream's id alone. ``begins`` [B] float64: where the first gap begins, since the start; zero, unless what came
    before was read already.
    """

    times: Tensor
    types: Tensor
    mask: Tensor
    gaps: Tensor
    durations: Tensor
    starts: Tensor
    index: Tensor
    ids: Tensor
    begins: Tensor

    @property
    def num_events(self) -> int:
        """Real events in the batch."""
        return int(self.mask.sum())

    def rows(self, which: slice) -> Batch:
        """Some of its streams."""
        return Batch(*(getattr(self, f.name)[which] for f in fields(self)))


class Packed:
    """Streams as flat tensors on a device, to be padded into batches there.

    Their lengths are known on the host too, so that no code has to wait for the device.
    """

    def __init__(self, streams: StreamSet, device: torch.device | str = "cpu") -> None:
        self.lengths = streams.lengths
        since_start = streams.event_times - np.repeat(streams.starts, self.lengths)
        self.times = torch.tensor(since_start, device=device)
        self.types = torch.tensor(streams.event_types, device=device)
        self.first = torch.tensor(streams.offsets[:-1], device=device)
        self.counts = torch.tensor(self.lengths, device=device)
        self.durations = torch.tensor(streams.durations, device=device)
        self.starts = torch.tensor(streams.starts + streams.axis.since_1970, device=device)
        self.ids = torch.tensor(streams.id_keys, device=device)

    def batch(self, index: NDArray[np.int64], dtype: torch.dtype = torch.float32) -> Batch:
        """Pad the streams at ``index`` into one batch."""
        which = torch.tensor(index, dtype=torch.int64).to(self.times.device, non_blocking=True)
        mask, source = self.places(index, which)
        durations = self.durations[which]
        times = torch.where(mask, self.times[source], durations[:, None])
        types = torch.where(mask, self.types[source], 0)
        edges = torch.cat([torch.zeros_like(durations[:, None]), times, durations[:, None]], 1)
        return Batch(
            times=times,
            types=types,
            mask=mask,
            gaps=edges.diff(dim=1).to(dtype),
            durations=durations,
            starts=self.starts[which],
            index=which,
            ids=self.ids[which],
            begins=torch.zeros_like(durations),
        )

    def places(self, index: NDArray[np.int64], which: Tensor) -> tuple[Tensor, Tensor]:
        """The places of a padded batch that hold an event, and their positions in the flat tensors, [B, L] each."""
        width = int(self.lengths[index].max(initial=0))
        column = torch.arange(width, device=which.device)
        mask = column < self.counts[which][:, None]
        return mask, torch.where(mask, self.first[which][:, None] + column, 0)


def make_batch(
    streams: StreamSet,
    index: NDArray[np.int64] | None = None,
    *,
    dtype: torch.dtype = torch.float32,
    device: torch.device | str = "cpu",
) -> Batch:
    """Pad the streams at ``index`` (all by default) into one batch."""
    index = np.arange(len(streams)) if index is None else np.asarray(index)
    once, where = np.unique(index, return_inverse=True)
    batch = Packed(streams[once], device).batch(where.reshape(-1), dtype)
    return replace(batch, index=torch.as_tensor(index, device=device))


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
    streams: StreamSet, batch_size: int = 256, *, dtype: torch.dtype = torch.float32, device: torch.device | str = "cpu"
) -> Iterator[Batch]:
    """All streams once, in batches of like length."""
    for index in batches_by_length(streams.lengths, batch_size):
        yield make_batch(streams, index, dtype=dtype, device=device)
