"""CSV files, plain or gzipped: a long table as text.

CSV holds no types: a column in which every value is written as an integer is read as integers ("007" is text),
and the vocabulary is what occurs, unless ``types=`` gives it. An empty field is a missing value, and ``""``
is empty text. Datetimes with a zone are written in UTC.
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
from retrodict.events.io.request import Request
from retrodict.events.io.roles import names_of_times
from retrodict.events.io.tables import from_arrow
from retrodict.events.io.tables_out import to_table
from retrodict.events.stream_set import StreamSet

_INTEGER = "^(0|-?[1-9][0-9]{0,17})$"  # always fits 64 bits
_FLOAT = r"^-?(0|[1-9]\d*)(\.\d+)?([eE][+-]?\d+)?$|^(?i:nan)$"  # but not 007, which is a code
_KINDS = {"stream": ("integer",), "type": ("integer", "float")}


def read_csv(path: Path, request: Request) -> StreamSet:
    """A stream set from a CSV file with a header."""
    data = read_bytes(path)
    _ask(data, path)
    table = _parse(pa.py_buffer(data), request)
    if table.num_columns == 1 and any(mark in table.column_names[0] for mark in ";\t|"):
        raise request.error(
            f"the header is a single field, {table.column_names[0]!r}", "separate the fields with commas"
        )
    kind = request.type or "type"
    roles = {kind: "type", request.stream or "stream": "stream"}
    times = names_of_times(request)
    columns = []
    for name, column in zip(table.column_names, table.columns, strict=True):
        if name in times or (name == kind and _are_names(column, request)):
            columns.append(column)
        else:
            columns.append(_infer(column, _KINDS.get(roles.get(name, ""), ("integer", "boolean", "float"))))
    return from_arrow(pa.Table.from_arrays(columns, names=table.column_names), request)


def _ask(data: bytes, path: Path) -> None:
    """Refuse a table that would not fit into the memory: its text twice, and the place of every field."""
    lines = data.count(b"\n") + 1
    _limits.check("rows", lines, f"the file has {lines:,} lines", file=path)
    fields = data.count(b",", 0, max(data.find(b"\n"), 0)) + 1
    need = 2 * len(data) + 16 * lines * fields
    _limits.ask_memory(need, "reading this table", "split the file", file=path)


def _parse(data: pa.Buffer, request: Request) -> pa.Table:
    """Every column as text: what it means is decided later, for the whole column at once."""
    parse = arrow_csv.ParseOptions(newlines_in_values=True)
    try:
        names = arrow_csv.open_csv(pa.BufferReader(data), parse_options=parse).schema.names
        convert = arrow_csv.ConvertOptions(
            column_types=dict.fromkeys(names, pa.large_string()), null_values=[""], strings_can_be_null=True,
            quoted_strings_can_be_null=False,
        )  # fmt: skip
        return arrow_csv.read_csv(pa.BufferReader(data), parse_options=parse, convert_options=convert)
    except (pa.ArrowException, UnicodeDecodeError) as error:
        raise _explain(data, error, request) from error


def _explain(data: pa.Buffer, error: Exception, request: Request) -> DataError:
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
            parse_options=arrow_csv.ParseOptions(newlines_in_values=True, invalid_row_handler=note),
        )
    if not bad:
        reason = str(error).splitlines()[0][:200]
        return request.error(f"this is not CSV ({reason})", "check the file, or pass format=")
    return request.error(
        f"the row has {bad[0].actual_columns} fields, but the header has {bad[0].expected_columns}",
        "give every row as many fields as the header; put fields that hold commas in double quotes",
        row=bad[0].number - 1,  # the header is row 1 for the parser
    )


def _are_names(column: pa.ChunkedArray, request: Request) -> bool:
    """Whether the caller's vocabulary holds every value as it is written, even those that are digits."""
    if request.types is None:
        return False
    return set(pc.unique(column.drop_null()).to_pylist()) <= set(request.types)


def _infer(column: pa.ChunkedArray, kinds: tuple[str, ...]) -> pa.ChunkedArray:
    """The first of ``kinds`` that every value is written as, else the text itself."""
    present = column.drop_null()
    if not len(present):
        return column
    if pc.all(pc.match_substring_regex(present, _INTEGER)).as_py():
        return column.cast(pa.int64())
    booleans = pa.array(["true", "false", "True", "False"], column.type)
    if "boolean" in kinds and pc.all(pc.is_in(present, booleans)).as_py():
        return pc.equal(pc.utf8_lower(column), "true")
    if "float" in kinds and pc.all(pc.match_substring_regex(present, _FLOAT)).as_py():
        return column.cast(pa.float64())
    return column


def write_csv(streams: StreamSet, file: BinaryIO, target: Path, names: Mapping[str, str]) -> None:
    """Write a stream set as CSV into ``file``, which will become ``target``."""
    table = to_table(streams, names)
    for i, (name, kind) in enumerate(zip(table.column_names, table.schema.types, strict=True)):
        if pa.types.is_dictionary(kind):
            table = table.set_column(i, name, table[name].cast(kind.value_type))
        elif pa.types.is_timestamp(kind) and kind.tz is not None:
            table = table.set_column(i, name, table[name].cast(pa.timestamp(kind.unit, "UTC")))
    try:
        with packed(file, target) as out:
            arrow_csv.write_csv(table, out)
    except pa.ArrowException as error:
        remedy = "write Parquet, or drop columns that hold lists"
        raise DataError(f"CSV cannot hold these columns: {error}", file=target, remedy=remedy) from error
