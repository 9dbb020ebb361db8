"""Parquet files: a long table that remembers its vocabulary, its unit and its calendar.

What a table cannot say (types that never occur, the unit, the origin, the zone) stands in the file's schema
metadata under ``retrodict``, so that a written file reads back equal without any argument.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, BinaryIO

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from numpy.typing import NDArray

from retrodict import _limits
from retrodict.errors import DataError
from retrodict.events.io.files import cannot_read, open_regular
from retrodict.events.io.own_table import about, write_table
from retrodict.events.io.request import Request, check_dates
from retrodict.events.io.tables import from_arrow
from retrodict.events.plain import parse_json
from retrodict.events.stream_set import StreamSet
from retrodict.events.time_axis import TimeAxis

_KEY = b"retrodict"
_SMALL = 1 << 30  # bytes of text in one column


def read_parquet(path: Path, request: Request) -> StreamSet:
    """A stream set from a Parquet file, ours or anybody's."""
    table = read_checked(path)
    use_metadata(table.schema, request)
    return from_arrow(table, request)


def read_checked(path: Path) -> pa.Table:
    """All of a Parquet file from anybody, or an error in words."""
    try:
        table = _read(path)
        table.validate(full=True)  # indices and text of a damaged file may crash the process
        for field in table.schema:  # names that are not UTF-8 show only when they are looked at
            _ = field.name, getattr(field.type, "tz", None)
    except OSError as error:
        if path.is_file() and not error.errno:  # Arrow's own, about the contents
            raise damaged(path, error) from error
        raise cannot_read(path, error) from error
    except (pa.ArrowException, UnicodeDecodeError) as error:
        raise damaged(path, error) from error
    return table.replace_schema_metadata(
        {key: value for key, value in (table.schema.metadata or {}).items() if not key.startswith(_KEY + b".")}
    )


def _read(path: Path, names: Sequence[str] | None = None) -> pa.Table:
    """All rows of all columns, or of some, if the sizes that the file declares fit into the memory.

    A few kilobytes of dictionary-encoded text may stand for gigabytes: text is read as it is encoded, and spread out
    once its true size is known.
    """
    with open_regular(path) as raw:
        if not os.fstat(raw.fileno()).st_size:
            raise DataError("the file is empty", file=path, remedy="give a file with at least one event")
        about = pq.ParquetFile(raw)
        rows, schema = about.metadata.num_rows, about.schema_arrow
        _limits.check("rows", rows, f"the file says that it has {rows:,} rows", file=path)
        groups = [about.metadata.row_group(number) for number in range(about.metadata.num_row_groups)]
        need = 8.0 * rows * len(schema) + sum(max(group.total_byte_size, 0) for group in groups)
        _limits.ask_memory(need, "reading this file", "split the file", file=path)
        texts = [field.name for field in schema if _is_text(field.type) and (names is None or field.name in names)]
        raw.seek(0)
        table = pq.ParquetFile(raw, read_dictionary=texts).read(names)
    for name in texts:
        table = _spread(table, name, schema.field(name).type, path)
    return table


def _is_text(kind: pa.DataType) -> bool:
    return any(test(kind) for test in (pa.types.is_string, pa.types.is_large_string, pa.types.is_binary))


def _spread(table: pa.Table, name: str, kind: pa.DataType, path: Path) -> pa.Table:
    """A column of text as text, if that fits into the memory."""
    at = table.column_names.index(name)
    column = table.column(at)
    if not pa.types.is_dictionary(column.type):
        return table
    column.validate(full=True)
    longest = sum((pc.max(pc.binary_length(chunk.dictionary)).as_py() or 0) * len(chunk) for chunk in column.chunks)
    if longest > _SMALL:
        longest = sum(
            pc.sum(pc.binary_length(chunk.dictionary).take(chunk.indices)).as_py() or 0 for chunk in column.chunks
        )
    _limits.ask_memory(longest + 8 * len(column), f"column {name!r}", "leave the column out", file=path)
    large = {pa.string(): pa.large_string(), pa.binary(): pa.large_binary()}.get(kind, kind)
    return table.set_column(at, name, column.cast(kind if longest < _SMALL else large))


def read_columns(path: Path, names: Sequence[str] | None = None) -> dict[str, NDArray[Any]]:
    """The columns of a Parquet file (or some of them), whatever they are, as arrays [R]; lists become objects."""
    table = read_arrow(path, names)
    return {name: table[name].to_numpy() for name in table.column_names}


def read_arrow(path: Path, names: Sequence[str] | None = None) -> pa.Table:
    """A Parquet file (or some of its columns), whatever it holds, as an Arrow table."""
    try:
        table = _read(path, names)
        table.validate(full=True)
    except pa.ArrowException as error:
        raise damaged(path, error) from error
    return table


def damaged(path: Path, error: Exception) -> DataError:
    """The error for a file that is no Parquet, or no longer."""
    reason = str(error).splitlines()[0].rstrip(".")
    return DataError(
        f"this is not a Parquet file, or it is cut off or damaged ({reason})",
        file=path,
        remedy="write or copy the file again, or pass format= if it is something else",
    )


def use_metadata(schema: pa.Schema, request: Request) -> None:
    """Take from what we wrote into a file's schema what the caller did not give."""
    written = (schema.metadata or {}).get(_KEY)
    if written is None:
        return
    try:
        facts = parse_json(written)
        axis = TimeAxis.from_dict(facts["axis"])
        types = tuple(str(name) for name in facts["types"])
        dates = facts.get("dates")
        if dates is not None and request.dates is None:
            request.dates = check_dates(dates)
    except (ValueError, KeyError, TypeError, AttributeError, DataError) as error:
        raise request.error(
            "the 'retrodict' entry of the schema metadata is damaged", "write the file again with write_events"
        ) from error
    request.axis = axis
    if request.types is None and request.codes is None and request.lifecycle is None:
        request.types = types


def write_parquet(streams: StreamSet, file: BinaryIO, target: Path, names: Mapping[str, str | None]) -> None:
    """Write a stream set as Parquet into ``file``, which will become ``target``."""
    if streams.source is not None and streams.source.names.get("schema") is not None:  # a table of EasyTPP records
        from retrodict.events.io.own_records import write_record_table

        return write_record_table(streams, file, target)
    table = write_table(streams, names)
    table = with_metadata(table, streams)
    try:
        pq.write_table(table, file)
    except (pa.ArrowException, ValueError) as error:
        remedy = "convert the extra columns to numbers or text, or leave them out"
        raise DataError(f"Parquet cannot hold these columns: {error}", file=target, remedy=remedy) from error


def with_metadata(table: pa.Table, streams: StreamSet) -> pa.Table:
    """The table with what it cannot say itself in its schema, and with nothing that is for us alone."""
    kept = {key: value for key, value in (table.schema.metadata or {}).items() if not key.startswith(_KEY)}
    facts = about(streams, table)
    return table.replace_schema_metadata(kept | ({} if facts is None else {_KEY: json.dumps(facts).encode()}))
