"""Sources that hold a whole stream in one record (JSON Lines, EasyTPP, old pickles), into a stream set."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from retrodict import _limits
from retrodict.errors import show
from retrodict.events.io.columns import column_from_list
from retrodict.events.io.ragged import (
    Grouping,
    check_finite,
    check_inside,
    check_intervals,
    group,
    last_of_each,
)
from retrodict.events.io.request import Places, Request
from retrodict.events.io.vocabulary import index_integers, index_labels
from retrodict.events.stream_set import StreamSet
from retrodict.events.time_axis import TimeAxis


class Record(NamedTuple):
    """One stream as it stands in the source; ``start`` and ``end`` are None where it does not say."""

    row: int
    id: Hashable
    times: NDArray[np.float64]
    types: list[int] | list[str]
    start: float | None
    end: float | None
    columns: dict[str, list[Any]]


def read_times(values: Any, key: str, row: int, name: Hashable, request: Request) -> NDArray[np.float64]:
    """A flat list of numbers as float64 [N]."""
    flat = _flat_list(values, key, row, name, request)
    for position, value in enumerate(flat):
        if type(value) not in (int, float):
            raise request.error(
                f"event {position + 1}: the time {show(value)} in {key!r} is not a number",
                "give every event a number as its time",
                stream=name,
                row=row,
            )
    try:
        return np.array(flat, dtype=np.float64)
    except OverflowError as error:
        raise request.error(
            f"{key!r} holds a number that is too large", "correct the time", stream=name, row=row
        ) from error


def read_types(values: Any, key: str, row: int, name: Hashable, request: Request) -> list[int] | list[str]:
    """A flat list of type names, or of integers."""
    flat = _flat_list(values, key, row, name, request)
    flat = [int(v) if type(v) is float and v.is_integer() else v for v in flat]
    for position, value in enumerate(flat):
        known = type(value) is str or (type(value) is int and abs(value) < 2**63)
        if not known or type(value) is not type(flat[0]):
            raise request.error(
                f"event {position + 1}: the type {show(value)} in {key!r} is not "
                + (f"a {type(flat[0]).__name__} like the first" if known else "a name or an integer"),
                "give all types as names, or all as integers",
                stream=name,
                row=row,
            )
    return flat


def _flat_list(values: Any, key: str, row: int, name: Hashable, request: Request) -> list[Any]:
    flat = values.tolist() if isinstance(values, np.ndarray | np.generic) else values
    if not isinstance(flat, list | tuple) or any(isinstance(value, list | tuple) for value in flat):
        raise request.error(f"{key!r} is not a flat list", "give one entry for each event", stream=name, row=row)
    return [value.item() if isinstance(value, np.generic) else value for value in flat]


def check_same_length(record: Record, request: Request) -> Record:
    """The record, if it has one type and one value of each extra column for each time."""
    lists = {"types": record.types, **record.columns}
    for key, values in lists.items():
        if len(values) != len(record.times):
            raise request.error(
                f"there are {len(record.times)} times but {len(values)} {key}",
                "give exactly one entry for each event",
                stream=record.id,
                row=record.row,
            )
    return record


def assemble(records: Sequence[Record], request: Request, axis: TimeAxis) -> StreamSet:
    """Check the records, sort their events and put them together."""
    _limits.check("streams", len(records), f"there are {len(records):,} streams", file=request.file)
    _refuse_repeated_ids(records, request)
    ids = [record.id for record in records]
    lengths = np.array([len(record.times) for record in records], dtype=np.int64)
    codes = np.repeat(np.arange(len(records)), lengths)
    rows = np.array([record.row for record in records], dtype=np.int64)
    nth = np.arange(len(codes)) - np.repeat(np.cumsum(lengths) - lengths, lengths) + 1
    places = Places(request.file, rows[codes], codes, ids, nth)
    times = np.concatenate([np.zeros(0), *(record.times for record in records)])
    check_finite(times, places)
    types, names = _index_types(records, request, places)
    grouping = group(codes, times, len(records), request)
    starts, ends, assumed = _bounds(records, grouping.apply(times), grouping.offsets, request)
    whole = Places(request.file, rows, np.arange(len(records)), ids)
    if not assumed:
        check_intervals(starts, ends, whole, "{:.12g}".format)
    check_inside(times, starts, ends, places, "{:.12g}".format, assumed)
    return StreamSet.trusted(
        grouping.apply(times),
        grouping.apply(types),
        grouping.offsets,
        starts,
        ends,
        ids,
        names,
        _columns(records, grouping, request),
        axis,
    )


def _refuse_repeated_ids(records: Sequence[Record], request: Request) -> None:
    seen: dict[Hashable, int] = {}
    for record in records:
        if record.id in seen:
            raise request.error(
                f"the id was used already in row {seen[record.id]}",
                "give each stream an id of its own",
                stream=record.id,
                row=record.row,
            )
        seen[record.id] = record.row


def _index_types(
    records: Sequence[Record], request: Request, places: Places
) -> tuple[NDArray[np.int64], tuple[str, ...]]:
    flat = [kind for record in records for kind in record.types]
    if all(type(kind) is int for kind in flat):
        return index_integers(np.array(flat, dtype=np.int64), request, places)
    if request.types is None:
        differs = [type(kind) is not type(flat[0]) for kind in flat]
        if any(differs):
            raise places.error(
                differs.index(True),
                "some streams give types as names, others as integers",
                "use one of the two, or pass types= so that integers are indices into it",
            )
        names: Sequence[str] = []
    else:
        names = request.types
    texts = [kind if isinstance(kind, str) else names[kind] if 0 <= kind < len(names) else str(kind) for kind in flat]
    position: dict[str, int] = {}
    codes = np.array([position.setdefault(text, len(position)) for text in texts], dtype=np.int64)
    return index_labels(codes, list(position), request, places)


def _bounds(
    records: Sequence[Record], times: NDArray[np.float64], offsets: NDArray[np.int64], request: Request
) -> tuple[NDArray[np.float64], NDArray[np.float64], dict[str, str]]:
    start, end = _number("start", request), _number("end", request)
    starts = [record.start if start is None else start for record in records]
    ends = [record.end if end is None else end for record in records]
    last = last_of_each(times, offsets)
    assumed = {"start": "0"} if None in starts else {}
    if None in ends:
        assumed["end"] = "its last event"
        for record, value in zip(records, ends, strict=True):
            if value is None and not len(record.times):
                raise request.error("an empty stream needs an end", "pass end=", stream=record.id, row=record.row)
        request.notices.append("each stream was taken to end at its last event; pass end= if it was watched for longer")
    return (
        np.array([0.0 if value is None else value for value in starts], dtype=np.float64),
        np.array([last[i] if value is None else value for i, value in enumerate(ends)], dtype=np.float64),
        assumed,
    )


def _number(side: str, request: Request) -> float | None:
    value = getattr(request, side)
    if value is None or (isinstance(value, int | float | np.number) and not isinstance(value, bool)):
        return None if value is None else float(value)
    raise request.error(
        f"{side}= is {value!r}, but this format has plain numbers as times", f"give {side}= as a number"
    )


def _columns(records: Sequence[Record], grouping: Grouping, request: Request) -> dict[str, NDArray[Any]]:
    filled = [record for record in records if len(record.times)]
    if not filled:
        return {}
    names = filled[0].columns.keys()
    for record in filled:
        if record.columns.keys() != names:
            raise request.error(
                f"the extra columns are {sorted(record.columns)}, but {sorted(names)} in row {filled[0].row}",
                "give every stream the same extra columns",
                stream=record.id,
                row=record.row,
            )
    return {
        name: grouping.apply(column_from_list([v for record in filled for v in record.columns[name]])) for name in names
    }


def refuse_table_arguments(what: str, request: Request) -> None:
    """Raise for arguments that only tables understand."""
    for name in ("stream", "time", "type", "timezone"):
        if getattr(request, name) is not None:
            raise request.error(
                f"{name}= was given, but {what} has no columns to choose from" if name != "timezone"
                else f"timezone= was given, but {what} has plain numbers as times",
                f"drop {name}=",
            )  # fmt: skip


def use_num_types(sizes: Sequence[tuple[int | None, Any]], request: Request) -> int | None:
    """K as the source gives it (``sizes``: row and K or None), which must fit the caller's names."""
    known: int | None = None
    for row, size in sizes:
        size = size.item() if isinstance(size, np.generic) else size
        if size is None:
            continue
        if type(size) is not int or size < 1:
            raise request.error(
                f"the number of types (dim_process) is {show(size)}", "give a whole number of at least 1", row=row
            )
        _limits.check("types", size, f"the number of types (dim_process) is {size}", file=request.file, row=row)
        if known is not None and size != known:
            raise request.error(
                f"the number of types (dim_process) is {size}, but {known} before",
                "use one set of types for all streams",
                row=row,
            )
        known = size
    if known is not None and request.types is None:
        request.types = tuple(str(k) for k in range(known))
    if known is not None and request.types is not None and len(request.types) != known:
        raise request.error(
            f"types= has {len(request.types)} names, but there are {known} types (dim_process)",
            "give one name for each type",
        )
    return known
