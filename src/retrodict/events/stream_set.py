"""Many streams over one type vocabulary, stored as ragged arrays.

>>> streams = StreamSet([EventStream([0.5, 1.0], [0, 1], end=2.0), EventStream([], [], end=3.0)],
...                     types=["pick-up", "drop-off"])
>>> len(streams), streams.num_events, streams.num_types
(2, 2, 2)
>>> streams[0]
<EventStream 0: 2 events on [0, 2]>
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, overload

import numpy as np
from numpy.typing import NDArray

from retrodict._near import correct_type
from retrodict.errors import DataError
from retrodict.events.results import times_among
from retrodict.events.source import Source
from retrodict.events.stream import EventStream, check_events, first_repeat, same_values
from retrodict.events.time_axis import TimeAxis

if TYPE_CHECKING:
    import pandas as pd


_ARRAYS = ("event_times", "event_types", "offsets", "starts", "ends")


class Splits(NamedTuple):
    """Disjoint parts of a stream set."""

    train: StreamSet
    dev: StreamSet
    test: StreamSet

    @classmethod
    def cut(cls, streams: StreamSet, first: int, second: int) -> Splits:
        """The streams before the position ``first``, those before ``second``, and the rest."""
        return cls(streams[:first], streams[first:second], streams[second:])


class StreamSet:
    """Streams as flat arrays: stream i owns events ``offsets[i]:offsets[i + 1]``.

    ``event_times`` [E] float64, ``event_types`` [E] int64, ``offsets`` [N+1], ``starts`` and ``ends`` [N],
    ``ids`` (unique), ``types`` (the names of types 0..K-1), ``columns`` (extra values, [E] each) and
    ``axis`` (the unit of time, and the calendar where there is one). ``source`` is the table they were read from.
    """

    event_times: NDArray[np.float64]
    event_types: NDArray[np.int64]
    offsets: NDArray[np.int64]
    starts: NDArray[np.float64]
    ends: NDArray[np.float64]
    ids: tuple[Hashable, ...]
    types: tuple[str, ...]
    columns: Mapping[str, NDArray[Any]]
    axis: TimeAxis
    source: Source | None = None
    _id_keys: NDArray[np.int64] | None = None

    def __init__(
        self, streams: Iterable[EventStream], types: Sequence[str] | None = None, axis: TimeAxis | None = None
    ) -> None:
        streams = list(streams)
        for position, stream in enumerate(streams):
            if not isinstance(stream, EventStream):
                raise DataError(
                    f"expected an EventStream, got {type(stream).__name__}",
                    stream=position,
                    remedy="build each with rd.EventStream(times, types, end=T), or use rd.read_events",
                )
        ids = [position if s.id is None else s.id for position, s in enumerate(streams)]
        highest = max((int(s.types.max()) for s in streams if len(s)), default=-1)
        names = [str(k) for k in range(highest + 1)] if types is None else list(types)
        for stream, name in zip(streams, ids, strict=True):
            check_events(stream.times, stream.types, stream.start, stream.end, stream=name, num_types=len(names))
        self._set(
            _concatenate([s.times for s in streams], np.float64),
            _concatenate([s.types for s in streams], np.int64),
            np.cumsum([0, *(len(s) for s in streams)]),
            np.array([s.start for s in streams], dtype=np.float64),
            np.array([s.end for s in streams], dtype=np.float64),
            ids=ids,
            types=names,
            columns=_stack_columns(streams),
            axis=axis,
        )

    @classmethod
    def trusted(
        cls,
        event_times: NDArray[np.float64],
        event_types: NDArray[np.int64],
        offsets: NDArray[np.int64],
        starts: NDArray[np.float64],
        ends: NDArray[np.float64],
        ids: Sequence[Hashable],
        types: Sequence[str],
        columns: Mapping[str, NDArray[Any]] | None = None,
        axis: TimeAxis | None = None,
        source: Source | None = None,
    ) -> StreamSet:
        """Wrap arrays that were validated already (no copy); ids and names must still be unique."""
        streams = object.__new__(cls)
        streams._set(event_times, event_types, offsets, starts, ends, ids=ids, types=types, columns=columns, axis=axis)
        streams.source = source
        return streams

    def _set(self, *arrays: NDArray[Any], ids: Any, types: Any, columns: Any, axis: TimeAxis | None) -> None:
        for name, array in zip(_ARRAYS, arrays, strict=True):
            array.flags.writeable = False
            setattr(self, name, array)
        self.ids, self.types = tuple(ids), tuple(str(name) for name in types)
        self.columns, self.axis = columns or {}, axis or TimeAxis()
        twice = first_repeat(self.ids)
        if twice is not None:
            remedy = "give each stream an id of its own"
            raise DataError(f"the id {twice!r} is used by two streams", stream=twice, remedy=remedy)
        twice = first_repeat(self.types)
        if twice is not None:
            raise DataError(f"the type name {twice!r} is listed twice", remedy="list each type name once")

    def replace(self, **parts: Any) -> StreamSet:
        """The same streams with other arrays, types, columns or axis, which were validated already (no copy).

        The table they were read from is forgotten unless ``source`` is among the parts.
        """
        names = (*_ARRAYS, "ids", "types", "columns", "axis")
        changed = StreamSet.trusted(**{name: getattr(self, name) for name in names} | parts)
        changed._id_keys = None if "ids" in parts else self._id_keys
        return changed

    @property
    def num_events(self) -> int:
        """Events in all streams together."""
        return len(self.event_times)

    @property
    def num_types(self) -> int:
        """K, the size of the type vocabulary."""
        return len(self.types)

    @property
    def lengths(self) -> NDArray[np.int64]:
        """Events per stream, [N]."""
        return np.diff(self.offsets)

    @property
    def durations(self) -> NDArray[np.float64]:
        """Length of each stream's [start, end], [N]."""
        return self.ends - self.starts

    @property
    def stream_of_event(self) -> NDArray[np.int64]:
        """The position of each event's stream, [E]."""
        return np.repeat(np.arange(len(self)), self.lengths)

    @property
    def id_keys(self) -> NDArray[np.int64]:
        """A number that follows from each stream's id alone, [N]."""
        if self._id_keys is None:
            from retrodict.random import stream_keys  # imports torch

            self._id_keys = stream_keys(0, self.ids).numpy()
        return self._id_keys

    def __len__(self) -> int:
        return len(self.ids)

    def __iter__(self) -> Iterator[EventStream]:
        return (self[i] for i in range(len(self)))

    @overload
    def __getitem__(self, index: int | np.integer[Any]) -> EventStream: ...
    @overload
    def __getitem__(self, index: slice | Sequence[int] | NDArray[Any]) -> StreamSet: ...
    def __getitem__(self, index: Any) -> EventStream | StreamSet:
        if isinstance(index, int | np.integer):
            i = range(len(self))[index]
            span = slice(int(self.offsets[i]), int(self.offsets[i + 1]))
            return EventStream.trusted(
                self.event_times[span],
                self.event_types[span],
                float(self.starts[i]),
                float(self.ends[i]),
                self.ids[i],
                {name: values[span] for name, values in self.columns.items()},
            )
        return self._take(np.arange(len(self))[index])

    def _take(self, which: NDArray[np.int64]) -> StreamSet:
        lengths = self.lengths[which]
        offsets = np.concatenate([[0], np.cumsum(lengths)])
        events = np.repeat(self.offsets[which] - offsets[:-1], lengths) + np.arange(offsets[-1])
        taken = self.replace(
            offsets=offsets, starts=self.starts[which], ends=self.ends[which], ids=[self.ids[i] for i in which],
            **self.at(events),
        )  # fmt: skip
        taken._id_keys = None if self._id_keys is None else self._id_keys[which]
        return taken

    def at(self, events: NDArray[Any]) -> dict[str, Any]:
        """Times, types, columns and source of some of the events, by position or mask, for ``replace``."""
        columns = {name: values[events] for name, values in self.columns.items()}
        source = None if self.source is None else self.source.take(events)
        times, types = self.event_times[events], self.event_types[events]
        return {"event_times": times, "event_types": types, "columns": columns, "source": source}

    def keep(self, mask: NDArray[np.bool_]) -> StreamSet:
        """The same streams with only the events where ``mask`` [E] is true."""
        return self.replace(offsets=np.concatenate([[0], np.cumsum(mask)])[self.offsets], **self.at(mask))

    def split(self, train: float = 0.8, dev: float = 0.1, seed: int = 0) -> Splits:
        """Whole streams at random into train, dev and test (the rest)."""
        if not (train >= 0 and dev >= 0 and train + dev <= 1 + 1e-12):
            remedy = "give fractions that are not negative and add up to at most 1"
            raise DataError(f"cannot split into {train} train and {dev} dev", remedy=remedy)
        order = np.random.default_rng(seed).permutation(len(self))
        first, second = round(train * len(self)), round((train + dev) * len(self))
        return Splits.cut(self[order], first, second)

    def with_unit(self, unit: str) -> StreamSet:
        """The same streams with times in another unit (hours instead of minutes); both must be known units."""
        return self.with_axis(TimeAxis(unit, self.axis.origin, self.axis.timezone))

    def with_axis(self, axis: TimeAxis) -> StreamSet:
        """The same streams on another axis: times in its unit and, where both have dates, since its origin."""
        if axis == self.axis:
            return self
        times = {name: self.axis.convert(getattr(self, name), axis) for name in ("event_times", "starts", "ends")}
        intervals = {name: self.axis.convert(self.columns[name], axis) for name in times_among(self.columns)}
        return self.replace(**times, columns={**self.columns, **intervals}, axis=axis, source=self.source)

    def with_types(self, types: Sequence[str]) -> StreamSet:
        """The same streams over another vocabulary that contains every type that occurs here."""
        if tuple(types) == self.types:
            return self
        position = {name: k for k, name in enumerate(types)}
        table = np.array([position.get(name, -1) for name in self.types], dtype=np.int64)
        codes = table[self.event_types] if self.num_events else self.event_types
        if (codes < 0).any():
            event = int(np.argmax(codes < 0))
            name = self.types[self.event_types[event]]
            problem = f"unknown type {name!r}; known types are {describe_types(types)}"
            remedy = f"{correct_type(name, types)}, or use a model that was trained with it"
            raise self._error_at(event, problem, remedy)
        return self.replace(event_types=codes, types=types, source=self.source)

    def _error_at(self, event: int, problem: str, remedy: str) -> DataError:
        """An error about an event: its file and row where these are known, else which event of its stream it is."""
        i = int(np.searchsorted(self.offsets, event, side="right")) - 1
        nth = event - int(self.offsets[i]) + 1
        if self.source is None or self.source.file is None:
            return DataError(problem, stream=self.ids[i], row=nth, remedy=remedy)
        row = self.source.row_of(event)
        problem = problem if row is not None else f"event {nth}: {problem}"
        return DataError(problem, file=self.source.file, stream=self.ids[i], row=row, remedy=remedy)

    def to_frame(self, library: str = "pandas") -> pd.DataFrame:
        """A long table with columns stream, time, type, start, end and the extra columns.

        An empty stream is one row with neither time nor type, so that nothing is lost. ``library`` is
        "pandas" or "polars". ``to_table`` gives back the table that the streams were read from.
        """
        from retrodict.events.io.tables_out import to_frame

        return to_frame(self, library)

    def to_table(self, library: str | None = None) -> Any:
        """The table that these streams were read from: its columns, dtypes and rows, and what was put in since.

        ``library`` is "pandas", "polars" or "arrow", by default that of the table (pandas for files). Streams that
        were not read from a table have the columns of ``to_frame``.
        """
        from retrodict.events.io.own_table import own_frame

        return own_frame(self, library)

    def to_easytpp(self) -> list[dict[str, Any]]:
        """One EasyTPP record for each stream, as Hugging Face data sets hold them; times count from its start.

        Records that were read keep what they had. ``rd.write_events(streams, path, format="easytpp")`` writes a file.
        """
        from retrodict.events.io.own_records import records_of

        return records_of(self)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, StreamSet):
            return NotImplemented
        return (
            (self.ids, self.types, self.axis) == (other.ids, other.types, other.axis)
            and all(np.array_equal(getattr(self, name), getattr(other, name)) for name in _ARRAYS)
            and self.columns.keys() == other.columns.keys()
            and all(same_values(v, other.columns[n]) for n, v in self.columns.items())
        )

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        unit = "" if self.axis.unit is None else f", times in {self.axis.unit}s"
        return f"<StreamSet: {len(self)} streams, {self.num_events} events, {self.num_types} types{unit}>"


def describe_types(types: Sequence[str], most: int = 8) -> str:
    """The first few type names, for messages."""
    shown = ", ".join(repr(name) for name in list(types)[:most])
    return shown + (f" and {len(types) - most} more" if len(types) > most else "")


def _concatenate(arrays: list[NDArray[Any]], dtype: Any) -> NDArray[Any]:
    return np.concatenate(arrays) if arrays else np.zeros(0, dtype)


def _stack_columns(streams: list[EventStream]) -> dict[str, NDArray[Any]]:
    filled = [s for s in streams if len(s)]
    if not filled:
        return {}
    names = filled[0].columns.keys()
    for stream in filled:
        if stream.columns.keys() != names:
            raise DataError(
                f"extra columns {sorted(stream.columns)} differ from {sorted(names)} of the first stream",
                stream=stream.id,
                remedy="give every stream the same extra columns",
            )
    return {name: np.concatenate([s.columns[name] for s in filled]) for name in names}
