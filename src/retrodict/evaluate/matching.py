"""Pair each imputed stream with the true one, and match their events within a time tolerance."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Sequence
from typing import NamedTuple, TypeAlias

import numpy as np
from numba import njit
from numpy.typing import NDArray

from retrodict.decode.kernels import Floats, Ints
from retrodict.decode.transport import Cost, Groups, align_groups, check_streams, count_types, group_by_type
from retrodict.errors import DataError
from retrodict.events.results import TIMES
from retrodict.events.stream import EventStream
from retrodict.events.stream_set import StreamSet

Streams: TypeAlias = StreamSet | Sequence[EventStream]


class Pairs(NamedTuple):
    """N pairs of streams over K types, and their events in N * K groups."""

    truth: list[EventStream]
    imputed: list[EventStream]
    types: tuple[str, ...]
    true_groups: Groups
    imputed_groups: Groups

    def counts(self, groups: Groups) -> NDArray[np.int64]:
        """Events of each stream and type [N, K]."""
        return np.diff(groups.offsets).reshape(len(self.truth), len(self.types))

    def align(self, cost: Cost) -> NDArray[np.int64]:
        """For each imputed event (in the order of its groups) the true event aligned to it, or -1."""
        return align_groups(self.imputed_groups, self.true_groups, cost)

    def aligned_times(self, cost: Cost) -> NDArray[np.float64]:
        """For each imputed event (stream by stream, in time) the time of the true event aligned to it, or NaN."""
        match = self.align(cost)
        lengths = np.array([len(s) for s in self.imputed])
        place = np.repeat(np.cumsum(lengths) - lengths, lengths) + self.imputed_groups.place
        when = np.full(len(match), np.nan)
        when[place[match >= 0]] = self.true_groups.times[match[match >= 0]]
        return when


def pair_streams(truth: Streams, imputed: Streams) -> Pairs:
    """Pair stream sets by id and type name, lists by position; every true stream needs its partner.

    A stream of an imputed set that the true set lacks is one in which nothing was missing.
    """
    names: tuple[str, ...] | None = None
    if isinstance(truth, StreamSet) and isinstance(imputed, StreamSet):
        names = truth.types + tuple(name for name in imputed.types if name not in truth.types)
        truth, imputed = truth.with_types(names), imputed.with_types(names)
        truth, imputed = _same_streams(truth, on_axis_of(truth, imputed))
    true, other = check_streams(truth, "truth"), check_streams(imputed, "imputed")
    if len(true) != len(other):
        remedy = "pass one imputed stream for each true one"
        raise DataError(f"{len(true)} true streams but {len(other)} imputed ones", remedy=remedy)
    if not true:
        raise DataError("there are no streams to score", remedy="pass at least one stream")
    if names is None:
        names = tuple(str(k) for k in range(count_types(true, other)))
    return Pairs(true, other, names, group_by_type(true, len(names)), group_by_type(other, len(names)))


def on_axis_of(truth: StreamSet, imputed: StreamSet) -> StreamSet:
    """The imputed streams in the truth's unit of time, counted from the same instant."""
    refuse_dates_and_numbers(truth, imputed)
    if None in (truth.axis.unit, imputed.axis.unit):
        return imputed
    moved, own = imputed.with_axis(truth.axis), imputed.columns
    intervals = {name: imputed.axis.convert(own[name], truth.axis) for name in TIMES if name in own}
    return moved.replace(columns={**moved.columns, **intervals}, source=moved.source)


def refuse_dates_and_numbers(truth: StreamSet, imputed: StreamSet) -> None:
    """Raise where one of the two has dates as times and the other numbers."""
    if truth.axis.is_calendar != imputed.axis.is_calendar:
        has = ("dates", "numbers") if truth.axis.is_calendar else ("numbers", "dates")
        remedy = "give both as dates, or both as numbers"
        raise DataError(f"the truth has {has[0]} as times, the imputation {has[1]}", remedy=remedy)


def found_among(events: StreamSet, others: StreamSet) -> NDArray[np.bool_]:
    """Which events stand among others, [E]: same stream, time and type, and each of the others stands for one event."""
    left = Counter(_keys(others))
    found = np.zeros(events.num_events, dtype=bool)
    for place, key in enumerate(_keys(events)):
        if left[key] > 0:
            left[key] -= 1
            found[place] = True
    return found


def _keys(streams: StreamSet) -> list[tuple[Hashable, ...]]:
    """Stream, time and type of each event: dates as instants, whatever the unit that they are counted in."""
    axis, times = streams.axis, streams.event_times
    when = axis.to_instants(times) if axis.is_calendar else times
    owners, types = streams.stream_of_event.tolist(), streams.event_types.tolist()
    return [(streams.ids[i], t, streams.types[k]) for i, t, k in zip(owners, when.tolist(), types, strict=True)]


def _same_streams(truth: StreamSet, imputed: StreamSet) -> tuple[StreamSet, StreamSet]:
    """Both sets with the streams of either, in one order; only the truth may lack some."""
    position = {name: place for place, name in enumerate(imputed.ids)}
    for name in truth.ids:
        if name not in position:
            remedy = "impute every stream, an empty one if nothing is missing from it"
            raise DataError("the truth has this stream, the imputation has not", stream=name, remedy=remedy)
    known = set(truth.ids)
    more = [place for place, name in enumerate(imputed.ids) if name not in known]
    truth = truth.replace(
        offsets=np.concatenate([truth.offsets, np.full(len(more), truth.num_events)]),
        starts=np.concatenate([truth.starts, imputed.starts[more]]),
        ends=np.concatenate([truth.ends, imputed.ends[more]]),
        ids=[*truth.ids, *(imputed.ids[place] for place in more)],
    )
    return truth, imputed[[position[name] for name in truth.ids]]


@njit(cache=True)
def count_within(imputed: Floats, imputed_offsets: Ints, true: Floats, true_offsets: Ints, tolerance: float) -> Ints:
    """Size [G] of the largest matching in each group of events at most ``tolerance`` apart.

    Matching greedily in time order is optimal, since the events in reach of a later event never start earlier.
    """
    matched = np.zeros(len(imputed_offsets) - 1, np.int64)
    for group in range(len(matched)):
        i, j = imputed_offsets[group], true_offsets[group]
        while i < imputed_offsets[group + 1] and j < true_offsets[group + 1]:
            if abs(imputed[i] - true[j]) <= tolerance:
                matched[group] += 1
                i += 1
                j += 1
            elif imputed[i] < true[j]:
                i += 1
            else:
                j += 1
    return matched
