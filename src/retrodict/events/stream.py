"""One stream of typed events on [start, end].

>>> stream = EventStream([0.5, 1.25], [0, 2], end=2.0, id="taxi-7")
>>> len(stream), stream.duration
(2, 2.0)
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from typing import Any, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from retrodict.errors import DataError, DataNotice


class EventStream:
    """Events k@t in time order: ``times`` [N] float64, ``types`` [N] int64 (indices into a vocabulary).

    An event may sit exactly at either end; ties keep their order. ``columns`` holds further values, one per
    event, that are carried along and given back. Streams are values: their arrays are read-only.
    """

    __slots__ = ("columns", "end", "id", "start", "times", "types")
    times: NDArray[np.float64]
    types: NDArray[np.int64]
    start: float
    end: float
    id: Hashable | None
    columns: Mapping[str, NDArray[Any]]

    def __init__(
        self,
        times: ArrayLike | Sequence[float],
        types: ArrayLike | Sequence[int],
        start: float = 0.0,
        end: float | None = None,
        id: Hashable | None = None,
        columns: Mapping[str, ArrayLike] | None = None,
    ) -> None:
        def fail(problem: str, remedy: str) -> DataError:
            return DataError(problem, stream=id, remedy=remedy)

        if end is None:
            raise fail("a stream needs an explicit end", "pass end=T, the time until which the stream was watched")
        t, k = np.asarray(times), np.asarray(types)
        for name, array in (("times", t), ("types", k)):
            if array.ndim != 1:
                problem = f"{name} must be a flat list, but have shape {array.shape}"
                raise fail(problem, f"pass one-dimensional {name}, one entry for each event")
        k = k if k.size else k.astype(np.int64)
        if not np.issubdtype(k.dtype, np.integer):
            raise fail(
                f"types must be integers (indices into the type vocabulary), not {k.dtype}",
                "map names to indices, or build streams with rd.read_events, which does it for you",
            )
        try:
            t = t.astype(np.float64)
        except (TypeError, ValueError) as error:
            remedy = "convert them to float, or read datetimes with rd.read_events"
            raise fail(f"times must be numbers, not {t.dtype}", remedy) from error
        if len(t) != len(k):
            raise fail(f"{len(t)} times but {len(k)} types", "give exactly one type for each time")
        extra = {name: np.asarray(values) for name, values in (columns or {}).items()}
        for name, values in extra.items():
            if values.shape[:1] != (len(t),):
                problem = f"column {name!r} has shape {values.shape}, expected {len(t)} rows"
                raise fail(problem, "give exactly one value for each event")
        check_events(t, k, float(start), float(end), stream=id)
        if (np.diff(t) < 0).any():
            warnings.warn(f"stream {id!r}: events were not in time order; sorted", DataNotice, stacklevel=2)
            order = np.argsort(t, kind="stable")
            t, k = t[order], k[order]
            extra = {name: values[order] for name, values in extra.items()}
        self._set(t, k.astype(np.int64), float(start), float(end), id, extra)

    @classmethod
    def trusted(
        cls,
        times: NDArray[np.float64],
        types: NDArray[np.int64],
        start: float,
        end: float,
        id: Hashable | None = None,
        columns: Mapping[str, NDArray[Any]] | None = None,
    ) -> EventStream:
        """Wrap arrays that were validated already (no copy, no check)."""
        stream = object.__new__(cls)
        stream._set(times, types, start, end, id, columns or {})
        return stream

    def _set(self, times: Any, types: Any, start: float, end: float, id: Any, columns: Any) -> None:
        for array in (times, types):
            array.flags.writeable = False
        self.times, self.types, self.columns = times, types, columns
        self.start, self.end, self.id = start, end, id

    @property
    def duration(self) -> float:
        """Length of [start, end]."""
        return self.end - self.start

    def __len__(self) -> int:
        return len(self.times)

    def __iter__(self) -> Iterator[tuple[float, int]]:
        return zip(self.times.tolist(), self.types.tolist(), strict=True)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, EventStream):
            return NotImplemented
        return (
            (self.start, self.end, self.id) == (other.start, other.end, other.id)
            and np.array_equal(self.times, other.times)
            and np.array_equal(self.types, other.types)
            and self.columns.keys() == other.columns.keys()
            and all(same_values(v, other.columns[n]) for n, v in self.columns.items())
        )

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        name = "" if self.id is None else f" {self.id!r}"
        return f"<EventStream{name}: {len(self)} events on [{self.start:g}, {self.end:g}]>"

    def keep(self, mask: NDArray[np.bool_]) -> EventStream:
        """The stream with only the events where ``mask`` [N] is true, on the same interval."""
        return EventStream.trusted(
            self.times[mask],
            self.types[mask],
            self.start,
            self.end,
            self.id,
            {name: values[mask] for name, values in self.columns.items()},
        )


def same_values(one: NDArray[Any], two: NDArray[Any]) -> bool:
    """Whether two columns are equal, where a missing value (NaN, NaT) equals a missing value."""
    missing = one.dtype.kind in "fcmM" and two.dtype.kind in "fcmM"
    return np.array_equal(one, two, equal_nan=missing)


def check_events(
    times: NDArray[np.float64],
    types: NDArray[Any],
    start: float,
    end: float,
    *,
    stream: Hashable | None = None,
    num_types: int | None = None,
) -> None:
    """Raise a DataError for the first event that cannot be in the stream."""

    def refuse(bad: NDArray[np.bool_], problem: Callable[[int], str], remedy: str) -> None:
        if bad.any():
            i = int(np.argmax(bad))
            raise DataError(problem(i), stream=stream, row=i + 1, remedy=remedy)

    if not (np.isfinite(start) and np.isfinite(end)):
        remedy = "give finite start and end times"
        raise DataError(f"the interval [{start}, {end}] is not finite", stream=stream, remedy=remedy)
    if end < start:
        problem = f"the stream ends at {end:g}, before its start {start:g}"
        raise DataError(problem, stream=stream, remedy="swap or correct start and end")
    finite = "every event needs a finite time; drop or repair the row"
    refuse(~np.isfinite(times), lambda i: f"time is {times[i]}", finite)
    outside, interval = (times < start) | (times > end), f"[{start:.12g}, {end:.12g}]"
    widen = "widen start/end to the time the stream was watched, or drop the event"
    refuse(outside, lambda i: f"time {times[i]:.12g} lies outside {interval}", widen)
    unknown = (types < 0) | (types >= (np.inf if num_types is None else num_types))
    known = "" if num_types is None else f"; known types are 0 to {num_types - 1}"
    correct = "correct the type, or add it to the vocabulary"
    refuse(unknown, lambda i: f"unknown type {types[i]}{known}", correct)


T = TypeVar("T", bound=Hashable)


def first_repeat(values: Sequence[T]) -> T | None:
    """The first value that is there twice, if any."""
    if len(set(values)) == len(values):
        return None
    seen: set[T] = set()
    return next(v for v in values if v in seen or seen.add(v))  # type: ignore[func-returns-value]
