"""Does the model fit complete streams? Run through their own compensator, events are a Poisson process of rate one.

On the time scale Λ(t) = ∫ Σ_k λ_k the events of a stream arrive at rate one, and those of each type do on the scale of
their own Λ_k = ∫ λ_k. Streams are laid end to end, so that the gap that the end of a stream cuts short goes on in
the next stream: all gaps but the very last are then independent and exponential. N_k - Λ_k of a stream has mean zero.
Where the model says when streams end (``models/end.py``), so has the number of ends less the sum of probabilities.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations

import numpy as np
import torch
from numpy.typing import NDArray

from retrodict.evaluate.findings import Finding, distance_finding, mean_finding, raise_alarms, worst
from retrodict.events.batch import Batch, batches_by_length, make_batch
from retrodict.events.stream_set import StreamSet
from retrodict.models.base import Model
from retrodict.models.calendar_terms import gap_areas, gap_edges

PART = "model"
ENDS = "streams that end at an event"
KNOWN_ENDS = "ends at an event, more than expected"
_COUNTS, _COUNTS_BY_TYPE, _GAPS = 0.05, 0.1, 0.05  # how far counts (relative), and the distribution of gaps, may be off
_LACK = 0.2  # of the events of a type that a model expects: fewer by more look as if they were missing
_AT_ONCE = 16_384  # gaps of streams in one batch
_FEWEST = 10.0  # events of a type, expected or there, for a finding about it


@dataclass(frozen=True)
class Goodness:
    """``gaps`` [n] and ``gaps_by_type``: rescaled gaps of all events, and of each type's own events.

    ``counts`` and ``expected`` [N, K]: events of each stream and type, and Λ_k. ``at_end`` [N]: whether a stream ends
    exactly at an event. ``ends`` [N]: the sum of the probabilities that a stream's events were the last one; None for a
    model without an end atom.
    """

    types: tuple[str, ...]
    gaps: NDArray[np.float64]
    gaps_by_type: list[NDArray[np.float64]]
    counts: NDArray[np.int64]
    expected: NDArray[np.float64]
    at_end: NDArray[np.bool_]
    ends: NDArray[np.float64] | None = None

    def thinned(self, rates: NDArray[np.float64]) -> tuple[str, ...]:
        """Types that lack events as if they had gone missing at these rates [K], where others do not.

        A model expects fewer events itself where others are missing, so half of what a rate says is lack enough.
        """
        expected = self.expected.sum(0)
        lack = 1 - self.counts.sum(0) / np.maximum(expected, 1e-300)
        known, hidden = expected >= _FEWEST, rates >= _LACK / 2
        far = known & (lack >= np.where(hidden, np.maximum(_LACK, rates / 2), _LACK))
        if not far.any() or not np.array_equal(far, known & hidden) or np.array_equal(far, known):
            return ()
        return tuple(name for name, is_far in zip(self.types, far, strict=True) if is_far)

    def findings(self) -> list[Finding]:
        """Counts by type, gaps of all events and of each type's own, and how streams end."""
        off = self.counts - self.expected
        known = [
            k
            for k in range(len(self.types))
            if max(self.counts[:, k].sum(), self.expected[:, k].sum()) >= _FEWEST and self.expected[:, k].any()
        ]
        by_type = [
            mean_finding(
                PART, "events of a type, more than expected", off[:, k], self.expected[:, k],
                tolerance=_COUNTS_BY_TYPE, least=self.expected[:, k], of=self.types[k],
            )
            for k in known
        ]  # fmt: skip
        pooled = np.concatenate([np.zeros(0), *self.gaps_by_type])
        return [
            mean_finding(PART, "events, more than expected", off.sum(1), self.expected.sum(1), tolerance=_COUNTS,
                         least=self.expected.sum(1)),
            *worst(by_type),
            distance_finding(PART, "gaps, distance from exponential", -np.expm1(-self.gaps), tolerance=_GAPS),
            distance_finding(PART, "gaps of each type, the same", -np.expm1(-pooled), tolerance=_GAPS),
            mean_finding(PART, ENDS, self.at_end, tolerance=0.1, side=1, least=0.05) if self.ends is None else
            mean_finding(PART, KNOWN_ENDS, self.at_end - self.ends, self.ends, tolerance=_COUNTS),
        ]  # fmt: skip


@torch.no_grad()
def goodness(model: Model, streams: StreamSet) -> Goodness:
    """Rescaled gaps and counts of complete streams."""
    streams = model.matched(streams)
    rows = max(1, _AT_ONCE // (int(streams.lengths.max(initial=0)) + 1))
    areas = np.zeros((streams.num_events + len(streams), streams.num_types))  # [gaps of all streams, K]
    first = streams.offsets + np.arange(len(streams) + 1)
    ends = None if model.end_atom is None else np.zeros(len(streams))
    for index in batches_by_length(streams.lengths, rows):
        batch = make_batch(streams, index, dtype=model.dtype, device=model.device)
        found = _areas(model, batch).double().cpu().numpy()
        for row, i in enumerate(index):
            areas[first[i] : first[i + 1]] = found[row, : streams.lengths[i] + 1]
        if ends is not None and model.end_atom is not None:
            ends[index] = model.end_atom.expected(model, batch).cpu().numpy()
    ends_in = np.full(len(areas), -1)  # the type of the event that ends a gap; -1 at the end of a stream
    ends_in[np.delete(np.arange(len(areas)), first[1:] - 1)] = streams.event_types
    at_start = np.zeros(len(areas), dtype=bool)
    if model.start_atom is not None:  # an event at the start instant has a probability of its own, and no intensity
        some = streams.lengths > 0
        at_start[first[:-1][some]] = streams.event_times[streams.offsets[:-1][some]] == streams.starts[some]
        ends_in[at_start] = -1
    stream = np.repeat(np.arange(len(streams)), streams.lengths + 1)
    counts = np.zeros((len(streams), streams.num_types), dtype=np.int64)
    np.add.at(counts, (stream[ends_in >= 0], ends_in[ends_in >= 0]), 1)
    expected = np.add.reduceat(areas, first[:-1])
    passed = areas.cumsum(0)
    by_type = [np.diff(passed[ends_in == k, k], prepend=0.0) for k in range(streams.num_types)]
    gaps = np.diff(passed.sum(1)[ends_in >= 0], prepend=0.0)
    return Goodness(streams.types, gaps, by_type, counts, expected, _end_at_an_event(streams), ends)


def _areas(model: Model, batch: Batch) -> torch.Tensor:
    """∫ λ_k over every gap, [B, L+1, K]."""
    if model.calendar is None:
        return torch.stack([model.compensator(*gap) for gap in model.gaps(batch)], 1)
    return gap_areas(model, model.gap_states(batch), *gap_edges(batch), None).unflatten(0, batch.gaps.shape)


def _end_at_an_event(streams: StreamSet) -> NDArray[np.bool_]:
    """Whether the last event of each stream is exactly at its end, [N]."""
    result = np.zeros(len(streams), dtype=bool)
    some = (streams.lengths > 0) & (streams.durations > 0)
    result[some] = streams.event_times[streams.offsets[1:][some] - 1] == streams.ends[some]
    return result


@torch.no_grad()
def swapped_types(model: Model, streams: StreamSet, found: Goodness) -> tuple[str, str] | None:
    """Two types whose labels, exchanged, make the streams far more probable, and the model fit them.

    Only pairs of the four types whose counts are furthest off are tried.
    """
    streams = model.matched(streams)
    off = np.abs(found.counts.sum(0) - found.expected.sum(0)) / np.sqrt(found.expected.sum(0) + 1)
    before, best, pair = model.log_likelihood(streams).sum(), 5.0, None
    for a, b in combinations(np.sort(np.argsort(-off)[:4]).tolist(), 2):
        gain = float(model.log_likelihood(_exchange(streams, a, b)).sum() - before)
        if gain > best:
            best, pair = gain, (a, b)
    if pair is None:
        return None
    again = goodness(model, _exchange(streams, *pair)).findings()
    fits = not any(f.alarm and f.name != ENDS for f in raise_alarms(again))
    return (streams.types[pair[0]], streams.types[pair[1]]) if fits else None


def _exchange(streams: StreamSet, a: int, b: int) -> StreamSet:
    """The streams with the labels of two types exchanged."""
    table = np.arange(streams.num_types)
    table[[a, b]] = b, a
    return streams.replace(event_types=table[streams.event_types])
