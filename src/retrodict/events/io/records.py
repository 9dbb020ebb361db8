"""Sources that hold a whole stream in one record (JSON Lines, EasyTPP, old pickles), into a stream set."""

from __future__ import annotations

import json
from collections.abc import Callable, Hashable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

import numpy as np
from numpy.typing import NDArray

from retrodict import _limits
from retrodict.errors import DataError, show
from retrodict.events.io.files import packed, read_text
from retrodict.events.io.known_layouts import refuse_options
from retrodict.events.io.ragged import Grouping, check_finite, check_inside, check_intervals, group, last_of_each
from retrodict.events.io.request import ASSUMED, Places, Request
from retrodict.events.io.roles import RESERVED
from retrodict.events.io.type_codes import index_integers, index_labels
from retrodict.events.plain import parse_json
from retrodict.events.source import Source
from retrodict.events.stream_set import StreamSet
from retrodict.events.time_axis import TimeAxis

Fail = Callable[[str, str], DataError]  # the error for a problem and a remedy


class Record(NamedTuple):
    """One stream as it stands in the source; ``start`` and ``end`` are None where it does not say."""

    row: int
    id: Hashable
    times: NDArray[np.float64]
    types: list[int] | list[str]
    start: float | None
    end: float | None
    columns: dict[str, list[Any]]

    def error(self, problem: str, remedy: str, request: Request) -> DataError:
        """An error that names this record."""
        return request.error(problem, remedy, stream=self.id, row=self.row)


def read_times(values: Any, key: str, fail: Fail) -> NDArray[np.float64]:
    """A flat list of numbers as float64 [N]; ``fail`` makes the error of a problem and a remedy."""
    flat = _flat_list(values, key, fail)
    for nth, value in enumerate(flat, start=1):
        if type(value) not in (int, float):
            problem = f"event {nth}: the time {show(value)} in {key!r} is not a number"
            raise fail(problem, "give every event a number as its time")
    try:
        return np.array(flat, dtype=np.float64)
    except OverflowError as error:
        raise fail(f"{key!r} holds a number that is too large", "correct the time") from error


def read_types(values: Any, key: str, fail: Fail) -> list[int] | list[str]:
    """A flat list of type names, or of integers."""
    flat = _flat_list(values, key, fail)
    flat = [int(v) if type(v) is float and v.is_integer() else v for v in flat]
    for nth, value in enumerate(flat, start=1):
        known = type(value) is str or (type(value) is int and abs(value) < 2**63)
        if not known or type(value) is not type(flat[0]):
            wanted = f"a {type(flat[0]).__name__} like the first" if known else "a name or an integer"
            problem = f"event {nth}: the type {show(value)} in {key!r} is not {wanted}"
            raise fail(problem, "give all types as names, or all as integers")
    return flat


def _flat_list(values: Any, key: str, fail: Fail) -> list[Any]:
    flat = values.tolist() if isinstance(values, np.ndarray | np.generic) else values
    if not isinstance(flat, list | tuple) or any(isinstance(value, list | tuple) for value in flat):
        raise fail(f"{key!r} is not a flat list", "give one entry for each event")
    return [value.item() if isinstance(value, np.generic) else value for value in flat]


def check_same_length(record: Record, request: Request) -> Record:
    """The record, if it has one type and one value of each extra column for each time."""
    lists = {"types": record.types, **record.columns}
    for key, values in lists.items():
        if len(values) != len(record.times):
            problem = f"there are {len(record.times)} times but {len(values)} {key}"
            raise record.error(problem, "give exactly one entry for each event", request)
    return record


def assemble(
    records: Sequence[Record],
    request: Request,
    axis: TimeAxis,
    lines: Sequence[str] | None = None,
    kind: str = "lines",
    more: Mapping[str, str] | None = None,
) -> StreamSet:
    """Check the records, sort their events and put them together; ``lines`` are what is to be given back.

    ``kind`` and ``more`` say of which kind the source is, and what it names besides columns.
    """
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
    if request.survey is not None:
        request.survey.see_lines(
            [kind for record in records for kind in record.types], axis, columns_of(records), request
        )
    grouping = group(codes, times, len(records), request)
    starts, ends, assumed = _bounds(records, grouping.apply(times), grouping.offsets, request)
    whole = Places(request.file, rows, np.arange(len(records)), ids)
    if not assumed:
        check_intervals(starts, ends, whole, "{:.12g}".format)
    check_inside(times, starts, ends, places, "{:.12g}".format, assumed)
    columns = _columns(records, grouping, request)
    source = None
    if lines is not None:
        parts, own = {**dict.fromkeys(RESERVED), **(more or {})}, {name: name for name in columns}
        order, none = grouping.apply(np.arange(len(codes))), np.zeros(0, dtype=np.int64)
        source = Source(
            kind, lines, parts, frozenset(assumed), own, names, axis, tuple(ids), codes, none, order, file=request.file
        )
    return StreamSet.trusted(
        grouping.apply(times),
        grouping.apply(types),
        grouping.offsets,
        starts,
        ends,
        ids,
        names,
        columns,
        axis,
        source,
    )


def _refuse_repeated_ids(records: Sequence[Record], request: Request) -> None:
    seen: dict[Hashable, int] = {}
    for record in records:
        if record.id in seen:
            problem = f"the id was used already in row {seen[record.id]}"
            raise record.error(problem, "give each stream an id of its own", request)
        seen[record.id] = record.row


def _index_types(
    records: Sequence[Record], request: Request, places: Places
) -> tuple[NDArray[np.int64], tuple[str, ...]]:
    flat = [kind for record in records for kind in record.types]
    if all(type(kind) is int for kind in flat):
        return index_integers(np.array(flat, dtype=np.int64), request, places)
    if request.types is None:
        differs = np.array([type(kind) is not type(flat[0]) for kind in flat])
        remedy = "use one of the two, or pass types= so that integers are indices into it"
        places.refuse(differs, lambda _: ("some streams give types as names, others as integers", remedy))
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
                raise record.error("an empty stream needs an end", "pass end=", request)
        text = f"{ASSUMED} to end at its last event, and nothing is imputed beyond; pass end= if it was"
        request.notices.append(f"{text} watched for longer")
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
    names = columns_of(records) or ()
    for record in filled:
        if set(record.columns) != set(names):
            problem = f"the extra columns are {sorted(record.columns)}, but {sorted(names)} in row {filled[0].row}"
            raise record.error(problem, "give every stream the same extra columns", request)
    lists = {name: [value for record in filled for value in record.columns[name]] for name in names}
    return {name: grouping.apply(_column_from_list(values)) for name, values in lists.items()}


def columns_of(records: Sequence[Record]) -> tuple[str, ...] | None:
    """The extra columns of the first stream that has events; None where none has."""
    return next((tuple(record.columns) for record in records if len(record.times)), None)


def _column_from_list(values: Sequence[Any]) -> NDArray[Any]:
    """An array [E] of the simplest dtype that holds every value; None stays None, or NaN among floats."""
    kinds = {type(value) for value in values}
    with suppress(OverflowError):  # an integer may have any number of digits
        if kinds in ({bool}, {int}):
            return np.array(values, dtype=bool if kinds == {bool} else np.int64)
        if kinds - {type(None)} in ({float}, {int, float}):
            return np.array([np.nan if value is None else value for value in values], dtype=np.float64)
    return np.fromiter(values, dtype=object, count=len(values))


def refuse_table_arguments(what: str, request: Request) -> None:
    """Raise for arguments that only tables understand."""
    for name in ("stream", "time", "type", "timezone", "dates"):
        if getattr(request, name) is not None:
            has = "plain numbers as times" if name in ("timezone", "dates") else "no columns to choose from"
            raise request.error(f"{name}= was given, but {what} has {has}", f"drop {name}=")
    refuse_options(request, None)


def use_num_types(sizes: Sequence[tuple[int | None, Any]], request: Request) -> int | None:
    """K as the source gives it (``sizes``: row and K or None), which must fit the caller's names."""
    known: int | None = None
    what = "the number of types (dim_process) is"
    for row, size in sizes:
        size = size.item() if isinstance(size, np.generic) else size
        if size is None:
            continue
        if type(size) is not int or size < 1:
            raise request.error(f"{what} {show(size)}", "give a whole number of at least 1", row=row)
        _limits.check("types", size, f"{what} {size}", file=request.file, row=row)
        if known is not None and size != known:
            raise request.error(f"{what} {size}, but {known} before", "use one set of types for all streams", row=row)
        known = size
    if known is not None and request.types is None:
        request.types = tuple(str(k) for k in range(known))
    if known is not None and request.types is not None and len(request.types) != known:
        problem = f"types= has {len(request.types)} names, but there are {known} types (dim_process)"
        raise request.error(problem, "give one name for each type")
    return known


def read_lines(path: Path, request: Request) -> list[tuple[int, dict[str, Any]]]:
    """The objects in a JSON Lines file, each with its line number; blank lines are passed over."""
    objects = parse_lines(read_text(path), request)
    if not objects:
        raise request.error("there are no streams", "give a file with at least one stream")
    return objects


def parse_lines(text: str, request: Request, first: int = 1) -> list[tuple[int, dict[str, Any]]]:
    """The objects on the lines of a text, of which the first has the number ``first``."""
    objects = []
    for number, line in enumerate(text.split("\n"), start=first):
        if not line.strip():
            continue
        try:
            value = parse_json(line)
        except ValueError as error:
            reason = error.msg if isinstance(error, json.JSONDecodeError) else str(error)
            raise request.error(
                f"the line is not JSON ({reason})", "put one complete JSON object on each line", row=number
            ) from error
        if not isinstance(value, dict):
            remedy = 'write each stream as {"id": ..., "horizon": [...], "times": [...], "types": [...]}'
            raise request.error(f"the line holds a JSON {_json_name(value)}, not an object", remedy, row=number)
        objects.append((number, value))
    return objects


def _json_name(value: Any) -> str:
    names = {list: "list", str: "string", bool: "boolean", int: "number", float: "number"}
    return names.get(type(value), "null")


def write_lines(text: str, file: BinaryIO, target: Path) -> None:
    """Write UTF-8 text into ``file``, gzipped if the name of ``target`` asks for it."""
    with packed(file, target) as out:
        out.write(text.encode())
