"""Parquet files: a long table that remembers its vocabulary, its unit and its calendar.

What a table cannot say (types that never occur, the unit, the origin, the zone) stands in the file's schema
metadata under ``retrodict``, so that a written file reads back equal without any argument.
"""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from retrodict.errors import DataError
from retrodict.events.io.files import cannot_read
from retrodict.events.io.request import Request
from retrodict.events.io.tables import from_arrow, to_table
from retrodict.events.stream_set import StreamSet
from retrodict.events.time_axis import TimeAxis

_KEY = b"retrodict"


def read_parquet(path: Path, request: Request) -> StreamSet:
    """A stream set from a Parquet file, ours or anybody's."""
    try:
        if not path.stat().st_size:
            raise DataError("the file is empty", file=path, remedy="give a file with at least one event")
        table = pq.ParquetFile(path).read()
        table.validate(full=True)  # a damaged file may hold indices and text that crash whoever uses them
        for field in table.schema:  # names that are not UTF-8 show only when they are looked at
            _ = field.name, getattr(field.type, "tz", None)
    except OSError as error:
        if path.is_file() and not error.errno:  # Arrow's own, about the contents
            raise _damaged(path, error) from error
        raise cannot_read(path, error) from error
    except (pa.ArrowException, UnicodeDecodeError) as error:
        raise _damaged(path, error) from error
    written = (table.schema.metadata or {}).get(_KEY)
    if written is not None:
        _use_metadata(written, request)
    return from_arrow(table, request)


def _damaged(path: Path, error: Exception) -> DataError:
    reason = str(error).splitlines()[0].rstrip(".")
    return DataError(
        f"this is not a Parquet file, or it is cut off or damaged ({reason})",
        file=path,
        remedy="write or copy the file again, or pass format= if it is something else",
    )


def _use_metadata(written: bytes, request: Request) -> None:
    """Take from the file what the caller did not give."""
    try:
        facts = json.loads(written)
        axis = TimeAxis.from_dict(facts["axis"])
        types = tuple(str(name) for name in facts["types"])
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise request.error(
            "the 'retrodict' entry of the schema metadata is damaged",
            "write the file again with write_events",
        ) from error
    request.axis = axis
    if request.types is None:
        request.types = types


def write_parquet(streams: StreamSet, path: Path, target: Path) -> None:
    """Write a stream set to ``path``, which will be moved to ``target``, as Parquet."""
    facts = {"types": list(streams.types), "axis": streams.axis.to_dict()}
    table = to_table(streams).replace_schema_metadata({_KEY: json.dumps(facts).encode()})
    try:
        pq.write_table(table, path)
    except (pa.ArrowException, ValueError) as error:
        raise DataError(
            f"Parquet cannot hold these columns: {error}",
            file=target,
            remedy="convert the extra columns to numbers or text, or leave them out",
        ) from error
