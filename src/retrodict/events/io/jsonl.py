"""JSON Lines, plain or gzipped: one stream a line.

    {"id": "taxi-7", "horizon": [0.0, 8.5], "times": [0.5, 1.25], "types": ["pick-up", "drop-off"]}

``types`` are names or integers; ``columns`` may hold further lists, one entry for each event; ``axis`` may
hold the unit, origin and time zone of the times. If a file ``meta.json`` lies beside it, its
``type_names`` are the vocabulary and its ``time_unit`` is the unit, unless the caller gives their own. Our
writer writes names, so types that never occur are known again only with ``types=`` or a ``meta.json``.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from retrodict.errors import DataError, show
from retrodict.events.io.easytpp import from_records, write_easytpp
from retrodict.events.io.files import read_text
from retrodict.events.io.own_lines import own_lines, plain
from retrodict.events.io.records import (
    Fail,
    Record,
    assemble,
    check_same_length,
    read_lines,
    read_times,
    read_types,
    refuse_table_arguments,
    write_lines,
)
from retrodict.events.io.request import Request
from retrodict.events.plain import parse_json
from retrodict.events.stream import EventStream
from retrodict.events.stream_set import StreamSet
from retrodict.events.time_axis import TimeAxis


def read_jsonl(path: Path, request: Request) -> StreamSet:
    """A stream set from a JSON Lines file, ours or EasyTPP's."""
    objects = read_lines(path, request)
    if "time_since_start" in objects[0][1]:
        return from_records(objects, request)
    refuse_table_arguments("JSON Lines", request)
    return from_objects(objects, request, use_meta(path, request))


def from_objects(
    objects: Sequence[tuple[int, dict[str, Any]]], request: Request, unit: str | None = None, position: int = 0
) -> StreamSet:
    """A stream set from parsed lines, each with its number, of which the first is stream number ``position``."""
    records = [_record(at, row, value, request) for at, (row, value) in enumerate(objects, start=position)]
    lines = [json.dumps(value, ensure_ascii=False) for _, value in objects]
    return assemble(records, request, _axis(objects, unit, request), lines)


def _record(position: int, row: int, value: dict[str, Any], request: Request) -> Record:
    name = value.get("id", position)
    if type(name) not in (str, int):
        raise request.error(f"the id {show(name)} is not text or an integer", "give a simple id", row=row)
    fail = partial(request.error, stream=name, row=row)
    for key in ("times", "types"):
        if key not in value:
            raise fail(f"the key {key!r} is missing", f"add the list of {key}, one for each event")
    start, end = _horizon(value.get("horizon"), fail, request)
    request.count_rows(value["times"])
    times = read_times(value["times"], "times", fail)
    types = read_types(value["types"], "types", fail)
    columns = value.get("columns", {})
    if not isinstance(columns, dict) or not all(isinstance(column, list) for column in columns.values()):
        raise fail("'columns' is not an object of lists", 'write it as {"name": [one value for each event]}')
    return check_same_length(Record(row, name, times, types, start, end, columns), request)


def _horizon(horizon: Any, fail: Fail, request: Request) -> tuple[float, float] | tuple[None, None]:
    if horizon is None and request.end is not None:
        return None, None
    if isinstance(horizon, list) and len(horizon) == 2 and all(type(x) in (int, float) for x in horizon):
        with contextlib.suppress(OverflowError):  # an integer may have hundreds of digits
            return float(horizon[0]), float(horizon[1])
    problem = "the key 'horizon' is missing" if horizon is None else f"the horizon {show(horizon)} is malformed"
    raise fail(problem, 'write "horizon": [start, end], two numbers, or pass start= and end=')


def _axis(objects: Sequence[tuple[int, dict[str, Any]]], unit: str | None, request: Request) -> TimeAxis:
    """The time axis that the lines record, the same on all of them; ``unit`` where they record none."""
    first = objects[0][1].get("axis")
    for row, value in objects:
        if value.get("axis") != first:
            problem = f"'axis' differs from that in row {objects[0][0]}"
            raise request.error(problem, "use one time axis for the whole file", row=row)
    try:
        recorded = TimeAxis.from_dict({} if first is None else first)
    except (ValueError, AttributeError) as error:
        raise request.error(
            f"'axis' is malformed: {show(first)}", "give it only unit, origin and timezone", row=objects[0][0]
        ) from error
    if recorded.is_calendar and request.unit not in (None, recorded.unit):
        raise request.error(f"unit= is {request.unit!r}, but the times are counted in {recorded.unit}s", "drop unit=")
    return TimeAxis(request.unit or recorded.unit or unit, recorded.origin, recorded.timezone)


def use_meta(file: Path, request: Request) -> str | None:
    """Take the vocabulary from ``meta.json`` beside a file, where the caller gave none; returns its unit."""
    path = file.parent / "meta.json"
    if (request.types is not None and request.unit is not None) or not path.is_file():
        return None
    meta = Request(file=path)
    remedy = "repair or remove the file, or pass both types= and unit= and it will not be read"
    text = read_text(path)
    try:
        facts = parse_json(text)
    except ValueError as error:
        raise meta.error("this is not JSON", remedy) from error
    if not isinstance(facts, dict):
        raise meta.error("this is not a JSON object", remedy)
    names, unit = facts.get("type_names"), facts.get("time_unit")
    if names is not None:
        if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
            raise meta.error("'type_names' is not a list of names", remedy)
        if len(set(names)) < len(names):
            raise meta.error("'type_names' lists a name twice", remedy)
    if unit is not None and not isinstance(unit, str):
        raise meta.error("'time_unit' is not a word", remedy)
    if request.types is None and names is not None:
        request.types = tuple(names)
    return unit


def write_jsonl(streams: StreamSet, file: BinaryIO, target: Path) -> None:
    """Write a stream set as JSON Lines into ``file``, which will become ``target``; read lines keep what they had."""
    if streams.source is not None and streams.source.kind == "records":
        return write_easytpp(streams, file, target)
    own = streams.source is not None and streams.source.kind == "lines"
    values = own_lines(streams) if own else map(partial(_line, streams, target), streams)
    write_lines("".join(_dump(value, target) for value in values), file, target)


def _line(streams: StreamSet, target: Path, stream: EventStream) -> dict[str, Any]:
    """A stream as the object on its line."""
    value: dict[str, Any] = {
        "id": int(stream.id) if isinstance(stream.id, np.integer) else stream.id,
        "horizon": [stream.start, stream.end],
        "times": stream.times.tolist(),
        "types": [streams.types[k] for k in stream.types],
    }
    if type(value["id"]) not in (str, int):
        raise DataError(
            "the id is neither text nor an integer", file=target, stream=stream.id,
            remedy="give the streams ids of text or integers",
        )  # fmt: skip
    if stream.columns:
        value["columns"] = {name: plain(column) for name, column in stream.columns.items()}
    if streams.axis != TimeAxis():
        value["axis"] = streams.axis.to_dict()
    return value


def _dump(value: dict[str, Any], target: Path) -> str:
    def default(thing: Any) -> Any:
        if hasattr(thing, "isoformat"):
            return thing.isoformat()
        if isinstance(thing, np.generic):
            return thing.item()
        raise TypeError(f"{type(thing).__name__} values")

    try:
        return json.dumps(value, ensure_ascii=False, allow_nan=False, default=default) + "\n"
    except (TypeError, ValueError) as error:
        raise DataError(
            f"JSON cannot hold the extra columns: {error}",
            file=target,
            stream=value.get("id"),
            remedy="convert them to numbers or text, or leave them out",
        ) from error
