"""The old neural Hawkes layout: splits, each a list of streams, each a list of events that are dicts.

    {"dim_process": 2, "train": [[{"time_since_start": 0.5, "type_event": 1}, ...], ...], "dev": [...]}

The 2019 code keeps its one split under ``seqs`` (and the censored one under ``seqs_obs``), and calls the
number of types ``total_num``. A boundary event, of type K or above, may open or close a stream (the 2019
code's BOS and EOS): it is no event; its time becomes the stream's start or end. One anywhere else is an
error.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from retrodict.errors import show
from retrodict.events.io.records import (
    Record,
    assemble,
    read_times,
    read_types,
    refuse_table_arguments,
    use_num_types,
)
from retrodict.events.io.request import Request
from retrodict.events.stream_set import StreamSet
from retrodict.events.time_axis import TimeAxis

_EVENT_KEYS = ("time_since_start", "type_event")


def from_splits(value: Mapping[str, Any], request: Request) -> StreamSet:
    """A stream set from one split of the old layout."""
    refuse_table_arguments("this layout", request)
    name = _choose_split(value, request)
    size = use_num_types([(None, value.get("dim_process", value.get("total_num")))], request)
    records = [_record(i, events, size, request) for i, events in enumerate(value[name])]
    return assemble(records, request, TimeAxis(request.unit))


def _choose_split(value: Mapping[str, Any], request: Request) -> str:
    present = [str(key) for key, content in value.items() if _is_split(content)]
    if request.split is not None:
        if request.split not in present:
            raise request.error(
                f"there is no split {request.split!r}; there are {', '.join(present[:20]) or 'none'}",
                "pass split= with one of those",
            )
        return request.split
    if not present:
        keys = ", ".join(show(key) for key in list(value)[:20]) or "none"
        raise request.error(
            f"no streams were found; the keys are {keys}",
            "give a dict with 'seqs', or with splits such as 'train', each a list of streams",
        )
    if len(present) > 1:
        raise request.error(
            f"there are several splits: {', '.join(present[:20])}", f'choose one, such as split="{present[0]}"'
        )
    return present[0]


def _is_split(content: Any) -> bool:
    """A list of streams that is not empty (other lists in these files hold indices and settings)."""
    return isinstance(content, list | tuple) and bool(content) and isinstance(content[0], list | tuple)


def _record(position: int, events: Any, size: int | None, request: Request) -> Record:
    row = position + 1
    if not isinstance(events, list | tuple):
        raise request.error(
            f"an object of type {type(events).__name__} is not a list of events", "give each stream as a list", row=row
        )
    request.count_rows(events)
    for nth, event in enumerate(events, start=1):
        for key in _EVENT_KEYS:
            if not isinstance(event, Mapping) or key not in event:
                raise request.error(
                    f"event {nth} has no {key!r}", f"give each event {' and '.join(_EVENT_KEYS)}",
                    stream=position, row=row,
                )  # fmt: skip
    times = read_times([e["time_since_start"] for e in events], "time_since_start", row, position, request)
    types = read_types([e["type_event"] for e in events], "type_event", row, position, request)
    start = end = None
    if size is not None and _is_boundary(types[:1], size):
        start, times, types = float(times[0]), times[1:], types[1:]
    if size is not None and _is_boundary(types[-1:], size):
        end, times, types = float(times[-1]), times[:-1], types[:-1]
    return Record(row, position, times, types, start, end, {})


def _is_boundary(types: list[int] | list[str], size: int) -> bool:
    return bool(types) and isinstance(types[0], int) and types[0] >= size
