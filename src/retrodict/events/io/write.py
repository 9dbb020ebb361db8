"""Write events to a file: all of it, or none of it."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import BinaryIO

from retrodict.errors import DataError
from retrodict.events.atomic import atomic_file
from retrodict.events.io.files import find_format, is_gzip
from retrodict.events.stream_set import StreamSet


def write_events(streams: StreamSet, path: str | os.PathLike[str], format: str | None = None) -> None:
    """Write a stream set as Parquet, CSV, JSON Lines or EasyTPP, by suffix or ``format``.

    Only Parquet keeps everything: CSV and JSON Lines lose types that never occur, EasyTPP also loses ends
    and ids. The file is written to the side and moved into place, so that a failure leaves no trace.
    """
    if not isinstance(streams, StreamSet):
        raise DataError(
            f"cannot write an object of type {streams.__class__.__name__}",
            remedy="give a StreamSet, such as rd.StreamSet([stream])",
        )
    target = Path(path)
    write = _writer(find_format(target, format), target)
    with atomic_file(target) as file:
        write(streams, file, target)


def _writer(format: str, target: Path) -> Callable[[StreamSet, BinaryIO, Path], None]:
    if format == "csv":
        from retrodict.events.io.csv_file import write_csv as write
    elif format == "parquet" and not is_gzip(target):
        from retrodict.events.io.parquet_file import write_parquet as write
    elif format == "jsonl":
        from retrodict.events.io.jsonl import write_jsonl as write
    elif format == "easytpp":
        from retrodict.events.io.easytpp import write_easytpp as write
    elif format == "parquet":
        raise DataError("Parquet is compressed already", file=target, remedy="remove .gz from the name")
    else:
        raise DataError("pickles are read but never written", file=target, remedy="write .parquet or .jsonl")
    return write
