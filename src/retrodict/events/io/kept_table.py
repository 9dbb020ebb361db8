"""The table that streams were read from, kept in two Parquet files, so that it can still be given back later.

``table.parquet`` is the table as it was (of JSON Lines, one line a row). ``rows.parquet`` says of each row to which
stream it belongs and which event it is, -1 for none; ``blank`` rows declare empty streams.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from retrodict.events.io.known_layouts import MORE_NAMES
from retrodict.events.io.parquet_file import read_arrow, read_columns
from retrodict.events.io.roles import RESERVED
from retrodict.events.properties import properties
from retrodict.events.source import Source
from retrodict.events.stream_set import StreamSet
from retrodict.events.time_axis import TimeAxis

TABLE, ROWS = "table.parquet", "rows.parquet"
_KINDS = ("csv", "lines", "records", "arrow")  # other tables are kept as Arrow's


class KeptTable(NamedTuple):
    """What the two files are to hold, ``facts`` for JSON, and the place [N] of each stream in the table."""

    table: pa.Table
    rows: pa.Table
    facts: dict[str, Any]
    places: NDArray[np.int64]


def keep_table(streams: StreamSet) -> KeptTable | None:
    """What to keep of the table that streams were read from; None where there is none, or Parquet cannot hold it."""
    source = streams.source
    table = None if source is None else _as_arrow(source)
    if source is None or table is None:
        return None
    event = np.full(len(source.codes), -1, dtype=np.int64)
    known = np.flatnonzero(source.rows >= 0)
    event[source.rows[known]] = known
    blank = np.isin(np.arange(len(source.codes)), source.blank)
    rows = pa.table({"stream": source.codes, "event": event, "blank": blank})
    if source.when is not None:
        rows = rows.append_column("when", pa.array(source.when))
    facts = {
        "kind": source.kind if source.kind in _KINDS else "arrow",
        "names": dict(source.names),
        "assumed": sorted(source.assumed),
        "extras": dict(source.extras),
        "of_streams": sorted(properties(streams)),
        "types": list(source.types),
        "axis": source.axis.to_dict(),
    }
    position = {name: code for code, name in enumerate(source.ids)}
    return KeptTable(table, rows, facts, np.array([position[name] for name in streams.ids], dtype=np.int64))


def _as_arrow(source: Source) -> pa.Table | None:
    try:
        if source.by_stream:
            return pa.table({"line": pa.array(source.data, pa.large_string())})
        if source.kind == "pandas":
            table = pa.Table.from_pandas(source.data, preserve_index=False)
        else:
            table = source.data.to_arrow() if source.kind == "polars" else source.data
        with pq.ParquetWriter(pa.BufferOutputStream(), table.schema):  # refuses types that Parquet does not know
            return table
    except (pa.ArrowException, TypeError, ValueError, NotImplementedError):
        return None


def give_back(streams: StreamSet, folder: Path, facts: Mapping[str, Any], places: NDArray[np.int64]) -> StreamSet:
    """The streams with the table that ``keep_table`` kept; ValueError where the two do not fit together."""
    table, rows = read_arrow(folder / TABLE), read_columns(folder / ROWS)
    codes, event = rows["stream"].astype(np.int64), rows["event"].astype(np.int64)
    lines, known = facts["kind"] in ("lines", "records"), np.flatnonzero(event >= 0)
    number = max((int(part.max()) + 1 for part in (codes, places) if len(part)), default=0)
    names = {role: None if facts["names"][role] is None else str(facts["names"][role]) for role in RESERVED}
    columns = {name for name in names.values() if name}
    names |= {role: facts["names"][role] for role in MORE_NAMES if isinstance(facts["names"].get(role), str)}
    fits = len(np.unique(event[known])) == len(known) and event.max(initial=-1) < streams.num_events
    fits = fits and len(places) == len(streams) == len(np.unique(places))
    fits = fits and codes.min(initial=0) >= 0 and places.min(initial=0) >= 0 and facts["kind"] in _KINDS
    fits = fits and (table.num_rows >= number if lines else table.num_rows == len(codes))
    if not fits or not (lines or columns <= {*table.column_names}):
        raise ValueError("its tables do not fit together")
    ids: list[Any] = [object() for _ in range(number)]  # streams of the table that were left out need no name
    for place, name in zip(places.tolist(), streams.ids, strict=True):
        ids[place] = name
    own = np.full(streams.num_events, -1, dtype=np.int64)
    own[event[known]] = known
    source = Source(
        facts["kind"],
        table["line"].to_pylist() if lines else table,
        names,
        frozenset(facts["assumed"]),
        dict(facts["extras"]),
        tuple(facts["types"]),
        TimeAxis.from_dict(facts["axis"]),
        tuple(ids),
        codes,
        np.flatnonzero(rows["blank"]),
        own,
        rows["when"].astype(np.float64) if "when" in rows else None,
        frozenset(str(name) for name in facts.get("of_streams", ())),
    )
    return streams.replace(source=source)
