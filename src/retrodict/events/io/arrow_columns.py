"""Arrow columns of stream ids, of types and of extra values, as NumPy arrays."""

from __future__ import annotations

from collections.abc import Hashable
from contextlib import suppress
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from retrodict.events.io.request import Places, Request
from retrodict.events.io.time_column import decoded, to_mask
from retrodict.events.io.type_codes import index_integers, index_labels, whole_numbers


def flatten(column: pa.Array | pa.ChunkedArray) -> pa.Array:
    """One Arrow array [R], of a type that Arrow's functions know."""
    if isinstance(column.type, pa.BaseExtensionType):
        chunks = column.chunks if isinstance(column, pa.ChunkedArray) else [column]
        column = pa.chunked_array([chunk.storage for chunk in chunks], type=column.type.storage_type)
    kind = column.type
    if pa.types.is_dictionary(kind):
        if isinstance(column, pa.ChunkedArray):
            column = column.unify_dictionaries()
        if pa.types.is_string_view(kind.value_type):
            column = column.cast(pa.dictionary(kind.index_type, pa.large_string()))
    elif pa.types.is_string(kind) or pa.types.is_string_view(kind):
        column = column.cast(pa.large_string())
    return column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column


def read_stream_ids(column: pa.Array, label: str, request: Request) -> tuple[NDArray[np.int64], list[Hashable]]:
    """The stream of each row [R] as a code, and the ids in order of first appearance."""
    column = decoded(column)
    missing = to_mask(column.is_null(nan_is_null=True))
    if missing.any():
        remedy = "say which stream the row belongs to, or drop the row"
        raise request.error(f"{label}: the stream id is missing", remedy, row=int(np.argmax(missing)) + 1)
    if pa.types.is_floating(column.type):  # pandas makes floats of integers next to a NaN
        with suppress(pa.ArrowInvalid):
            column = column.cast(pa.int64())
    try:
        encoded = column.dictionary_encode()
    except pa.ArrowException as error:
        raise request.error(
            f"{label} holds {column.type} values, which cannot be stream ids", "use integers or text"
        ) from error
    return encoded.indices.to_numpy(zero_copy_only=False).astype(np.int64), encoded.dictionary.to_pylist()


def read_types(
    column: pa.Array, label: str, request: Request, places: Places
) -> tuple[NDArray[np.int64], tuple[str, ...]]:
    """Type indices [E] and the vocabulary, from a column [E] of names, integers or booleans."""
    kind = column.type
    if pa.types.is_dictionary(kind) and not column.dictionary.null_count:
        labels = column.dictionary
        if pa.types.is_integer(labels.type):
            labels = labels.cast(pa.string())
        if pa.types.is_string(labels.type) or pa.types.is_large_string(labels.type):
            codes = column.indices.to_numpy(zero_copy_only=False).astype(np.int64)
            return index_labels(codes, labels.to_pylist(), request, places, ordered=True)
    if pa.types.is_boolean(kind):
        codes = to_mask(column).astype(np.int64)
        return index_labels(codes, ["False", "True"], request, places, ordered=True)
    if pa.types.is_string(kind) or pa.types.is_large_string(kind):
        encoded = column.dictionary_encode()
        codes = encoded.indices.to_numpy(zero_copy_only=False).astype(np.int64)
        return index_labels(codes, encoded.dictionary.to_pylist(), request, places)
    if pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_null(kind):
        numbers = column.to_numpy(zero_copy_only=False)
        whole = whole_numbers(numbers, places) if numbers.dtype.kind == "f" else numbers.astype(np.int64)
        return index_integers(whole, request, places)
    raise request.error(
        f"{label} holds {kind} values, which cannot be types", "give types as names (text) or as integers"
    )


def column_values(column: pa.Array) -> NDArray[Any]:
    """An extra column as an array [R]: null is NaN among floats, NaT among dates, else None."""
    column = decoded(column)
    kind = column.type
    numeric = pa.types.is_integer(kind) or pa.types.is_boolean(kind)
    dates = (pa.types.is_timestamp(kind) and kind.tz is None) or pa.types.is_date32(kind)
    if (numeric and not column.null_count) or pa.types.is_floating(kind) or dates:
        return np.array(column.to_numpy(zero_copy_only=False))  # a copy: the caller's table may change
    if pa.types.is_timestamp(kind):  # NumPy has no time zones, and Python's datetimes no nanoseconds
        moments = column.cast(pa.timestamp(kind.unit, "UTC"))  # in a zone, an hour of the clock may come twice
        column = pc.floor_temporal(moments, unit="microsecond").cast(pa.timestamp("us", kind.tz))
    return np.fromiter(column.to_pylist(), dtype=object, count=len(column))
