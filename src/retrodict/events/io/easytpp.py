"""The layouts of EasyTPP: one record a stream (its Hugging Face data sets), or lists of events (its pickles).

A record:

    {"dim_process": 2, "seq_idx": 0, "seq_len": 2, "time_since_start": [0.0, 1.5],
     "time_since_last_event": [0.0, 1.5], "type_event": [1, 0]}

As a table (Hugging Face data sets, Parquet, frames) a record is a row, and the lists are values of its columns. These
layouts do not say until when a stream was watched: it lives on [0, last event] unless ``start`` and ``end`` are given.
Types are integers below ``dim_process``; ``types=`` gives them names. Streams are named by ``seq_idx``, or counted
from 0 where there is none. Further lists with one entry for each event are extra columns. What EasyTPP does not hold
stands in further keys where it is needed: ``start`` and ``end``, ``type_names``, and the time ``axis``.

The older layout of the neural Hawkes process has splits, each a list of streams, each a list of events:

    {"dim_process": 2, "train": [[{"time_since_start": 0.5, "type_event": 1}, ...], ...], "dev": [...]}

The 2019 code keeps its one split under ``seqs`` (and the censored one under ``seqs_obs``), and calls the number of
types ``total_num``. A boundary event, of type K or above, may open or close a stream (the 2019 code's BOS and EOS): it
is no event; its time becomes the stream's start or end. A boundary event anywhere else is an error.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from retrodict.errors import DataError, show
from retrodict.events.io.files import inner_suffix, read_text
from retrodict.events.io.own_records import records_of, write_record_table
from retrodict.events.io.record_keys import STANDARD, read_axis, read_cells, read_edge, to_plain, use_names
from retrodict.events.io.records import (
    Record,
    assemble,
    check_same_length,
    read_lines,
    read_times,
    read_types,
    refuse_table_arguments,
    use_num_types,
    write_lines,
)
from retrodict.events.io.request import Request, check_types_argument
from retrodict.events.plain import parse_json
from retrodict.events.stream_set import StreamSet
from retrodict.events.time_axis import TimeAxis

_LISTS = ("time_since_start", "time_since_last_event", "type_event")
_EVENT_KEYS = ("time_since_start", "type_event")


def from_easytpp(
    records: Any,
    *,
    start: float | None = None,
    end: float | None = None,
    types: Sequence[str] | None = None,
    unit: str | None = None,
    split: str | None = None,
) -> StreamSet:
    """A stream set from EasyTPP records: a list of dicts, a dict of lists, or a dict of splits."""
    request = Request(start=start, end=end, types=check_types_argument(types), unit=unit, split=split)
    streams = from_objects(records, request)
    request.emit_notices()
    return streams


def read_easytpp(path: Path, request: Request) -> StreamSet:
    """A stream set from a file of EasyTPP records, JSON or JSON Lines."""
    if inner_suffix(path) in (".jsonl", ".ndjson"):
        return from_records(read_lines(path, request), request)
    text = read_text(path)
    try:
        value = parse_json(text)
    except ValueError as error:
        lines = isinstance(error, json.JSONDecodeError) and error.msg == "Extra data"
        if lines:  # Hugging Face writes JSON Lines into .json files
            return from_records(read_lines(path, request), request)
        raise request.error(f"this is not JSON ({error})", "write or copy the file again") from error
    return from_objects(value, request)


def write_easytpp(streams: StreamSet, file: BinaryIO, target: Path) -> None:
    """Write EasyTPP records into ``file``, which will become ``target``: JSON, JSON Lines or Parquet."""
    if inner_suffix(target) in (".parquet", ".pq"):
        return write_record_table(streams, file, target)
    records = records_of(streams)
    try:
        texts = [json.dumps(record, ensure_ascii=False, allow_nan=False) for record in records]
    except (TypeError, ValueError) as error:
        remedy = "convert the extra columns to numbers or text, or leave them out"
        raise DataError(f"JSON cannot hold the extra columns: {error}", file=target, remedy=remedy) from error
    if inner_suffix(target) in (".jsonl", ".ndjson"):
        write_lines("".join(text + "\n" for text in texts), file, target)
    else:
        write_lines("[" + ",\n".join(texts) + "]\n", file, target)


def from_objects(value: Any, request: Request) -> StreamSet:
    """A stream set from any of the layouts, already in memory."""
    if isinstance(value, Mapping):
        if "time_since_start" not in value:
            if any(_is_of_records(content) for content in value.values()):
                return from_objects(value[_choose_split(value, request)], request)
            return from_splits(value, request)
        value = _rows_of(value)
    if isinstance(value, str | bytes) or not isinstance(value, Iterable):
        raise request.error(
            f"an object of type {type(value).__name__} does not hold EasyTPP records", "give a list of dicts, or a dict"
        )
    items = list(value)
    if items and isinstance(items[0], list | tuple):
        return from_splits({"seqs": items}, request)
    return from_records(list(enumerate(items, start=1)), request)


def _rows_of(columns: Mapping[str, Any]) -> list[dict[str, Any]]:
    """A dict of lists as a list of dicts; a single record is a list of one."""
    times = columns["time_since_start"]
    if not isinstance(times, list | tuple) or not times or not isinstance(times[0], list | tuple | np.ndarray):
        return [dict(columns)]
    full = {key: values for key, values in columns.items() if isinstance(values, list | tuple | np.ndarray)}
    shared = {key: value for key, value in columns.items() if key not in full}
    count = min(len(values) for values in full.values())
    return [shared | {key: values[i] for key, values in full.items()} for i in range(count)]


def from_records(records: list[tuple[int, Any]], request: Request, table: Mapping[str, str] | None = None) -> StreamSet:
    """A stream set from numbered records; ``table`` says of which library and schema a table of them is."""
    refuse_table_arguments("the EasyTPP layout", request)
    if not records:
        raise request.error("there are no streams", "give at least one record")
    streams = [_record(position, row, value, request) for position, (row, value) in enumerate(records)]
    use_names(records[0][1], request)
    use_num_types([(row, value.get("dim_process")) for row, value in records], request)
    lines: list[str] | None = [json.dumps(to_plain(value), ensure_ascii=False) for _, value in records]
    return assemble(streams, request, read_axis(records[0][1], request), lines, "records", table)


def _record(position: int, row: int, value: Any, request: Request) -> Record:
    if not isinstance(value, Mapping):
        raise request.error(f"an object of type {type(value).__name__} is not an EasyTPP record", "give dicts", row=row)
    for key in _EVENT_KEYS:
        if key not in value:
            raise request.error(f"the key {key!r} is missing", f"give each record {', '.join(_LISTS)}", row=row)
    name = value.get("seq_idx", position)
    name = name.item() if isinstance(name, np.generic) else name
    if type(name) not in (str, int):
        raise request.error(f"seq_idx is {show(name)}, not an integer", "give each record its number", row=row)
    request.count_rows(value["time_since_start"])
    fail = partial(request.error, stream=name, row=row)
    times = read_times(value["time_since_start"], "time_since_start", fail)
    types = read_types(value["type_event"], "type_event", fail)
    length = value.get("seq_len", len(times))
    length = length.item() if isinstance(length, np.generic) else length
    if type(length) not in (int, float) or length != len(times):
        raise fail(f"seq_len is {show(length)}, but there are {len(times)} times", "correct seq_len")
    start, end = (read_edge(value.get(side), side, fail) for side in ("start", "end"))
    columns = {
        key: read_cells(cells)
        for key, cells in value.items()
        if key not in STANDARD and isinstance(cells, list | tuple | np.ndarray) and len(cells) == len(times) > 0
    }
    record = Record(row, name, times + (start or 0.0), types, start, end, columns)
    return check_same_length(record, request)


def from_splits(value: Mapping[str, Any], request: Request) -> StreamSet:
    """A stream set from one split of the old layout."""
    refuse_table_arguments("this layout", request)
    name = _choose_split(value, request)
    size = use_num_types([(None, value.get("dim_process", value.get("total_num")))], request)
    records = [_record_of_events(i, events, size, request) for i, events in enumerate(value[name])]
    return assemble(records, request, TimeAxis(request.unit))


def _choose_split(value: Mapping[str, Any], request: Request) -> str:
    present = [str(key) for key, content in value.items() if _is_split(content)]
    known = ", ".join(name[:60] for name in present[:20]) or "none"
    if request.split is not None:
        if request.split not in present:
            problem = f"there is no split {request.split!r}; there are {known}"
            raise request.error(problem, "pass split= with one of those")
        return request.split
    if not present:
        keys = ", ".join(show(key) for key in list(value)[:20]) or "none"
        remedy = "give a dict with 'seqs', or with splits such as 'train', each a list of streams"
        raise request.error(f"no streams were found; the keys are {keys}", remedy)
    if len(present) > 1:
        raise request.error(
            f"there are several splits: {known}",
            f'choose one, such as split="{present[0][:60]}"',
        )
    return present[0]


def _is_split(content: Any) -> bool:
    """A list of streams that is not empty (other lists in these files hold indices and settings)."""
    events = isinstance(content, list | tuple) and bool(content) and isinstance(content[0], list | tuple)
    return events or _is_of_records(content)


def _is_of_records(content: Any) -> bool:
    """Records, or a table of them, as a value of a dict of splits."""
    if isinstance(content, list | tuple):
        return bool(content) and isinstance(content[0], Mapping) and "time_since_start" in content[0]
    if isinstance(content, Mapping):
        return "time_since_start" in content
    return "time_since_start" in (getattr(content, "column_names", None) or ())  # a Dataset of Hugging Face


def _record_of_events(position: int, events: Any, size: int | None, request: Request) -> Record:
    row = position + 1
    if not isinstance(events, list | tuple):
        raise request.error(
            f"an object of type {type(events).__name__} is not a list of events", "give each stream as a list", row=row
        )
    fail = partial(request.error, stream=position, row=row)
    request.count_rows(events)
    for nth, event in enumerate(events, start=1):
        for key in _EVENT_KEYS:
            if not isinstance(event, Mapping) or key not in event:
                raise fail(f"event {nth} has no {key!r}", f"give each event {' and '.join(_EVENT_KEYS)}")
    times = read_times([e["time_since_start"] for e in events], "time_since_start", fail)
    types = read_types([e["type_event"] for e in events], "type_event", fail)
    start = end = None
    if size is not None and _is_boundary(types[:1], size):
        start, times, types = float(times[0]), times[1:], types[1:]
    if size is not None and _is_boundary(types[-1:], size):
        end, times, types = float(times[-1]), times[:-1], types[:-1]
    return Record(row, position, times, types, start, end, {})


def _is_boundary(types: list[int] | list[str], size: int) -> bool:
    return bool(types) and isinstance(types[0], int) and types[0] >= size
