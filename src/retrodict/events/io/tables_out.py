"""Long tables, one row an event, from a stream set: Arrow, pandas and Polars."""

from __future__ import annotations

import warnings
from collections.abc import Hashable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from retrodict.errors import DataError, DataNotice
from retrodict.events.io.roles import RESERVED
from retrodict.events.results import times_among
from retrodict.events.stream import first_repeat

if TYPE_CHECKING:
    import pandas as pd

    from retrodict.events.stream_set import StreamSet


def to_table(streams: StreamSet, names: Mapping[str, str] | None = None) -> pa.Table:
    """An Arrow table with columns stream, time, type, start, end (or what ``names`` calls them) and the extra columns.

    An empty stream is one row with neither time nor type. Types are dictionary-encoded with the whole
    vocabulary; calendar times are timestamps.
    """
    own = [(names or {}).get(name, name) for name in RESERVED]
    twice = first_repeat([*own, *streams.columns])
    if twice is not None:
        remedy = f"rename it; {', '.join(own)} are taken"
        raise DataError(f"the column {twice!r} has the name of one of a table's own columns", remedy=remedy)
    rows, events = _rows_of(streams)
    index = np.maximum(events, 0)
    source = pa.array(index, mask=events < 0)
    codes = streams.event_types[index] if streams.num_events else np.zeros(len(index), dtype=np.int64)
    types = pa.DictionaryArray.from_arrays(
        pa.array(codes.astype(np.int32), mask=events < 0), pa.array(streams.types, pa.string())
    )
    columns = {
        "stream": _id_column(streams.ids).take(pa.array(rows)),
        "time": _time_column(streams.event_times, streams).take(source),
        "type": types,
        "start": _time_column(streams.starts, streams).take(pa.array(rows)),
        "end": _time_column(streams.ends, streams).take(pa.array(rows)),
    }
    times = times_among(streams.columns)
    for name, values in streams.columns.items():
        column = _time_column(values, streams) if name in times else extra_column(name, values)
        columns[f"extra {name}"] = column.take(source)
    return pa.table(columns).rename_columns([*own, *streams.columns])


def _rows_of(streams: StreamSet) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """For each row of the table its stream, and its event or -1 for an empty stream."""
    lengths = streams.lengths
    rows = np.repeat(np.arange(len(streams)), np.maximum(lengths, 1))
    events = np.full(len(rows), -1, dtype=np.int64)
    events[lengths[rows] > 0] = np.arange(streams.num_events)
    return rows, events


def _id_column(ids: Sequence[Hashable]) -> pa.Array:
    """Ids as integers or text; of anything else its text, with a notice."""
    kinds = {type(name) for name in ids}
    if kinds <= {str}:
        return pa.array(ids, pa.string())
    if all(issubclass(kind, int | np.integer) and kind is not bool for kind in kinds):
        values = [int(name) for name in ids]  # type: ignore[call-overload]
        if all(-(2**63) <= value < 2**63 for value in values):
            return pa.array(values, pa.int64())
    texts = [str(name) for name in ids]
    twice = first_repeat(texts)
    if twice is not None:
        remedy = "make the ids all text or all integers, and distinct"
        raise DataError(f"two ids are both written {twice!r}", remedy=remedy)
    notice = "the stream ids are neither all text nor all integers; they were written as text"
    warnings.warn(notice, DataNotice, stacklevel=3)
    return pa.array(texts, pa.string())


def _time_column(times: NDArray[np.float64], streams: StreamSet) -> pa.Array:
    """Numbers, or timestamps: microseconds, and nanoseconds only where these are needed."""
    axis = streams.axis
    if not axis.is_calendar:
        return pa.array(times, pa.float64(), from_pandas=True)
    missing = np.isnan(times)
    instants = axis.to_instants(np.where(missing, 0.0, times))
    column = pa.array(instants, pa.int64(), mask=missing).cast(pa.timestamp("ns", axis.timezone))
    return column.cast(pa.timestamp("us", axis.timezone)) if not (instants % 1000).any() else column


def extra_column(name: str, values: NDArray[Any]) -> pa.Array:
    """An extra column [E] for Arrow."""
    try:
        if values.ndim > 1:
            return pa.array(list(values))
        if values.dtype.kind == "M" and values.dtype != np.dtype("datetime64[D]"):
            return pa.array(values, from_pandas=False)
        return pa.array(values, from_pandas=values.dtype.kind == "f")
    except (pa.ArrowException, OverflowError, TypeError) as error:
        raise DataError(
            f"the extra column {name!r} holds values that a table cannot: {error}",
            remedy="convert it to numbers or text, or leave it out",
        ) from error


def to_frame(streams: StreamSet, library: str = "pandas") -> Any:
    """The table of ``to_table`` as a pandas or Polars data frame."""
    table = to_table(streams)
    if library == "pandas":
        return pandas_frame(table)
    if library == "polars":
        text = table.set_column(2, "type", table["type"].cast(pa.string()))
        frame = polars_frame(text)
        import polars

        return frame.with_columns(polars.col("type").cast(polars.Enum(list(streams.types))))
    raise DataError(f"unknown library {library!r}", remedy='use library="pandas" or library="polars"')


def in_library(frame: pd.DataFrame, library: str) -> Any:
    """A pandas data frame as one of the library that is asked for."""
    if library == "pandas":
        return frame
    if library == "polars":
        return polars_frame(pa.Table.from_pandas(frame, preserve_index=False))
    raise DataError(f"unknown library {library!r}", remedy='use library="pandas" or library="polars"')


def pandas_frame(table: pa.Table) -> pd.DataFrame:
    """An Arrow table as a pandas data frame in which integers stay integers."""
    import pandas as pd

    nullable: Mapping[pa.DataType, Any] = {
        pa.int8(): pd.Int8Dtype(), pa.int16(): pd.Int16Dtype(), pa.int32(): pd.Int32Dtype(),
        pa.int64(): pd.Int64Dtype(), pa.uint8(): pd.UInt8Dtype(), pa.uint16(): pd.UInt16Dtype(),
        pa.uint32(): pd.UInt32Dtype(), pa.uint64(): pd.UInt64Dtype(), pa.bool_(): pd.BooleanDtype(),
    }  # fmt: skip
    frame = table.to_pandas()
    for name, column in zip(table.column_names, table.columns, strict=True):
        if column.null_count and column.type in nullable:  # plain pandas would make floats of them
            frame[name] = column.to_pandas(types_mapper=nullable.get)
    return frame


def polars_frame(table: pa.Table) -> Any:
    """An Arrow table as a Polars data frame; offsets such as -07:00, which Polars has no zone for, become UTC."""
    try:
        import polars
    except ModuleNotFoundError as error:
        raise DataError("Polars is not installed", remedy="pip install 'retrodict[polars]'") from error
    for i, field in enumerate(table.schema):
        if pa.types.is_timestamp(field.type) and (field.type.tz or "")[:1] in ("+", "-"):
            table = table.set_column(i, field.name, table.column(i).cast(pa.timestamp(field.type.unit, "UTC")))
    return polars.from_arrow(table)
