"""Rows in any order into a checked stream set: group by stream, sort by time, test every event."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from retrodict.errors import DataError
from retrodict.events.io.request import Places, Request


class Grouping(NamedTuple):
    """How to put rows in order: ``order`` [E] (None: they are in order already), ``offsets`` [N+1]."""

    order: NDArray[np.int64] | None
    offsets: NDArray[np.int64]

    def apply(self, values: NDArray[Any]) -> NDArray[Any]:
        """The values [E] in stream and time order."""
        return values if self.order is None else values[self.order]


def group(codes: NDArray[np.int64], times: NDArray[Any], num_streams: int, request: Request) -> Grouping:
    """Group events by stream code and sort them by time; ties keep the order of their rows."""
    offsets = np.concatenate([[0], np.cumsum(np.bincount(codes, minlength=num_streams))])
    grouped = bool((codes[1:] >= codes[:-1]).all())
    order = None if grouped else np.argsort(codes, kind="stable")
    t = times if order is None else times[order]
    k = codes if order is None else codes[order]
    falls = (t[1:] < t[:-1]) & (k[1:] == k[:-1])
    if falls.any():
        count = len(np.unique(k[1:][falls]))
        request.notices.append(f"the events of {count} stream{'s' if count > 1 else ''} were not in time order; sorted")
        order = np.lexsort((times, codes))
    return Grouping(order, offsets.astype(np.int64))


def check_finite(times: NDArray[np.float64], places: Places) -> None:
    """Raise for the first time that is not finite."""
    remedy = "every event needs a finite time; drop or repair the row"
    places.refuse(~np.isfinite(times), lambda i: (f"time is {times[i]}", remedy))


def check_intervals(starts: NDArray[Any], ends: NDArray[Any], places: Places, show: Callable[[Any], str]) -> None:
    """Raise for the first stream where [start, end] is not an interval."""
    bad = ~(np.isfinite(starts) & np.isfinite(ends)) | (ends < starts)
    if not bad.any():
        return
    i = int(np.argmax(bad))
    if not (np.isfinite(starts[i]) and np.isfinite(ends[i])):
        problem, remedy = f"the interval [{starts[i]}, {ends[i]}] is not finite", "give finite start and end"
    else:
        problem = f"the stream ends at {show(ends[i])}, before its start {show(starts[i])}"
        remedy = "swap or correct start and end"
    where = np.flatnonzero(places.codes == i)
    row = int(places.rows[where[0]]) if len(where) else None
    raise DataError(problem, file=places.file, stream=places.ids[i], row=row, remedy=remedy)


def check_inside(
    times: NDArray[Any],
    starts: NDArray[Any],
    ends: NDArray[Any],
    places: Places,
    show: Callable[[Any], str],
    assumed: Mapping[str, str],
) -> None:
    """Raise for the first event outside its stream's [start, end]; ``assumed`` says where a bound comes from."""
    low, high = starts[places.codes], ends[places.codes]

    def explain(i: int) -> tuple[str, str]:
        side, relation, edge = ("start", "before", low[i]) if times[i] < low[i] else ("end", "after", high[i])
        note = f" ({side} was taken as {assumed[side]})" if side in assumed else ""
        problem = f"time {show(times[i])} lies {relation} the stream's {side} {show(edge)}{note}"
        return problem, f"pass {side}= so that it covers the time the stream was watched, or drop the event"

    places.refuse((times < low) | (times > high), explain)


def last_of_each(values: NDArray[Any], offsets: NDArray[np.int64]) -> NDArray[Any]:
    """The last value of each stream [N]; meaningless for empty streams."""
    padded = values if len(values) else np.zeros(1, values.dtype)
    return padded[np.maximum(offsets[1:] - 1, 0)]


def first_of_each(values: NDArray[Any], offsets: NDArray[np.int64]) -> NDArray[Any]:
    """The first value of each stream [N]; meaningless for empty streams."""
    padded = values if len(values) else np.zeros(1, values.dtype)
    return padded[np.minimum(offsets[:-1], len(padded) - 1)]
