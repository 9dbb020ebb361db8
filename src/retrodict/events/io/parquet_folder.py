"""A folder of Parquet files as one table, read at once; ``pieces`` says which files, and reads more than fit."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa

from retrodict import _limits
from retrodict.events.io.parquet_file import use_metadata
from retrodict.events.io.pieces import table_pieces
from retrodict.events.io.request import Request
from retrodict.events.io.tables import from_arrow
from retrodict.events.stream_set import StreamSet


def read_parquet_folder(path: Path, request: Request) -> StreamSet:
    """A stream set from all Parquet files of a folder, in the order of their names."""
    tables, rows, size = [], 0, 0
    for table in table_pieces(path, "parquet"):
        tables.append(table)
        rows, size = rows + table.num_rows, size + table.nbytes
        _limits.check("rows", rows, f"the files have {rows:,} rows or more", file=path)
        _limits.ask_memory(2.0 * size, "reading this folder", "read some of its files", file=path)
    whole = pa.concat_tables(tables)
    use_metadata(whole.schema, request)
    return from_arrow(whole, request)
