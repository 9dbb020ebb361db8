"""Rows of a table chosen, repeated and put in, with its dtypes kept: Arrow and pandas columns."""

from __future__ import annotations

import datetime
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

Rows = NDArray[np.int64]
Mask = NDArray[np.bool_]


def take(column: Any, rows: Rows) -> Any:
    """The values at ``rows`` [R]; null where the row is -1."""
    if isinstance(column, pa.Array | pa.ChunkedArray):
        return column.take(pa.array(rows, mask=rows < 0))
    return _take_series(column, rows)


def put(column: Any, mask: Mask, values: pa.Array) -> Any:
    """The column [R] with ``values`` [V] where ``mask`` is true; its dtype is widened only where it has to be."""
    if not mask.any():
        return column
    if isinstance(column, pa.Array | pa.ChunkedArray):
        return _put_arrow(column, mask, values)
    return _put_series(column, mask, values)


def to_arrow(column: Any) -> pa.Array:
    """A column for looking at its kind: Python objects of dates count as timestamps, others as text."""
    if isinstance(column, pa.Array | pa.ChunkedArray):
        return column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
    if column.dtype == object:
        values = [value for value in column if _is_there(value)]
        kinds = {type(value) for value in values}
        if not kinds:
            return pa.nulls(0)
        if kinds == {str}:
            return pa.array(values, pa.string())
        if kinds == {datetime.date}:
            return pa.array(values, pa.date32())
        if all(issubclass(kind, datetime.datetime) for kind in kinds):
            zone = values[0].tzinfo
            return pa.array(values, pa.timestamp("us", None if zone is None else "UTC"))
        return pa.array([], pa.float64())
    return pa.array(column, from_pandas=True)


def _is_there(value: Any) -> bool:
    return value is not None and value == value  # NaN and NaT differ from themselves


def _spread(values: pa.Array, mask: Mask) -> pa.Array:
    """``values`` [V] at the places of ``mask`` [R], null elsewhere."""
    return values.take(pa.array(np.cumsum(mask) - 1, mask=~mask))


def _put_arrow(column: Any, mask: Mask, values: pa.Array) -> Any:
    column = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
    kind = column.type
    if pa.types.is_dictionary(kind):
        return _put_dictionary(column, mask, values)
    if pa.types.is_null(kind) or not column.drop_null().type.equals(kind):
        column, kind = column.cast(values.type), values.type
    if pa.types.is_integer(kind) and pa.types.is_floating(values.type):
        kind = pa.float64()
    if pa.types.is_decimal(kind) or pa.types.is_float16(kind) or pa.types.is_float32(kind):
        kind = values.type if pa.types.is_floating(values.type) else kind
    if not len(column.drop_null()) and not _alike(kind, values.type):
        column, kind = pa.nulls(len(column), values.type), values.type
    return pc.if_else(pa.array(mask), _spread(values, mask).cast(kind), column.cast(kind))


def _alike(one: pa.DataType, two: pa.DataType) -> bool:
    """Whether values of the second type can be put into a column of the first."""
    dated = [pa.types.is_temporal(kind) for kind in (one, two)]
    return dated[0] == dated[1]


def _put_dictionary(column: pa.DictionaryArray, mask: Mask, values: pa.Array) -> pa.DictionaryArray:
    """The old entries keep their numbers; new ones follow."""
    kind = column.type
    words, fresh = column.dictionary, values.cast(kind.value_type)
    new = [word for word in pc.unique(fresh).to_pylist() if word not in set(words.to_pylist())]
    words = pa.concat_arrays([words, pa.array(new, words.type)])
    codes = pc.index_in(fresh, words).cast(pa.int64())
    indices = pc.if_else(pa.array(mask), _spread(codes, mask), column.indices.cast(pa.int64()))
    index = kind.index_type if len(words) <= 127 else pa.int32()
    return pa.DictionaryArray.from_arrays(indices.cast(index), words, ordered=kind.ordered)


def _take_series(series: Any, rows: Rows) -> Any:
    import pandas as pd

    holes = bool((rows < 0).any())
    if holes and isinstance(series.dtype, np.dtype) and series.dtype.kind in "iub":
        kind = series.dtype.name
        series = series.astype("boolean" if kind == "bool" else kind.replace("i", "I", 1).replace("u", "U", 1))
    values = series.array
    try:
        taken = values.take(rows, allow_fill=holes)
    except (TypeError, ValueError):  # such as intervals between integers
        taken = values.astype(object).take(rows, allow_fill=holes)
    return pd.Series(taken, dtype=getattr(taken, "dtype", None), name=series.name)


def _put_series(series: Any, mask: Mask, values: pa.Array) -> Any:
    import pandas as pd

    if isinstance(series.dtype, pd.CategoricalDtype):
        words = values.to_pandas().astype(series.cat.categories.dtype)
        new = [word for word in pd.unique(words) if word not in series.cat.categories]
        series = series.cat.add_categories(new)
        series[mask] = words.to_numpy()
        return series
    if series.dtype == object:
        return _put_objects(series, mask, values)
    fresh = values.to_pandas()
    if series.isna().all() and pa.types.is_temporal(values.type) != (series.dtype.kind == "M"):
        series = pd.Series(pa.nulls(len(series), values.type).to_pandas())
    elif pa.types.is_floating(values.type) and pd.api.types.is_numeric_dtype(series.dtype):
        nullable = pd.api.types.is_extension_array_dtype(series.dtype)
        series = series.astype("Float64" if nullable else "float64")
    series = series.copy()
    series[mask] = (
        fresh.astype(series.dtype).to_numpy() if series.dtype.kind != "M" else fresh.astype(series.dtype).array
    )
    return series


def _put_objects(series: Any, mask: Mask, values: pa.Array) -> Any:
    """Python objects of the kind that the column holds."""
    there = next((value for value in series if _is_there(value)), None)
    objects: list[Any] = values.to_pylist()
    if isinstance(there, datetime.datetime):
        import pandas as pd

        zone = there.tzinfo
        objects = [value if zone is None else value.astimezone(zone) for value in objects]
        objects = [pd.Timestamp(value) for value in objects] if isinstance(there, pd.Timestamp) else objects
    cells = series.to_numpy(copy=True)
    cells[np.flatnonzero(mask)] = np.fromiter(objects, dtype=object, count=len(objects))
    return type(series)(cells, dtype=object, name=series.name)
