"""The JSON Lines that streams were read from, given back with the events that were put in since."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from retrodict.events.results import times_among
from retrodict.events.source import lay_out

if TYPE_CHECKING:
    from retrodict.events.stream_set import StreamSet


def own_lines(streams: StreamSet) -> Iterator[dict[str, Any]]:
    """The object on each stream's line: its keys and values as they were, new events in their place in time."""
    source = streams.source
    assert source is not None
    layout = lay_out(source, streams.ids, streams.offsets)
    position = {name: code for code, name in enumerate(source.ids)}
    before = np.concatenate([[0], np.cumsum(np.bincount(source.codes, minlength=len(source.ids)))])
    moved = streams.with_axis(source.axis) if source.axis.unit is not None else streams
    added = {name: _numbers(moved, name) for name in streams.columns if name not in source.extras}
    values = [json.loads(source.data[position[name]]) for name in streams.ids]
    first = next((value["types"][0] for value in values if value["types"]), "")
    written = source.style or type(first).__name__
    names = streams.types if written == "str" else source.integers(streams.types)
    order = np.argsort([position[name] for name in streams.ids])
    pieces = np.split(np.arange(len(layout.row)), np.cumsum(np.bincount(layout.stream)[order])[:-1])
    for i, piece in zip(order.tolist(), pieces, strict=True):
        value, code = values[i], position[streams.ids[i]]
        here = piece[layout.event[piece] >= 0]
        events, rows = layout.event[here], layout.row[here]
        places = np.where(rows < 0, -1, rows - before[code]).tolist()
        times = moved.event_times[events].tolist()
        types = [names[k] for k in streams.event_types[events]]
        old = value.get("columns") or dict.fromkeys(source.extras, ())  # an empty stream need not name them
        value["times"] = [times[n] if at < 0 else value["times"][at] for n, at in enumerate(places)]
        value["types"] = [types[n] if at < 0 else value["types"][at] for n, at in enumerate(places)]
        columns = {name: own_cells(cells, places, name in (source.of_streams or ())) for name, cells in old.items()}
        columns |= {name: plain(column[events]) for name, column in added.items()}
        if columns:
            value["columns"] = columns
        if value.get("horizon") is None and not layout.whole:
            value["horizon"] = [float(moved.starts[i]), float(moved.ends[i])]
        yield value


def own_cells(cells: Sequence[Any], places: list[int], of_stream: bool) -> list[Any]:
    """The values of a column at its old places, of which new events have none (-1), unless it is one of the stream."""
    nothing = cells[0] if of_stream and len(cells) else None
    return [nothing if at < 0 else cells[at] for at in places]


def _numbers(moved: StreamSet, name: str) -> NDArray[Any]:
    """An added column, its times in the unit of the lines."""
    return moved.columns[name].astype(np.float64) if name in times_among(moved.columns) else moved.columns[name]


def plain(column: NDArray[Any]) -> list[Any]:
    """Values as JSON has them: dates as text, NaN and NaT as null."""
    if column.dtype.kind == "M":
        return [None if np.isnat(value) else str(value) for value in column]
    values = column.tolist()
    return [None if isinstance(value, float) and value != value else value for value in values]
