"""The table that streams were read from, given back with the events that were put in since."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from retrodict.errors import DataError
from retrodict.events.io.cells import put, take, to_arrow
from retrodict.events.io.known_layouts import XES_KEY, XES_TEXT, has_layout, name_and_transition
from retrodict.events.io.request import Places, Request
from retrodict.events.io.tables_out import extra_column, pandas_frame, polars_frame, to_frame, to_table
from retrodict.events.io.text_columns import infer
from retrodict.events.io.time_column import TimeColumn, read_time_column
from retrodict.events.io.time_style import TimeStyle, find_style
from retrodict.events.results import times_among
from retrodict.events.source import Layout, Source, lay_out
from retrodict.events.time_axis import TimeAxis

if TYPE_CHECKING:
    from retrodict.events.stream_set import StreamSet


def own_frame(streams: StreamSet, library: str | None = None) -> Any:
    """The user's own table in a library's form, by default the one that it came in."""
    source = streams.source
    known = {"csv": "pandas", "lines": "pandas", "records": "pandas"}
    wanted = library or (
        "pandas" if source is None else source.names.get("library") or known.get(source.kind, source.kind)
    )
    if wanted not in ("pandas", "polars", "arrow"):
        raise DataError(f"unknown library {wanted!r}", remedy='use library="pandas", "polars" or "arrow"')
    if source is not None and source.names.get("schema") is not None:
        from retrodict.events.io.own_records import record_table

        table = record_table(streams)
        return {"pandas": pandas_frame, "polars": polars_frame, "arrow": lambda table: table}[wanted](table)
    if source is None or source.by_stream:
        return to_table(streams) if wanted == "arrow" else to_frame(streams, wanted)
    if source.kind == "csv":
        streams = streams.replace(source=_typed(source))
    if wanted == "pandas" and source.kind == "pandas":
        return _fill_pandas(streams)
    table = own_arrow(streams)
    if wanted == "polars":
        frame = polars_frame(table)
        return _with_schema(frame, source.data.schema) if source.kind == "polars" else frame
    return pandas_frame(table) if wanted == "pandas" else table


def write_table(streams: StreamSet, names: Mapping[str, str | None], text: bool = False) -> pa.Table:
    """The table that a file is to hold; ``names`` are those the caller gave to the columns stream, time and type."""
    source = streams.source
    if source is None or source.by_stream:
        return to_table(streams, {role: name for role, name in names.items() if name is not None})
    table = own_arrow(streams, text)
    new = {source.names[role]: name for role, name in names.items() if name is not None and source.names[role]}
    return table.rename_columns([new.get(name, name) for name in table.column_names])


def about(streams: StreamSet, table: pa.Table) -> dict[str, Any] | None:
    """What a table cannot say itself, for a file's metadata; None where integers say which type an event has."""
    source = streams.source
    if source is None or source.by_stream:
        return {"types": list(streams.types), "axis": streams.axis.to_dict()}
    if has_layout(source.names):  # which types these are, the next reader will choose
        return None
    kind = table.schema.field(str(source.names["type"])).type if source.names["type"] in table.column_names else None
    if kind is None or pa.types.is_integer(kind) or pa.types.is_floating(kind):
        return None
    facts = {"types": list(source.vocabulary(streams.types)), "axis": source.axis.to_dict()}
    return facts | (
        {"dates": source.names["dates"]} if source.names.get("dates") and _has_text_times(source, table) else {}
    )


def _has_text_times(source: Source, table: pa.Table) -> bool:
    """Whether the dates of a table are texts, which only their form lets one read."""
    kind = flat(table[str(source.names["time"])]).type
    return pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_dictionary(kind)


def own_arrow(streams: StreamSet, text: bool = False, hidden: bool = False) -> pa.Table:
    """The user's own table for Arrow; that of a CSV file as ``text`` where it is to be one again.

    Columns that hold the text of an event log are left out unless ``hidden``.
    """
    source = streams.source
    assert source is not None
    if source.kind == "pandas":
        try:
            return pa.Table.from_pandas(_fill_pandas(streams), preserve_index=False)
        except (pa.ArrowException, TypeError, ValueError, NotImplementedError) as error:
            remedy = "convert the column to numbers, dates or text, or leave it out"
            raise DataError(f"the table has a column that a file cannot hold: {error}", remedy=remedy) from error
    if source.kind == "csv" and not text:
        streams = streams.replace(source=_typed(source))
        source = streams.source
        assert source is not None
    table = source.data.to_arrow() if source.kind == "polars" else source.data
    columns = dict(zip(table.column_names, table.columns, strict=True))
    if not hidden and XES_KEY in (table.schema.metadata or {}):
        columns = {name: column for name, column in columns.items() if name not in XES_TEXT}
    filled = _fill(streams, columns, lambda name: columns[name])
    if source.kind == "csv":
        filled = {name: _as_text(column) for name, column in filled.items()}
    return pa.table(filled).replace_schema_metadata(table.schema.metadata)


def _as_text(column: Any) -> Any:
    return column.cast(pa.large_string()) if not pa.types.is_large_string(column.type) else column


def _fill_pandas(streams: StreamSet) -> Any:
    import pandas as pd

    source = streams.source
    assert source is not None
    frame = source.data
    places = {str(name): position for position, name in enumerate(frame.columns)}
    columns = {name: frame.iloc[:, position] for name, position in places.items()}
    filled = _fill(streams, columns, lambda name: to_arrow(columns[name]))
    layout = layout_of(streams)
    index = pd.RangeIndex(len(layout.row), name=frame.index.name)
    if not isinstance(frame.index, pd.RangeIndex):
        index = frame.index.take(layout.row) if (layout.row >= 0).all() else _index_with_holes(frame.index, layout)
    series = {name: column if name in places else pandas_frame(pa.table({name: column}))[name]
              for name, column in filled.items()}  # fmt: skip
    result = pd.concat([column.set_axis(index) for column in series.values()], axis=1)
    result.columns = frame.columns.append(pd.Index([name for name in filled if name not in places]))
    result.attrs = dict(frame.attrs)
    return result


def _index_with_holes(index: Any, layout: Layout) -> Any:
    """The labels of the user's rows; the others have none."""
    import pandas as pd

    if isinstance(index, pd.MultiIndex):
        return index.take(layout.row, allow_fill=True, fill_value=np.nan)
    return pd.Index(take(index.to_series(), layout.row), name=index.name)


def _with_schema(frame: Any, schema: Mapping[str, Any]) -> Any:
    """The columns of a Polars frame with the dtypes that they had; an Enum gains the names that were put in."""
    import polars

    def dtype(name: str) -> Any:
        old = schema[name]
        if isinstance(old, polars.Enum):
            words = frame[name].drop_nulls().cast(polars.String).unique(maintain_order=True).to_list()
            return polars.Enum([*old.categories, *(word for word in words if word not in set(old.categories))])
        widened = frame[name].dtype.is_float() and not old.is_float()
        return frame[name].dtype if widened or old == polars.Null else old

    return frame.with_columns(
        polars.col(name).cast(polars.String).cast(dtype(name)) if isinstance(dtype(name), polars.Enum)
        else polars.col(name).cast(dtype(name)) for name in schema
    )  # fmt: skip


def style_of_times(streams: StreamSet) -> TimeStyle | None:
    """How the user's own table writes its times; None where there is no table with one row an event."""
    source = streams.source
    if source is None or source.by_stream or source.names.get("time") is None:
        return None
    if source.style is not None:
        style: TimeStyle = source.style
        return style
    name = str(source.names["time"])
    if source.kind == "pandas":
        column = to_arrow(source.data[next(each for each in source.data.columns if str(each) == name)])
    else:
        column = (source.data.select(name).to_arrow() if source.kind == "polars" else source.data)[name]
    return find_style(flat(column), source.axis, source.names.get("dates"))


def layout_of(streams: StreamSet) -> Layout:
    """The rows of the table that these streams are to be given back in."""
    assert streams.source is not None
    source = streams.source
    times = None if source.when is None else streams.axis.convert(streams.event_times, source.axis)
    return lay_out(source, streams.ids, streams.offsets, times)


def _fill(streams: StreamSet, columns: Mapping[str, Any], view: Callable[[str], pa.Array]) -> dict[str, Any]:
    """Each column of the table with the rows of the set's events, then the columns that were added."""
    source, layout = streams.source, layout_of(streams)
    assert source is not None
    names = source.names
    part = {name: role for role, name in names.items() if name is not None}
    style = source.style or find_style(flat(view(str(names["time"]))), source.axis, names.get("dates"))
    new, event = layout.new, layout.event
    filled: dict[str, Any] = {}
    rows = {"stream": layout.like, "start": layout.like, "end": layout.like}
    rows |= dict.fromkeys(("time", "type"), np.where(new, layout.like, layout.row))  # so that no value is lacking
    for name, column in columns.items():
        role = part.get(name, "")
        of_stream = name in XES_TEXT[::2] or ("lifecycle" in names and name.startswith("case:"))
        given = layout.peer if name in source.columns_of_streams else layout.row
        filled[name] = take(column, layout.like if of_stream else rows.get(role, given))
        if role == "time":
            filled[name] = put(filled[name], new, _times(streams, style, streams.event_times, event[new]))
        elif role == "type":
            kinds = _type_values(streams, flat(view(name)).type)
            values = kinds.take(pa.array(streams.event_types[event[new]]))
            if values.null_count:
                remedy = "make the column text"
                raise DataError(f"column {name!r} holds booleans, which cannot say all types", remedy=remedy)
            filled[name] = put(filled[name], new, values)
        elif name == names.get("transition"):
            steps = pa.array([name_and_transition(kind, names["lifecycle"])[1] for kind in streams.types], pa.string())
            filled[name] = put(filled[name], new, steps.take(pa.array(streams.event_types[event[new]])))
    return filled | _added(streams, layout, style, set(filled))


def flat(column: Any) -> pa.Array:
    """One Arrow array."""
    return column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column


def _times(streams: StreamSet, style: TimeStyle, values: NDArray[Any], events: NDArray[np.int64]) -> pa.Array:
    stream = streams.stream_of_event[events]
    return style.write(values[events], streams.axis, streams.starts[stream], streams.ends[stream])


def _added(streams: StreamSet, layout: Layout, style: TimeStyle, taken: set[str]) -> dict[str, Any]:
    """Start and end where rows alone no longer tell them, and the columns that the table did not have."""
    source = streams.source
    assert source is not None
    added: dict[str, Any] = {}
    for role, edges in (("start", streams.starts), ("end", streams.ends)):
        said = role not in source.assumed and "imputed" not in streams.columns
        if source.names[role] is None and (said or not layout.whole) and role not in taken:
            added[role] = style.write(edges, streams.axis, streams.starts, streams.ends).take(pa.array(layout.stream))
    at = pa.array(np.maximum(layout.event, 0), mask=layout.event < 0)
    for name, values in streams.columns.items():
        if name in source.extras:
            continue
        if name in taken or name in added:
            raise DataError(f"the table has a column {name!r} already", remedy="rename one of the two")
        if name in times_among(streams.columns):
            column = _times(streams, style, values.astype(np.float64), np.arange(streams.num_events))
        else:
            column = extra_column(name, values)
        column = column.take(at)
        added[name] = column.fill_null(False) if name == "imputed" else column
    return added


def _type_values(streams: StreamSet, kind: pa.DataType) -> pa.Array:
    """The value [K] that stands for each of the set's types in a column of this kind."""
    assert streams.source is not None
    kind = kind.value_type if pa.types.is_dictionary(kind) else kind
    if pa.types.is_boolean(kind):
        return pa.array([{"True": True, "False": False}.get(name) for name in streams.types], kind)
    if pa.types.is_integer(kind) or pa.types.is_floating(kind):
        return pa.array(streams.source.integers(streams.types), pa.int64()).cast(kind)
    mode = streams.source.names.get("lifecycle")
    return pa.array([name_and_transition(name, mode)[0] for name in streams.types], pa.string())


def _typed(source: Source) -> Source:
    """A table of text, with columns of dates, numbers and booleans where every value is one."""
    table, names = source.data, source.names
    request = Request(timezone=source.axis.timezone if source.axis.is_calendar else None, dates=names.get("dates"))
    places = Places(None, np.arange(1, table.num_rows + 1), source.codes, source.ids)
    columns = {}
    for name, column in zip(table.column_names, table.columns, strict=True):
        if name in (names["time"], names["start"], names["end"]):
            time = read_time_column(flat(column), f"column {name!r}", request, places)
            columns[name] = _typed_times(time, source.axis)
        elif name == names["type"]:
            columns[name] = (
                column if set(source.types) >= set(column.unique().to_pylist()) else infer(column, name, names)
            )
        else:
            columns[name] = infer(column, name, names)
    return replace(source, kind="arrow", data=pa.table(columns))


def _typed_times(time: TimeColumn, axis: TimeAxis) -> pa.Array:
    """Times as numbers, or as timestamps: microseconds, and nanoseconds only where these are needed."""
    if not axis.is_calendar:
        return pa.array(time.values, pa.float64(), mask=time.missing)
    instants = np.where(time.missing, 0, time.values).astype(np.int64)
    unit = "ns" if (instants % 1000).any() else "us"
    moments = pa.array(instants, pa.int64(), mask=time.missing).cast(pa.timestamp("ns", axis.timezone))
    return moments.cast(pa.timestamp(unit, axis.timezone))
