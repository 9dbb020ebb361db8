"""CSV files, plain or gzipped: a long table as text.

CSV holds no types: a column in which every value is written as an integer is read as integers ("007" is text),
and the vocabulary is what occurs, unless ``types=`` gives it. An empty field is a missing value, and ``""``
is empty text. Datetimes with a zone are written in UTC. Fields are separated by commas, or, where the header has none,
by semicolons, tabs or bars; a table is written again with the separator that it came with.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, BinaryIO

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as arrow_csv

from retrodict import _limits
from retrodict.errors import DataError
from retrodict.events.io.files import packed, read_bytes
from retrodict.events.io.known_layouts import recognise
from retrodict.events.io.own_table import write_table
from retrodict.events.io.request import Request
from retrodict.events.io.roles import names_of_times
from retrodict.events.io.tables import from_arrow
from retrodict.events.io.text_columns import infer, to_lines
from retrodict.events.stream_set import StreamSet

_MARKS = {",": "commas", ";": "semicolons", "\t": "tabs", "|": "bars"}
_HEADER = 1 << 16  # bytes in which a header ends

SEPARATOR = b"retrodict.separator"  # in the metadata of a table that came with another one than commas


def separator_of(beginning: bytes) -> str:
    """What separates the fields of a text, by its header: a comma, or what is there instead."""
    header = beginning.split(b"\n", 1)[0]
    return next((mark for mark in ",;\t|" if mark.encode() in header), ",")


def read_csv(path: Path, request: Request) -> StreamSet:
    """A stream set from a CSV file with a header."""
    data = read_bytes(path)
    mark = separator_of(data[:_HEADER])
    _ask(data, path, mark)
    table = _parse(pa.py_buffer(data), request, mark)
    if mark != ",":
        table = table.replace_schema_metadata({SEPARATOR: mark.encode()})
    recognise(table.column_names, request)
    kind = request.type or "type"
    names = {"type": kind, "stream": str(request.stream or "stream")}
    times = names_of_times(request)
    columns = []
    for name, column in zip(table.column_names, table.columns, strict=True):
        if name in times or (name == kind and _are_names(column, request)):
            columns.append(column)
        else:
            columns.append(infer(column, name, names))
    return from_arrow(pa.Table.from_arrays(columns, names=table.column_names), request, ("csv", table))


def _ask(data: bytes, path: Path, mark: str) -> None:
    """Refuse a table that would not fit into the memory: its text twice, and the place of every field."""
    lines = data.count(b"\n") + 1
    _limits.check("rows", lines, f"the file has {lines:,} lines", file=path)
    fields = data.count(mark.encode(), 0, max(data.find(b"\n"), 0)) + 1
    need = 2 * len(data) + 16 * lines * fields
    _limits.ask_memory(need, "reading this table", "split the file", file=path)


def _parse(data: pa.Buffer, request: Request, mark: str) -> pa.Table:
    """Every column as text: what it means is decided later, for the whole column at once."""
    parse = arrow_csv.ParseOptions(newlines_in_values=True, delimiter=mark)
    try:
        with arrow_csv.open_csv(pa.BufferReader(data), parse_options=parse) as reader:
            names = reader.schema.names
        convert = arrow_csv.ConvertOptions(
            column_types=dict.fromkeys(names, pa.large_string()), null_values=[""], strings_can_be_null=True,
            quoted_strings_can_be_null=False,
        )  # fmt: skip
        return arrow_csv.read_csv(pa.BufferReader(data), parse_options=parse, convert_options=convert)
    except (pa.ArrowException, UnicodeDecodeError) as error:
        raise _explain(data, error, request, mark) from error


def _explain(data: pa.Buffer, error: Exception, request: Request, mark: str) -> DataError:
    """What is wrong with the text, and in which row: found by reading again, one row after the other."""
    if not data.to_pybytes().strip():
        return request.error("the file is empty", "give a file with at least one event")
    try:
        str(data, "utf-8")
    except UnicodeDecodeError:
        return request.error("the file is not UTF-8 text", "save it as CSV in UTF-8, or pass format=")
    bad: list[Any] = []

    def note(row: Any) -> str:
        bad.append(row)
        return "skip"

    # If the text is damaged in another way as well, what was noted is enough.
    with suppress(pa.ArrowException, UnicodeDecodeError):
        arrow_csv.read_csv(
            pa.BufferReader(data),
            read_options=arrow_csv.ReadOptions(use_threads=False),
            parse_options=arrow_csv.ParseOptions(newlines_in_values=True, invalid_row_handler=note, delimiter=mark),
        )
    if not bad:
        reason = str(error).splitlines()[0][:200]
        return request.error(f"this is not CSV ({reason})", "check the file, or pass format=")
    return request.error(
        f"the row has {bad[0].actual_columns} fields, but the header has {bad[0].expected_columns}",
        f"give every row as many fields as the header; put fields that hold {_MARKS[mark]} in double quotes",
        row=bad[0].number - 1,  # the header is row 1 for the parser
    )


def _are_names(column: pa.ChunkedArray, request: Request) -> bool:
    """Whether the caller's vocabulary holds every value as it is written, even those that are digits."""
    if request.types is None:
        return False
    return set(pc.unique(column.drop_null()).to_pylist()) <= set(request.types)


def write_csv(streams: StreamSet, file: BinaryIO, target: Path, names: Mapping[str, str | None]) -> None:
    """Write a stream set as CSV into ``file``, which will become ``target``."""
    table = write_table(streams, names, text=True)
    try:
        text = as_text(table)
    except pa.ArrowException as error:
        remedy = "write Parquet, or drop columns that hold lists"
        raise DataError(f"CSV cannot hold these columns: {error}", file=target, remedy=remedy) from error
    with packed(file, target) as out:
        out.write(to_lines(text, separator=_own_separator(streams)))


def _own_separator(streams: StreamSet) -> str:
    """That of the CSV file which streams were read from; a comma for all others."""
    source = streams.source
    known = (source.data.schema.metadata or {}) if source is not None and source.kind in ("csv", "arrow") else {}
    return known.get(SEPARATOR, b",").decode()


def as_text(table: pa.Table) -> pa.Table:
    """Every column as the text that a CSV file has of it."""
    return pa.table({name: _as_text(table[name]) for name in table.column_names})


def _as_text(column: pa.ChunkedArray) -> pa.ChunkedArray:
    kind = column.type
    if pa.types.is_dictionary(kind):
        column = column.cast(kind.value_type)
    elif pa.types.is_timestamp(kind) and kind.tz is not None:
        column = column.cast(pa.timestamp(kind.unit, "UTC"))
    return column.cast(pa.large_string())
