"""Tables of any size, read piece by piece: CSV, Parquet, and folders of Parquet files, partitioned or not.

    ROOT/**/*.parquet              in the order of their names; names that begin with "_" or "." are passed over
    ROOT/day=2024-01-01/*.parquet  a column "day", as Hive writes it

A piece is an Arrow table of a bounded number of rows. Pieces of CSV are text, as the file has it.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pyarrow as pa
import pyarrow.csv as arrow_csv
import pyarrow.parquet as pq

from retrodict import _limits
from retrodict.errors import DataError
from retrodict.events.io.expanding import Expanding
from retrodict.events.io.files import NOT_UTF_8, cannot_read, is_gzip, open_regular
from retrodict.events.io.parquet_file import damaged

ROWS = 1 << 17  # of a piece
_BLOCK = 8 << 20  # bytes of CSV text that are parsed at once
_MOST_FILES = 1_000_000
_PARTITION = re.compile(r"([^=]+)=(.*)")
_NOTHING = "__HIVE_DEFAULT_PARTITION__"


def table_pieces(path: Path, format: str) -> Iterator[pa.Table]:
    """The rows of a table, in order; ``format`` is "csv" or "parquet", of a file or of all files of a folder."""
    return _csv_pieces(path) if format == "csv" else _parquet_pieces(path)


def is_parquet_folder(path: Path) -> bool:
    """Whether a folder holds Parquet files as a table does, and is not a MEDS data set."""
    if not path.is_dir() or (path / "data").is_dir() or (path / "metadata").is_dir():
        return False
    first = next(iter(parquet_files(path)), None)
    if first is None:
        return False
    try:
        with open_regular(first) as file:
            names = set(pq.ParquetFile(file).schema_arrow.names)
    except (OSError, pa.ArrowException, UnicodeDecodeError):
        return True  # what is wrong is said when it is read
    return not {"subject_id", "time", "code"} <= names


def parquet_files(root: Path) -> list[Path]:
    """The Parquet files of a folder and the folders in it, by name."""
    found: list[Path] = []
    for folder, folders, names in os.walk(root):
        folders[:] = sorted(name for name in folders if name[0] not in "_.")
        found += [Path(folder) / n for n in names if n[0] not in "_." and n.endswith((".parquet", ".pq"))]
        if len(found) > _MOST_FILES:
            raise DataError(f"there are more than {_MOST_FILES:,} files", file=root, remedy="give one with fewer files")
    return sorted(found, key=lambda file: file.relative_to(root).parts)


def count_rows(path: Path, format: str, most: int) -> int:
    """How many rows a table has, or lines a file of text; no more than ``most`` lines are counted."""
    if format == "parquet":
        return sum(_open(file).metadata.num_rows for file in (parquet_files(path) if path.is_dir() else [path]))
    lines = 0
    try:
        with open_text(path) as file:
            while lines <= most and (piece := file.read(_BLOCK)):
                lines += piece.count(b"\n")
    except OSError as error:
        raise cannot_read(path, error) from error
    return lines


def open_text(path: Path) -> Any:
    """The bytes of a file, decompressed as they are read if its name ends in .gz."""
    file = open_regular(path)
    return Expanding(file, path) if is_gzip(path) else file


def _parquet_pieces(path: Path) -> Iterator[pa.Table]:
    files = parquet_files(path) if path.is_dir() else [path]
    if not files:
        raise DataError("there is no Parquet file in this folder", file=path, remedy="give a folder that has some")
    first: pa.Schema | None = None
    for file in files:
        parts = _partitions(file.relative_to(path).parts[:-1]) if path.is_dir() else {}
        for table in _file_pieces(file):
            for name, value in parts.items():
                if name in table.column_names:
                    problem = f"the folder's name says {name!r}, and so does a column"
                    raise DataError(problem, file=file, remedy="rename one of the two")
                column = pa.array([value], pa.string()).take(pa.array([0] * table.num_rows, pa.int32()))
                table = table.append_column(name, column)
            first = table.schema if first is None else first
            if not table.schema.equals(first):
                raise DataError(
                    f"its columns ({_columns(table.schema)}) are not those of {files[0].name} ({_columns(first)})",
                    file=file,
                    remedy="give all files of the folder the same columns, in one order and of one type each",
                )
            yield table.replace_schema_metadata(first.metadata)


def _columns(schema: pa.Schema) -> str:
    return ", ".join(f"{field.name}: {field.type}" for field in schema)[:300]


def _partitions(folders: tuple[str, ...]) -> dict[str, str | None]:
    """The columns that names of folders stand for."""
    found = [match.groups() for match in map(_PARTITION.fullmatch, folders) if match]
    return {unquote(name): None if value == _NOTHING else unquote(value) for name, value in found}


def _open(file: Path) -> pq.ParquetFile:
    try:
        return pq.ParquetFile(open_regular(file), pre_buffer=False)
    except OSError as error:
        if file.is_file() and not error.errno:
            raise damaged(file, error) from error
        raise cannot_read(file, error) from error
    except (pa.ArrowException, UnicodeDecodeError) as error:
        raise damaged(file, error) from error


def _file_pieces(file: Path) -> Iterator[pa.Table]:
    """The rows of one Parquet file; one of no rows gives one piece, for its columns."""
    source = _open(file)
    try:
        schema = source.schema_arrow
        if not source.metadata.num_rows:
            yield schema.empty_table()
        for batch in source.iter_batches(ROWS, use_threads=False):
            _limits.ask_memory(batch.nbytes, f"{len(batch):,} rows", "leave long texts out", file=file)
            batch.validate(full=True)
            yield pa.Table.from_batches([batch], schema)
    except OSError as error:
        raise damaged(file, error) from error
    except (pa.ArrowException, UnicodeDecodeError, ValueError) as error:
        if isinstance(error, DataError):
            raise
        raise damaged(file, error) from error
    finally:
        source.close()


def _csv_pieces(path: Path) -> Iterator[pa.Table]:
    """The rows of a CSV file, every column as text."""
    bad: list[Any] = []

    def note(row: Any) -> str:
        bad.append(row)
        return "skip"

    parse = arrow_csv.ParseOptions(newlines_in_values=True, invalid_row_handler=note)
    try:
        with open_text(path) as file, arrow_csv.open_csv(file, parse_options=parse) as reader:
            names = reader.schema.names
        convert = arrow_csv.ConvertOptions(
            column_types=dict.fromkeys(names, pa.large_string()), null_values=[""], strings_can_be_null=True,
            quoted_strings_can_be_null=False,
        )  # fmt: skip
        read = arrow_csv.ReadOptions(use_threads=False, block_size=_BLOCK)
        with open_text(path) as file:
            rows = 0
            for batch in arrow_csv.open_csv(file, read_options=read, parse_options=parse, convert_options=convert):
                if bad:
                    break
                rows += len(batch)
                yield pa.Table.from_batches([batch])
    except OSError as error:
        raise cannot_read(path, error) from error
    except (pa.ArrowException, UnicodeDecodeError) as error:
        reason = str(error).splitlines()[0][:200]
        remedy = f"check the file; if it is not UTF-8, {NOT_UTF_8}"
        raise DataError(f"this is not CSV in UTF-8 ({reason})", file=path, remedy=remedy) from error
    if bad:
        raise DataError(
            f"a row has {bad[0].actual_columns} fields, but the header has {bad[0].expected_columns}",
            file=path,
            row=None if bad[0].number is None else bad[0].number - 1,
            remedy="give every row as many fields as the header; put fields that hold commas in double quotes",
        )
