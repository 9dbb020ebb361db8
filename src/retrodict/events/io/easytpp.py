"""The layouts of EasyTPP: one record a stream (its Hugging Face data sets), or lists of events (its pickles).

    {"dim_process": 2, "seq_idx": 0, "seq_len": 2, "time_since_start": [0.0, 1.5],
     "time_since_last_event": [0.0, 1.5], "type_event": [1, 0]}

These layouts do not say until when a stream was watched: it lives on [0, last event] unless ``start`` and
``end`` are given. Types are integers below ``dim_process``; ``types=`` gives them names. Streams are
named by ``seq_idx``, or counted from 0 where there is none.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from retrodict.errors import show
from retrodict.events.io.event_lists import from_splits
from retrodict.events.io.files import inner_suffix, read_text
from retrodict.events.io.jsonl import read_lines, write_lines
from retrodict.events.io.records import (
    Record,
    assemble,
    check_same_length,
    read_times,
    read_types,
    refuse_table_arguments,
    use_num_types,
)
from retrodict.events.io.request import Request, check_types_argument
from retrodict.events.plain import parse_json
from retrodict.events.stream_set import StreamSet
from retrodict.events.time_axis import TimeAxis

_LISTS = ("time_since_start", "time_since_last_event", "type_event")


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


def to_easytpp(streams: StreamSet) -> list[dict[str, Any]]:
    """One record for each stream; times count from its start, and its end and its id are lost."""
    records = []
    for position, stream in enumerate(streams):
        times = stream.times - stream.start
        records.append(
            {
                "dim_process": streams.num_types,
                "seq_idx": position,
                "seq_len": len(stream),
                "time_since_start": times.tolist(),
                "time_since_last_event": np.diff(times, prepend=0.0).tolist(),
                "type_event": stream.types.tolist(),
            }
        )
    return records


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
    """Write EasyTPP records into ``file``, which will become ``target``: JSON, or JSON Lines."""
    texts = [json.dumps(record) for record in to_easytpp(streams)]
    if inner_suffix(target) in (".jsonl", ".ndjson"):
        write_lines("".join(text + "\n" for text in texts), file, target)
    else:
        write_lines("[" + ",\n".join(texts) + "]\n", file, target)


def from_objects(value: Any, request: Request) -> StreamSet:
    """A stream set from any of the layouts, already in memory."""
    if isinstance(value, Mapping):
        if "time_since_start" not in value:
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


def from_records(records: list[tuple[int, Any]], request: Request) -> StreamSet:
    """A stream set from numbered records."""
    refuse_table_arguments("the EasyTPP layout", request)
    if not records:
        raise request.error("there are no streams", "give at least one record")
    streams = [_record(position, row, value, request) for position, (row, value) in enumerate(records)]
    use_num_types([(row, value.get("dim_process")) for row, value in records], request)
    return assemble(streams, request, TimeAxis(request.unit))


def _record(position: int, row: int, value: Any, request: Request) -> Record:
    if not isinstance(value, Mapping):
        raise request.error(f"an object of type {type(value).__name__} is not an EasyTPP record", "give dicts", row=row)
    for key in ("time_since_start", "type_event"):
        if key not in value:
            raise request.error(f"the key {key!r} is missing", f"give each record {', '.join(_LISTS)}", row=row)
    name = value.get("seq_idx", position)
    name = name.item() if isinstance(name, np.generic) else name
    if type(name) not in (str, int):
        raise request.error(f"seq_idx is {show(name)}, not an integer", "give each record its number", row=row)
    request.count_rows(value["time_since_start"])
    times = read_times(value["time_since_start"], "time_since_start", row, name, request)
    types = read_types(value["type_event"], "type_event", row, name, request)
    length = value.get("seq_len", len(times))
    length = length.item() if isinstance(length, np.generic) else length
    if type(length) not in (int, float) or length != len(times):
        raise request.error(
            f"seq_len is {show(length)}, but there are {len(times)} times", "correct seq_len",
            stream=name, row=row,
        )  # fmt: skip
    return check_same_length(Record(row, name, times, types, None, None, {}), request)
