"""Tables with one EasyTPP record a row, the lists of a record as values of list columns."""

from __future__ import annotations

import base64
from collections.abc import Mapping
from typing import Any

import pyarrow as pa

from retrodict import _limits
from retrodict.events.io.easytpp import from_records
from retrodict.events.io.request import Request
from retrodict.events.stream_set import StreamSet

_BYTES = 120  # of memory for an event of a record


def from_record_rows(table: Any, library: str, request: Request) -> StreamSet:
    """A stream set from a table with one record a row: Arrow, or pandas with lists as values."""
    try:
        arrow = table if isinstance(table, pa.Table) else pa.Table.from_pandas(table, preserve_index=False)
        rows = arrow.to_pylist() if _fits(arrow, request) else []
    except (pa.ArrowException, TypeError, ValueError) as error:
        reason = str(error).splitlines()[0][:200]
        remedy = "give time_since_start and type_event as lists of numbers"
        raise request.error(f"this is no table of EasyTPP records ({reason})", remedy) from error
    schema = base64.b64encode(arrow.schema.serialize().to_pybytes()).decode()
    own: Mapping[str, str] = {"library": library, "schema": schema}
    return from_records([(n, _without_nulls(row)) for n, row in enumerate(rows, start=1)], request, own)


def _without_nulls(row: dict[str, Any]) -> dict[str, Any]:
    """A row without the keys that other records have and this one does not."""
    return {key: value for key, value in row.items() if value is not None}


def _fits(table: pa.Table, request: Request) -> bool:
    number = sum(getattr(column, "nbytes", 0) for column in table.columns) / 8
    _limits.ask_memory(_BYTES * number, "reading these records", "split the file", file=request.file)
    return True
