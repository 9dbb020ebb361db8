"""CSV files, plain or gzipped: a long table as text.

CSV holds no types: a column in which every value is written as an integer is read as integers ("007" is text),
and the vocabulary is what occurs, unless ``types=`` gives it. An empty field is a missing value, and ``""``
is empty text. Datetimes with a zone are written in UTC. Fields are separated by commas, or, where the header has none,
by semicolons, tabs or bars; a table is written again with the separator that it came with. Text is UTF-8, or in the
encoding that the caller names, in which it is written again.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, BinaryIO

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as arrow_csv

from retrodict import _limits
from retrodict.errors import DataError, show
from retrodict.events.io.files import NOT_UTF_8, packed, read_bytes
from retrodict.events.io.known_layouts import recognise
from retrodict.events.io.own_table import write_table
from retrodict.events.io.request import Request
from retrodict.events.io.roles import names_of_times
from retrodict.events.io.tables import from_arrow
from retrodict.events.io.text_columns import infer, to_lines
from retrodict.events.stream_set import StreamSet

_MARKS = {",": "commas", ";": "semicolons", "\t": "tabs", "|": "bars"}
_HEADER = 1 << 16  # bytes in which a header ends

# In the metadata of a table that came with another separator than commas, and in another encoding than UTF-8.
SEPARATOR, ENCODING = b"retrodict.separator", b"retrodict.encoding"


def separator_of(beginning: bytes) -> str:
    """What separates the fields of a text, by its header: a comma, or what is there instead."""
    header = beginning.split(b"\n", 1)[0]
    return next((mark for mark in ",;\t|" if mark.encode() in header), ",")


def read_csv(path: Path, request: Request) -> StreamSet:
    """A stream set from a CSV file with a header."""
    data = _as_utf_8(read_bytes(path), request)
    mark = separator_of(data[:_HEADER])
    _ask(data, path, mark)
    table = _parse(pa.py_buffer(data), request, mark)
    known = {SEPARATOR: None if mark == "," else mark, ENCODING: request.encoding}
    table = table.replace_schema_metadata({key: value.encode() for key, value in known.items() if value} or None)
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


def _as_utf_8(data: bytes, request: Request) -> bytes:
    """The text of a file in the encoding that the caller named."""
    if request.encoding is None:
        return data
    _limits.ask_memory(5 * len(data), "reading this table", "split the file", file=request.file)
    try:
        return data.decode(request.encoding).encode()
    except UnicodeError as error:
        problem = f"the file is not {request.encoding} text"
        if isinstance(error, UnicodeDecodeError):
            line = data.count(b"\n", 0, error.start) + 1
            problem += f" (line {line} has the byte 0x{data[error.start]:02x})"
        raise request.error(problem, "pass encoding= with the encoding that it has, or save it as UTF-8") from error


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
        return request.error("the file is not UTF-8 text", NOT_UTF_8)
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
    lines = to_lines(text, separator=_own(streams, SEPARATOR) or ",")
    encoding = encoding_of(streams)
    with packed(file, target) as out:
        out.write(lines if encoding is None else _encoded(lines.decode(), encoding, target))


def encoding_of(streams: StreamSet) -> str | None:
    """That of the CSV file which streams were read from, if it was named; None for UTF-8 and all that is no CSV."""
    return _own(streams, ENCODING)


def refuse_lost(streams: StreamSet, names: Iterable[str], target: Path) -> None:
    """Refuse names of types that the encoding of the streams' CSV file has no letters for."""
    encoding = encoding_of(streams)
    if encoding is not None:
        for name in names:
            _encoded(name, encoding, target)


def _own(streams: StreamSet, key: bytes) -> str | None:
    source = streams.source
    known = (source.data.schema.metadata or {}) if source is not None and source.kind in ("csv", "arrow") else {}
    return known[key].decode() if key in known else None


def _encoded(text: str, encoding: str, target: Path) -> bytes:
    try:
        return text.encode(encoding)
    except UnicodeEncodeError as error:
        part = text[max(0, error.start - 10) : error.start + 10].strip()
        remedy = "write .parquet, or save the table as UTF-8 and leave encoding= out"
        raise DataError(f"{encoding}, as it was read, has no {text[error.start]!r} (in {show(part)})", file=target,
                        remedy=remedy) from error  # fmt: skip


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
