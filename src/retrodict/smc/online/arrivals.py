"""What is fed to an online run, stream by stream, checked before anything is done with it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Generic, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from retrodict.errors import DataError, show
from retrodict.events.io.moments import Moment, on_axis
from retrodict.events.stream import EventStream
from retrodict.events.stream_set import StreamSet, describe_types
from retrodict.events.time_axis import TimeAxis
from retrodict.models.base import Model
from retrodict.proposals.smoothers import type_names

Name = str | int
Events = Mapping[Name, Iterable[tuple[Moment, str | int]]]
_LONGEST_NAME = 1000
T = TypeVar("T")


class Mark(NamedTuple):
    """A place in a stream that particles have come to."""

    time: float = 0.0  # since the start of the stream
    number: int = 0  # how many segments lie behind it


class Kept(NamedTuple, Generic[T]):
    """One thing for each place of a stream that particles are kept of."""

    head: T  # where they stand
    newer: T  # where copies of them were made, at least a lag apart
    older: T  # at least a lag before what is known of the stream


@dataclass
class Line:
    """One stream as far as it is known; times are since its start."""

    start: float  # on the axis
    slot: int = -1  # its place among the particles
    until: float = 0.0  # up to where everything that was observed is known
    is_told: bool = False  # whether anything has been told of it, be it that nothing happened
    times: list[float] = field(default_factory=list)  # events that were observed after the older mark
    types: list[int] = field(default_factory=list)
    marks: Kept[Mark] = field(default_factory=lambda: Kept(Mark(), Mark(), Mark()))

    def forget(self) -> None:
        """Drop the events up to the older mark."""
        first = int(np.searchsorted(self.times, self.marks.older.time, side="right"))
        if first and self.marks.older.number:
            del self.times[:first], self.types[:first]


class Arrival(NamedTuple):
    """What is new of one stream, in order; times are since its start."""

    name: Name
    start: float  # of the stream, on the axis
    times: NDArray[np.float64]
    types: NDArray[np.int64]
    until: float


class Checker:
    """Reads what was fed, given the streams that are known; refuses, in words, what cannot be true."""

    def __init__(self, model: Model, axis: TimeAxis, known: Mapping[Name, Line]) -> None:
        self.model, self.axis, self.known = model, axis, known
        self.types = type_names(model)
        self.position = {name: k for k, name in enumerate(self.types)}

    def read(self, events: Any, until: Any, start: Any) -> list[Arrival]:
        """All that is new; ``until`` and ``start`` are one time for all streams, or one each by name."""
        if isinstance(events, EventStream):
            events = StreamSet([events], types=self.types)
        if isinstance(events, StreamSet):
            if until is not None or start is not None:
                remedy = "leave until= and start= out, or give events by name: {'taxi-7': [(9.5, 'pick-up')]}"
                raise DataError("streams say themselves when they start and end", remedy=remedy)
            return self._of_streams(self.model.matched(events))
        if not isinstance(events, Mapping):
            remedy = "give them by the name of the stream: {'taxi-7': [(9.5, 'pick-up')]}, or as a StreamSet"
            raise DataError(f"events are {show(events)}", remedy=remedy)
        told = self._told(until, events)
        starts = start if isinstance(start, Mapping) else dict.fromkeys(told, start)
        return [self._of_pairs(name, events.get(name, ()), told[name], starts.get(name)) for name in told]

    def _told(self, until: Any, events: Events) -> dict[Name, Any]:
        """The streams that are told of, each with the time up to which nothing more has happened, or None."""
        named = dict.fromkeys(self._name(name) for name in events)
        if isinstance(until, Mapping):
            return named | {self._name(name): time for name, time in until.items()}
        if until is None:
            return named
        end = self._time(until, "until=", None)
        # One time for all: streams that are known further than that stay where they are.
        ahead = {name for name, line in self.known.items() if line.is_told and line.start + line.until >= end}
        return {name: None if name in ahead else end for name in (*named, *(n for n in self.known if n not in named))}

    def _name(self, name: Any) -> Name:
        if isinstance(name, np.integer):
            name = int(name)
        if isinstance(name, bool) or not isinstance(name, str | int) or len(str(name)) > _LONGEST_NAME:
            remedy = f"name streams by text of up to {_LONGEST_NAME:,} characters, or whole numbers"
            raise DataError(f"a stream cannot be named {show(name)}", remedy=remedy)
        return name

    def _of_streams(self, streams: StreamSet) -> list[Arrival]:
        """Every stream with its events and its end."""
        if streams.axis.is_calendar != self.axis.is_calendar:
            wanted = "dates" if self.axis.is_calendar else "plain numbers"
            remedy = "rd.Online(..., axis=streams.axis) takes streams with dates"
            raise DataError(f"times of these streams are not {wanted}, which this run was made for", remedy=remedy)
        streams = streams.with_axis(self.axis) if self.axis.is_calendar else streams
        result = []
        for stream, id in zip(streams, streams.ids, strict=True):
            name = self._name(id)
            line = self.known.get(name)
            if line is not None and stream.start > line.start + line.until:
                known, since = (self.axis.label(t) for t in (line.start + line.until, stream.start))
                remedy = "give what was observed in between, or close the stream and begin it anew"
                raise DataError(f"known up to {known}, and goes on only at {since}", stream=name, remedy=remedy)
            start = stream.start if line is None else line.start
            arrival = Arrival(name, start, stream.times - start, stream.types, stream.end - start)
            result.append(self._checked(arrival))
        return result

    def _of_pairs(self, name: Name, pairs: Any, until: Any, start: Any) -> Arrival:
        """One stream from (time, type) pairs."""
        line = self.known.get(name)
        if line is None and start is None:
            remedy = "give start=, the time since when it is watched, with its first events"
            raise DataError("this stream is not known yet", stream=name, remedy=remedy)
        begin = self._time(start, "start=", name) if line is None else line.start
        if line is not None and start is not None and self._time(start, "start=", name) != begin:
            began = self.axis.label(begin)
            raise DataError(f"this stream began at {began}", stream=name, remedy="leave start= out, or close it first")
        times, types = [], []
        rows = [] if isinstance(pairs, str) else list(pairs)
        if isinstance(pairs, str) or not all(isinstance(row, tuple | list) and len(row) == 2 for row in rows):
            remedy = "give pairs of time and type: [(9.5, 'pick-up')]"
            raise DataError(f"events are {show(pairs)}", stream=name, remedy=remedy)
        for number, (time, kind) in enumerate(rows, 1):
            times.append(self._time(time, "time", name, number) - begin)
            types.append(self._type(kind, name, number))
        known = line.until if line is not None else 0.0
        last = times[-1] if times else known
        end = last if until is None else self._time(until, "until=", name) - begin
        return self._checked(
            Arrival(name, begin, np.array(times, dtype=np.float64), np.array(types, dtype=np.int64), end)
        )

    def _checked(self, arrival: Arrival) -> Arrival:
        """Refuse what is not in order or lies beyond what is known."""
        name, times, line = arrival.name, arrival.times, self.known.get(arrival.name)
        is_told, known = (False, 0.0) if line is None else (line.is_told, line.until)
        label: Callable[[float], str] = lambda t: self.axis.label(arrival.start + t)  # noqa: E731
        before = np.concatenate([[known], times[:-1]])
        late = times <= before
        if len(times) and not is_told:
            late[0] = times[0] < known  # an event at the very start
        if late.any():
            i = int(np.argmax(late))
            what = f"event {i + 1} is at {label(times[i])}"
            if i and times[i] == before[i]:
                problem, remedy = f"{what}, as the event before it", "give events at the same time small differences"
            elif i:
                problem, remedy = f"{what}, before the event before it, at {label(before[i])}", "give events in order"
            elif line is None or not is_told:
                problem, remedy = f"{what}, before its start {label(0.0)}", "begin the stream earlier"
            else:
                problem = f"{what}, and the stream is known up to {label(known)} already"
                remedy = "leave it out if it was fed before; what comes late can only be imputed anew, by rd.impute"
            raise DataError(problem, stream=name, remedy=remedy)
        last = float(times[-1]) if len(times) else known
        if arrival.until < last:
            problem = f"until= ({label(arrival.until)}) is before {label(last)}, up to which the stream is known"
            raise DataError(problem, stream=name, remedy="give a later time, or leave it out")
        return arrival

    def _time(self, value: Any, label: str, name: Name | None, row: int | None = None) -> float:
        try:
            time = on_axis(value, self.axis, label)
            if np.isfinite(time) and abs(time) < 1e15:
                return time
            raise DataError(f"{label} is {show(value)}", remedy="give a finite number or a date")
        except DataError as error:
            raise DataError(error.problem, stream=name, row=row, remedy=error.remedy) from None

    def _type(self, value: Any, name: Name, row: int) -> int:
        if isinstance(value, int | np.integer) and not isinstance(value, bool) and 0 <= value < len(self.types):
            return int(value)
        if isinstance(value, str) and value in self.position:
            return self.position[value]
        remedy = "correct the type, or use a model that was trained with it"
        problem = f"unknown type {show(value)}; known types are {describe_types(self.types)}"
        raise DataError(problem, stream=name, row=row, remedy=remedy)
