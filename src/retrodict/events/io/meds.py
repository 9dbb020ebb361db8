"""MEDS data sets, both ways: a folder of Parquet shards of health events, one row a measurement of a subject.

    ROOT/data/**/*.parquet     subject_id int64, time timestamp[us], code string, numeric_value, text_value, ...
    ROOT/metadata/*            kept as it is

A folder of shards, or one Parquet file, will do as well. Every code is a type, unless ``codes=`` chooses. Rows without
a time are static and set aside. A death (``MEDS_DEATH``) ends the stream and is no event, and neither is a birth:
subjects are rarely watched from birth on, so a stream starts at its first dated row, unless ``start="MEDS_BIRTH"``.
What is written has the same shards with the same rows, and the imputed ones.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from retrodict import _limits
from retrodict.errors import DataError
from retrodict.events.atomic import atomic_folder
from retrodict.events.io.choose_events import text_column, type_of_code
from retrodict.events.io.known_layouts import LAYOUTS, is_meds, refuse_numbers
from retrodict.events.io.meds_kept import KEY, SAFE, facts_of, inside, pack_files, pack_schema, write_files
from retrodict.events.io.own_table import own_arrow
from retrodict.events.io.parquet_file import read_checked, use_metadata, with_metadata
from retrodict.events.io.request import Request
from retrodict.events.io.tables import from_arrow
from retrodict.events.io.tables_out import to_table
from retrodict.events.stream_set import StreamSet

_MOST_SHARDS = 100_000
_COLUMNS = tuple(LAYOUTS["meds"].values())
EMPTY = "RETRODICT//EMPTY"  # the code of the static row that declares an empty stream


def read_meds(path: Path, request: Request) -> StreamSet:
    """A stream set from a MEDS data set, or from a folder of its shards."""
    root = path / "data" if (path / "data").is_dir() else path
    if root != path:
        _refuse_links([root])
    names = _shards(root, path)
    tables, rows = [], 0
    for name in names:
        table = read_checked(root / name)
        _check_columns(table, root / name)
        tables.append(table)
        rows += table.num_rows
        _limits.check("rows", rows, f"the shards have {rows:,} rows or more", file=path)
    schemas = [table.schema for table in tables]
    given = request.types
    use_metadata(schemas[0], request)
    if request.axis is not None and request.axis.timezone is not None and request.timezone is None:
        tables = [_in_utc(table) for table in tables]  # MEDS has no time zones: we wrote UTC
    try:
        whole = pa.concat_tables(tables, promote_options="permissive")
    except pa.ArrowException as error:
        reason = str(error).splitlines()[0]
        raise request.error(f"the shards do not fit together ({reason})", "give a column one type") from error
    if given is None and request.types is not None:  # what we wrote, and what was put in since
        codes = text_column(whole.filter(whole["time"].is_valid())["code"], "code", request)
        request.types = _widened(request.types, codes.dictionary)
    facts = {
        "root": "data" if root != path else "",
        "shards": [[n, t.num_rows, pack_schema(s)] for n, t, s in zip(names, tables, schemas, strict=True)],
        "files": pack_files(path / "metadata", request),
    }
    kept = {key: value for key, value in (whole.schema.metadata or {}).items() if key != b"pandas"}
    whole = whole.replace_schema_metadata(kept | {KEY: json.dumps(facts).encode()})
    try:
        return from_arrow(whole, request)
    except DataError as error:
        raise _in_shard(error, root, names, tables) from error


def _shards(root: Path, path: Path) -> list[str]:
    """The shards below a folder by name, in order; none of them may be a link or lie behind one."""
    found = []
    for folder, below, files in os.walk(root):
        below[:] = sorted(name for name in below if name != "metadata" and not name.startswith("."))
        _refuse_links(Path(folder, name) for name in below)
        found += [Path(folder, name) for name in files if name.endswith(".parquet") and not name.startswith(".")]
        if len(found) > _MOST_SHARDS:
            raise DataError(
                f"there are more than {_MOST_SHARDS:,} shards", file=path, remedy="write fewer, larger ones"
            )
    if not found:
        remedy = "give the root of a MEDS data set (with data/**/*.parquet), a folder of its shards, or one file"
        raise DataError("this is a folder that holds no Parquet shards", file=path, remedy=remedy)
    _refuse_links(found)
    names = sorted(file.relative_to(root).as_posix() for file in found)
    odd = next((name for name in names if not SAFE.fullmatch(name)), None)
    if odd is not None:
        raise DataError(f"the name of the shard {odd!r} cannot be written again", file=path, remedy="rename the shard")
    return names


def _refuse_links(files: Iterable[Path]) -> None:
    link = next((file for file in files if file.is_symlink()), None)
    if link is not None:
        remedy = "put the file or the folder itself in its place: links in a data set are not followed"
        raise DataError("this is a link", file=link, remedy=remedy)


def _check_columns(table: pa.Table, file: Path) -> None:
    lacking = [name for name in _COLUMNS if name not in table.column_names]
    if lacking:
        shown = ", ".join(repr(name) for name in table.column_names[:12]) or "none"
        remedy = f"give shards with the columns {', '.join(_COLUMNS)}, or read the file as a table of its own"
        raise DataError(f"this is no MEDS shard: there is no column {lacking[0]!r}; the columns are {shown}", file=file,
                        remedy=remedy)  # fmt: skip


def _in_utc(table: pa.Table) -> pa.Table:
    for name in ("time", "start", "end", "earliest", "latest"):
        if name in table.column_names and pa.types.is_timestamp(kind := table[name].type) and kind.tz is None:
            column = table[name].cast(pa.timestamp(kind.unit, "UTC"))
            table = table.set_column(table.column_names.index(name), name, column)
    return table


def _widened(types: tuple[str, ...], codes: Any) -> tuple[str, ...]:
    """A recorded vocabulary with the codes that it lacks."""
    lacking = {code for code in codes.to_pylist() if code is not None and type_of_code(code, None)} - {*types}
    return types + tuple(sorted(lacking))


def _in_shard(error: DataError, root: Path, names: list[str], tables: list[pa.Table]) -> DataError:
    """The same error, about a row of one of the shards."""
    if error.row is None or isinstance(error, _limits.LimitError):
        return error
    ends = np.cumsum([table.num_rows for table in tables])
    at = min(int(np.searchsorted(ends, error.row)), len(names) - 1)
    row = error.row - int(ends[at]) + tables[at].num_rows
    return DataError(error.problem, file=root / names[at], stream=error.stream, row=row, remedy=error.remedy)


def write_meds(streams: StreamSet, target: Path) -> None:
    """Write a MEDS data set as a new folder: the shards that were read, or one."""
    source = streams.source
    if source is not None and is_meds(source.names):
        table = own_arrow(streams)
    else:
        streams = streams.replace()  # without a source
        table = _as_meds(streams, target)
    facts = facts_of(table, table.num_rows if source is None else len(source.codes))
    shard = _shard_of_rows(streams, facts)
    own = {name for _, _, schema in facts["shards"] for name in schema.names}
    plain = with_metadata(table, streams)
    root = f"{facts['root']}/" if facts["root"] else ""
    try:
        with atomic_folder(target) as folder:
            for number, (name, rows, schema) in enumerate(facts["shards"]):
                part = plain if shard is None else plain.filter(pa.array(shard == number))
                if part.num_rows or not rows:
                    _write(_like(part, schema, own), inside(folder, f"{root}{name}"))
            write_files(facts["files"], folder)
    except pa.ArrowException as error:
        remedy = "convert the extra columns to numbers or text, or leave them out"
        raise DataError(f"Parquet cannot hold these columns: {error}", file=target, remedy=remedy) from error


def _shard_of_rows(streams: StreamSet, facts: Mapping[str, Any]) -> Any:
    """The shard [R] that each row of the own table belongs to; None where there is only one."""
    if len(facts["shards"]) == 1:
        return None
    from retrodict.events.io.own_table import layout_of

    layout = layout_of(streams)
    number = np.repeat(np.arange(len(facts["shards"])), [rows for _, rows, _ in facts["shards"]])
    return number[np.where(layout.row >= 0, layout.row, layout.like)]


def _like(part: pa.Table, schema: pa.Schema, own: set[str]) -> pa.Table:
    """The columns that the shard had, as it had them, and those that were added since."""
    names = [name for name in schema.names if name in part.column_names]
    columns = {}
    for name in [*names, *(name for name in part.column_names if name not in own)]:
        column = part[name]
        if name in names:
            try:
                column = column.cast(schema.field(name).type)
            except pa.ArrowException:  # such as whole numbers, among which is one now that is not
                column = part[name]
        columns[name] = column
    kept = {key: value for key, value in (schema.metadata or {}).items() if not key.startswith(b"retrodict.")}
    ours = {key: value for key, value in (part.schema.metadata or {}).items() if key == b"retrodict"}
    return pa.table(columns).replace_schema_metadata(kept | ours)


def _write(table: pa.Table, file: Path) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    with file.open("wb") as out:
        pq.write_table(table, out)


def _as_meds(streams: StreamSet, target: Path) -> pa.Table:
    """Streams of any source in the columns of MEDS; times in UTC, since MEDS has no zones."""
    refuse_numbers(streams.axis, "meds", target)
    taken = next((name for name in ("subject_id", "code", "subject_name") if name in streams.columns), None)
    if taken is not None:
        raise DataError(f"there is an extra column {taken!r}", file=target, remedy="rename it: MEDS has its own")
    table = to_table(streams)
    columns = {name: _naive(table[name]) for name in table.column_names}
    stream, code = columns.pop("stream"), columns.pop("type").cast(pa.string()).fill_null(EMPTY)
    named = not pa.types.is_integer(stream.type)
    subject = stream.combine_chunks().dictionary_encode().indices.cast(pa.int64()) if named else stream
    first = {"subject_id": subject, "time": columns.pop("time"), "code": code}
    return pa.table(first | ({"subject_name": stream} if named else {}) | columns)


def _naive(column: pa.ChunkedArray) -> pa.ChunkedArray:
    kind = column.type
    return column.cast(pa.timestamp("us")) if pa.types.is_timestamp(kind) and kind.unit != "ns" else (
        column.cast(pa.timestamp("us"), safe=False) if pa.types.is_timestamp(kind) else column
    )  # fmt: skip
