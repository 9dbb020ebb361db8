"""EasyTPP records written, as objects and as tables: those that were read, with new events put in, and new ones."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

import numpy as np

from retrodict.errors import DataError
from retrodict.events.io.own_lines import own_cells, plain
from retrodict.events.source import lay_out
from retrodict.events.time_axis import TimeAxis

if TYPE_CHECKING:
    import pyarrow as pa

    from retrodict.events.stream_set import StreamSet


def records_of(streams: StreamSet) -> list[dict[str, Any]]:
    """One record for each stream: those that were read, or new ones."""
    own = streams.source is not None and streams.source.kind == "records"
    return list(own_records(streams) if own else new_records(streams))


def new_records(streams: StreamSet) -> Iterator[dict[str, Any]]:
    """A record for each stream, with further keys only where EasyTPP's own would lose something."""
    names = list(streams.types)
    common: dict[str, Any] = {} if names == [str(k) for k in range(len(names))] else {"type_names": names}
    if streams.axis != TimeAxis():
        common["axis"] = streams.axis.to_dict()
    edges = not all(len(s) and s.start == 0.0 and s.end == s.times[-1] for s in streams)
    whole = all(type(name) is int or isinstance(name, np.integer) for name in streams.ids)
    for position, stream in enumerate(streams):
        times = stream.times - stream.start
        value = {
            "dim_process": streams.num_types,
            "seq_idx": int(stream.id) if whole else position,  # type: ignore[call-overload]
            "seq_len": len(stream),
            "time_since_start": times.tolist(),
            "time_since_last_event": np.diff(times, prepend=0.0).tolist(),
            "type_event": stream.types.tolist(),
        }
        if edges:
            value |= {"start": stream.start, "end": stream.end}
        yield value | common | {name: plain(column) for name, column in stream.columns.items()}


def own_records(streams: StreamSet) -> Iterator[dict[str, Any]]:
    """The records that were read: their keys and values as they were, new events in their place in time."""
    source = streams.source
    assert source is not None
    if not len(streams):
        return
    layout = lay_out(source, streams.ids, streams.offsets)
    position = {name: code for code, name in enumerate(source.ids)}
    before = np.concatenate([[0], np.cumsum(np.bincount(source.codes, minlength=len(source.ids)))])
    moved = streams.with_axis(source.axis) if source.axis.unit is not None else streams
    added = {name: values for name, values in moved.columns.items() if name not in source.extras}
    integers = source.integers(streams.types)
    order = np.argsort([position[name] for name in streams.ids])
    pieces = np.split(np.arange(len(layout.row)), np.cumsum(np.bincount(layout.stream)[order])[:-1])
    for i, piece in zip(order.tolist(), pieces, strict=True):
        code = position[streams.ids[i]]
        value = json.loads(source.data[code])
        here = piece[layout.event[piece] >= 0]
        events, rows = layout.event[here], layout.row[here]
        places = np.where(rows < 0, -1, rows - before[code]).tolist()
        start = value.get("start") or 0.0
        fresh = (moved.event_times[events] - start).tolist()
        since = [fresh[n] if at < 0 else value["time_since_start"][at] for n, at in enumerate(places)]
        kinds = [integers[k] for k in streams.event_types[events]]
        kept = value.get("time_since_last_event")
        if isinstance(kept, list) and len(kept) == len(value["time_since_start"]):
            value["time_since_last_event"] = _gaps(since, places, kept)
        value["type_event"] = [kinds[n] if at < 0 else value["type_event"][at] for n, at in enumerate(places)]
        for name in source.extras:
            value[name] = own_cells(value.get(name, []), places, name in (source.of_streams or ()))
        value["time_since_start"] = since
        if "seq_len" in value:
            value["seq_len"] = len(since)
        if not layout.whole or (not len(since) and "end" not in value):
            value |= {"start": start, "end": float(moved.ends[i])}
        yield value | {name: plain(column[events]) for name, column in added.items()}


def _gaps(since: list[float], places: list[int], kept: list[float]) -> list[float]:
    """Times since the preceding event, as they were where both events were neighbours before."""
    gaps = []
    for n, at in enumerate(places):
        same = at >= 0 and (places[n - 1] == at - 1 if n else at == 0)
        gaps.append(kept[at] if same else since[n] - (since[n - 1] if n else 0.0))
    return gaps


def record_table(streams: StreamSet) -> pa.Table:
    """The records as a table with list columns, with the types that the table had which was read."""
    import pyarrow as pa

    source = streams.source
    written = None if source is None else source.names.get("schema")
    try:
        schema = pa.schema([]) if written is None else pa.ipc.read_schema(pa.py_buffer(base64.b64decode(written)))
    except (ValueError, OSError, pa.ArrowException) as error:
        raise DataError("what was kept of the records' table is damaged", remedy="read the table again") from error
    records = records_of(streams)
    if not records:
        return schema.empty_table()
    columns: dict[str, Any] = {}
    for name in [*schema.names, *(key for key in _keys(records) if key not in schema.names)]:
        cells = [record.get(name) for record in records]
        try:
            columns[name] = pa.array(cells, schema.field(name).type if name in schema.names else None)
        except (pa.ArrowException, TypeError, ValueError):
            try:
                columns[name] = pa.array(cells)
            except (pa.ArrowException, TypeError, ValueError) as error:
                remedy = "convert it to numbers or text, or leave it out"
                raise DataError(f"a table cannot hold {name!r} of these records: {error}", remedy=remedy) from error
    kept = {key: value for key, value in (schema.metadata or {}).items() if key != b"huggingface"}
    return pa.table(columns).replace_schema_metadata(kept or None)


def _keys(records: list[dict[str, Any]]) -> dict[str, None]:
    return {key: None for record in records for key in record}


def write_record_table(streams: StreamSet, file: BinaryIO, target: Path) -> None:
    """Write the records as Parquet into ``file``, which will become ``target``."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        pq.write_table(record_table(streams), file)
    except pa.ArrowException as error:
        remedy = "convert the extra columns to numbers or text, or leave them out"
        raise DataError(f"Parquet cannot hold these columns: {error}", file=target, remedy=remedy) from error
