"""Scores of imputed streams against the truth: what was missing, and what was put in its place.

>>> from retrodict.events.stream import EventStream
>>> truth = [EventStream([1.0, 4.0], [0, 1], end=5.0)]
>>> imputed = [EventStream([1.5], [0], end=5.0)]
>>> transport_score(truth, imputed, cost=1.0).distance_per_event
0.75
>>> event_score(truth, imputed, tolerance=0.5).recall
0.5
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from retrodict.decode.transport import Cost, CostLike, as_cost
from retrodict.errors import DataError
from retrodict.evaluate.matching import Pairs, Streams, count_within, pair_streams

INTERVAL_LEVEL = 0.9  # of the intervals of a consensus, unless it was told otherwise


def _ratio(part: float, whole: float) -> float:
    return float(part) / float(whole) if whole else float("nan")


@dataclass(frozen=True)
class TransportScore:
    """The optimal transport distance at one cost, by stream and type: all arrays [N, K].

    The two terms of eq. (decomp), divided by the number of true missing events, are the axes of fig. eval-5.
    """

    cost: Cost
    inserted: NDArray[np.int64]
    deleted: NDArray[np.int64]
    moved: NDArray[np.float64]
    missing: NDArray[np.int64]

    @property
    def distance(self) -> NDArray[np.float64]:
        """C_insert * inserted + C_delete * deleted + moved, [N, K]."""
        return self.cost.insert * self.inserted + self.cost.delete * self.deleted + self.moved

    @property
    def distance_by_stream(self) -> NDArray[np.float64]:
        """Distance of each stream [N]: what a paired test compares."""
        return self.distance.sum(axis=1)

    @property
    def distance_per_event(self) -> float:
        """Total distance over true missing events (NaN if nothing is missing)."""
        return _ratio(self.distance.sum(), self.missing.sum())

    @property
    def nothing_per_event(self) -> float:
        """What predicting nothing would have: C_insert for each (NaN if nothing is missing)."""
        return self.cost.insert if self.missing.any() else float("nan")

    @property
    def edits_per_event(self) -> float:
        """Insertions and deletions over true missing events: the x-axis of fig. eval-5."""
        return _ratio((self.inserted + self.deleted).sum(), self.missing.sum())

    @property
    def moved_per_event(self) -> float:
        """Time moved over true missing events: the y-axis of fig. eval-5."""
        return _ratio(self.moved.sum(), self.missing.sum())

    def of_type(self, type: int) -> TransportScore:
        """The same score for the events of one type alone."""
        k = slice(type, type + 1)
        return TransportScore(self.cost, self.inserted[:, k], self.deleted[:, k], self.moved[:, k], self.missing[:, k])

    def to_dict(self) -> dict[str, float]:
        """The totals, as plain numbers."""
        sums = ("missing", "distance", "inserted", "deleted", "moved")
        ratios = ("distance_per_event", "nothing_per_event", "edits_per_event", "moved_per_event")
        return {
            **{"insert_cost": self.cost.insert, "delete_cost": self.cost.delete},
            **{name: getattr(self, name).sum().item() for name in sums},
            **{name: getattr(self, name) for name in ratios},
        }


@dataclass(frozen=True)
class EventScore:
    """Events found within a time tolerance: matched one to one, as many as possible, type by type."""

    tolerance: float
    matched: int
    imputed: int
    missing: int

    @property
    def precision(self) -> float:
        """Share of the imputed events that are matched (NaN if there are none)."""
        return _ratio(self.matched, self.imputed)

    @property
    def recall(self) -> float:
        """Share of the true missing events that are matched (NaN if there are none)."""
        return _ratio(self.matched, self.missing)

    @property
    def f1(self) -> float:
        """Harmonic mean of precision and recall (NaN if both streams are empty)."""
        return _ratio(2 * self.matched, self.imputed + self.missing)

    def to_dict(self) -> dict[str, float]:
        """Counts and ratios, as plain numbers."""
        return asdict(self) | {"precision": self.precision, "recall": self.recall, "f1": self.f1}


@dataclass(frozen=True)
class CountError:
    """The number of imputed events minus the true number: per stream in total, and per stream and type."""

    bias: float
    mean_absolute: float
    mean_absolute_by_type: list[float]


@dataclass(frozen=True)
class Coverage:
    """The share of intervals that hold the true time, among imputed events aligned to a true one at ``cost``."""

    covered: float
    mean_width: float
    aligned: int
    cost: Cost


@dataclass(frozen=True)
class Scores:
    """Everything that ``retrodict evaluate`` reports; lists are in the order of the given costs."""

    types: tuple[str, ...]
    transport: list[TransportScore]
    events: EventScore
    events_by_type: list[EventScore]
    counts: CountError
    coverage: Coverage | None

    def to_dict(self) -> dict[str, Any]:
        """Nested plain values, ready for JSON."""
        return {
            "transport": [
                s.to_dict() | {"by_type": {t: s.of_type(k).to_dict() for k, t in enumerate(self.types)}}
                for s in self.transport
            ],
            "events": self.events.to_dict()
            | {"by_type": {t: s.to_dict() for t, s in zip(self.types, self.events_by_type, strict=True)}},
            "counts": asdict(self.counts),
            "coverage": None if self.coverage is None else asdict(self.coverage) | {"nominal": INTERVAL_LEVEL},
        }


def score(truth: Streams, imputed: Streams, costs: Iterable[CostLike], tolerance: float) -> Scores:
    """Score imputed missing events against the true ones, at several costs and one time tolerance.

    Stream sets are paired by stream id and type name, lists by position. Coverage is scored at the first
    cost, where the imputed streams carry intervals (columns earliest and latest).
    """
    pairs = pair_streams(truth, imputed)
    prices = [as_cost(cost) for cost in costs]
    if not prices:
        raise DataError("no costs were given", remedy="pass at least one cost")
    by_type = _event_scores(pairs, tolerance)
    has_intervals = any("earliest" in s.columns and "latest" in s.columns for s in pairs.imputed if len(s))
    return Scores(
        pairs.types,
        [_transport_score(pairs, cost) for cost in prices],
        _sum_event_scores(by_type, tolerance),
        by_type,
        _count_error(pairs),
        _coverage(pairs, prices[0]) if has_intervals else None,
    )


def transport_score(truth: Streams, imputed: Streams, cost: CostLike) -> TransportScore:
    """Distance and its two terms, by stream and type."""
    return _transport_score(pair_streams(truth, imputed), as_cost(cost))


def event_score(truth: Streams, imputed: Streams, tolerance: float) -> EventScore:
    """Precision, recall and F1 of events within ``tolerance`` of a true event of their type."""
    return _sum_event_scores(_event_scores(pair_streams(truth, imputed), tolerance), tolerance)


def count_error(truth: Streams, imputed: Streams) -> CountError:
    """How far the number of imputed events is from the number that is missing."""
    return _count_error(pair_streams(truth, imputed))


def interval_coverage(truth: Streams, imputed: Streams, cost: CostLike) -> Coverage:
    """How often the intervals of imputed events (columns earliest, latest) hold the time aligned to them."""
    return _coverage(pair_streams(truth, imputed), as_cost(cost))


def _transport_score(pairs: Pairs, cost: Cost) -> TransportScore:
    match = pairs.align(cost)
    aligned = match >= 0
    missing, imputed = pairs.counts(pairs.true_groups), pairs.counts(pairs.imputed_groups)
    cell = np.repeat(np.arange(missing.size), imputed.ravel())[aligned]
    shift = np.abs(pairs.imputed_groups.times[aligned] - pairs.true_groups.times[match[aligned]])
    found = np.bincount(cell, minlength=missing.size).reshape(missing.shape)
    moved = np.bincount(cell, weights=shift, minlength=missing.size).astype(np.float64)
    return TransportScore(cost, missing - found, imputed - found, moved.reshape(missing.shape), missing)


def _event_scores(pairs: Pairs, tolerance: float) -> list[EventScore]:
    if not (np.isfinite(tolerance) and tolerance >= 0):
        raise DataError(f"tolerance is {tolerance}", remedy="pass a time difference of zero or more")
    imputed, true = pairs.imputed_groups, pairs.true_groups
    matched = count_within(imputed.times, imputed.offsets, true.times, true.offsets, float(tolerance))
    matched = matched.reshape(-1, len(pairs.types)).sum(axis=0) if pairs.types else np.zeros(0, np.int64)
    totals = np.stack([matched, pairs.counts(imputed).sum(axis=0), pairs.counts(true).sum(axis=0)], axis=1)
    return [EventScore(float(tolerance), *total) for total in totals.tolist()]


def _sum_event_scores(scores: list[EventScore], tolerance: float) -> EventScore:
    totals = (sum(getattr(s, name) for s in scores) for name in ("matched", "imputed", "missing"))
    return EventScore(float(tolerance), *totals)


def _count_error(pairs: Pairs) -> CountError:
    error = pairs.counts(pairs.imputed_groups) - pairs.counts(pairs.true_groups)
    total = error.sum(axis=1)
    return CountError(float(total.mean()), float(np.abs(total).mean()), np.abs(error).mean(axis=0).tolist())


def _coverage(pairs: Pairs, cost: Cost) -> Coverage:
    low, high = (np.concatenate([_column(s, name) for s in pairs.imputed]) for name in ("earliest", "latest"))
    when = pairs.aligned_times(cost)
    aligned = ~np.isnan(when)
    inside = (low <= when) & (when <= high)
    width = _ratio((high - low).sum(), len(low))
    return Coverage(_ratio(inside.sum(), aligned.sum()), width, int(aligned.sum()), cost)


def _column(stream: Any, name: str) -> NDArray[np.float64]:
    if len(stream) and name not in stream.columns:
        remedy = "score streams that rd.consensus returned, which carry earliest and latest"
        raise DataError(f"the imputed stream has no column {name!r}", stream=stream.id, remedy=remedy)
    return np.asarray(stream.columns[name] if len(stream) else [], dtype=np.float64)
