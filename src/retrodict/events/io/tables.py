"""Long tables, one row an event: pandas, Polars and Arrow, in and out.

>>> import pandas as pd
>>> frame = pd.DataFrame({"stream": ["a", "a"], "time": [0.5, 1.0], "type": ["up", "down"], "end": [2, 2]})
>>> from_frame(frame, Request()).types
('down', 'up')
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from retrodict.events.io.aside import read_layout
from retrodict.events.io.known_layouts import XES_KEY, XES_TEXT, recognise
from retrodict.events.io.record_keys import RECORDS
from retrodict.events.io.record_tables import from_record_rows
from retrodict.events.io.request import Request
from retrodict.events.io.roles import names_of_times
from retrodict.events.stream_set import StreamSet, first_repeat

if TYPE_CHECKING:
    import pandas as pd


def from_frame(frame: Any, request: Request) -> StreamSet:
    """A stream set from a pandas or Polars data frame or an Arrow table."""
    library = type(frame).__module__.partition(".")[0]
    if library == "polars" and type(frame).__name__ == "LazyFrame":
        frame = _collected(frame, request)
    if library == "pandas":
        _refuse_repeated_columns([str(name) for name in frame.columns], request)
        if RECORDS in frame.columns and _holds_lists(frame):
            return from_record_rows(frame, library, request)
        recognise([str(name) for name in frame.columns], request)
        kept = frame.copy()  # the caller's table may change
        return read_layout(_pandas_columns(frame, request), len(frame), request, ("pandas", kept))
    if library == "polars":
        try:
            table = frame.to_arrow()
        except Exception as error:  # Polars raises many kinds, all of its own
            raise request.error(
                f"the Polars frame cannot become an Arrow table: {error}", "drop or convert columns of Python objects"
            ) from error
        return from_arrow(table, request, ("polars", frame))
    return from_arrow(frame, request)


def from_arrow(table: pa.Table, request: Request, kept: tuple[str, Any] | None = None) -> StreamSet:
    """A stream set from an Arrow table; ``kept`` is the kind and the form in which the user had it."""
    _refuse_repeated_columns(table.column_names, request)
    if RECORDS in table.column_names and _is_list(table.schema.field(RECORDS).type):
        return from_record_rows(table, "arrow" if kept is None else kept[0], request)
    columns = dict(zip(table.column_names, table.columns, strict=True))
    if XES_KEY in (table.schema.metadata or {}):
        columns = {name: column for name, column in columns.items() if name not in XES_TEXT}
    recognise(columns, request)
    return read_layout(columns, table.num_rows, request, kept or ("arrow", table))


def _collected(frame: Any, request: Request) -> Any:
    """The rows of a Polars LazyFrame, which is computed now."""
    try:
        return frame.collect()
    except Exception as error:  # Polars raises many kinds, all of its own
        raise request.error(f"the LazyFrame cannot be computed: {str(error)[:300]}", "correct its query") from error


def _is_list(kind: pa.DataType) -> bool:
    tests = (pa.types.is_list, pa.types.is_large_list, pa.types.is_fixed_size_list, pa.types.is_list_view)
    return any(test(kind) for test in tests)


def _holds_lists(frame: pd.DataFrame) -> bool:
    """Whether the column by which records are known holds lists; where it has no values, the types' column tells."""
    series = frame[RECORDS]
    arrow = getattr(series.dtype, "pyarrow_dtype", None)
    if arrow is not None:
        return _is_list(arrow)
    if series.dtype != object:
        return False
    values = series.dropna()
    return any(isinstance(value, list | tuple | np.ndarray) for value in values) or (
        values.empty and "type_event" in frame.columns
    )


def _refuse_repeated_columns(names: Sequence[str], request: Request) -> None:
    twice = first_repeat(names)
    if twice is not None:
        raise request.error(f"two columns are named {twice!r}", "give each column a name of its own")


def _pandas_columns(frame: pd.DataFrame, request: Request) -> dict[str, Any]:
    """Each column for Arrow; columns of Python objects stay as they are, unless they have a part to play."""
    times = names_of_times(request)
    parts = {request.stream or "stream", request.type or "type"}
    columns: dict[str, Any] = {}
    for position, name in enumerate(map(str, frame.columns)):
        series = frame.iloc[:, position]
        if series.dtype == object:
            values = series.to_numpy(copy=True)
            values[series.isna().to_numpy()] = None
            if name in times:
                columns[name] = _times_from_objects(values)
            elif name in parts:
                columns[name] = _arrow_from_objects(values, name, request)
            else:
                columns[name] = values
        else:
            columns[name] = _arrow_from_series(series, name, name in times | parts, request)
    return columns


def _arrow_from_series(series: Any, name: str, has_part: bool, request: Request) -> Any:
    """The column for Arrow; what Arrow does not know (periods, complex numbers) stays a column of objects."""
    try:
        column = pa.array(series, from_pandas=True)
    except (pa.ArrowException, TypeError, ValueError, NotImplementedError):
        column = None
    if column is not None and not isinstance(column.type, pa.BaseExtensionType):
        return column
    if has_part:
        raise request.error(
            f"column {name!r} holds {series.dtype} values", "convert them to numbers, datetimes or text"
        )
    return series.to_numpy(dtype=object)


def _times_from_objects(values: NDArray[Any]) -> pa.Array:
    """As text: Arrow itself would silently take naive datetimes for UTC when zones are mixed."""

    def text(value: Any) -> str | None:
        return None if value is None else value.isoformat() if hasattr(value, "isoformat") else str(value)

    return pa.array([text(value) for value in values], pa.large_string())


def _arrow_from_objects(values: NDArray[Any], name: str, request: Request) -> pa.Array:
    try:
        return pa.array(values, from_pandas=True)
    except (pa.ArrowException, OverflowError) as error:
        kinds = [type(value).__name__ for value in values if value is not None]
        other = next((kind for kind in kinds if kind != kinds[0]), None)
        found = f"{kinds[0]} values" if other is None else f"both {kinds[0]} and {other} values"
        raise request.error(
            f"column {name!r} holds {found}", "make them all text, or all integers, for example with .astype(str)"
        ) from error
