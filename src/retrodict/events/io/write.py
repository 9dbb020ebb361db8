"""Write events to a file: all of it, or none of it."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from pathlib import Path
from typing import BinaryIO

from retrodict.errors import DataError
from retrodict.events.atomic import atomic_file, check_new_folder, check_writable
from retrodict.events.io.files import find_format, inner_suffix, is_gzip
from retrodict.events.io.known_layouts import LAYOUTS, is_meds, refuse_numbers
from retrodict.events.stream_set import StreamSet


def write_events(
    streams: StreamSet,
    path: str | os.PathLike[str],
    format: str | None = None,
    *,
    stream: str | None = None,
    time: str | None = None,
    type: str | None = None,
) -> None:
    """Write a stream set as Parquet, CSV, JSON Lines, XES, EasyTPP or MEDS, by suffix or ``format``.

    A name without a suffix is a folder, and a MEDS data set is written there.

    Streams that were read from a table, or from JSON Lines, are written as they came (``StreamSet.to_table``).
    ``stream``, ``time`` and ``type`` name the columns otherwise. Only Parquet keeps everything of streams that were
    made in other ways: CSV and JSON Lines lose types that never occur, EasyTPP also loses ends and ids. The file is
    written to the side and moved into place, so that a failure leaves no trace. The same streams give the same bytes.
    """
    if not isinstance(streams, StreamSet):
        remedy = "give a StreamSet, such as rd.StreamSet([stream])"
        raise DataError(f"cannot write an object of type {streams.__class__.__name__}", remedy=remedy)
    target = Path(path)
    names = {"stream": stream, "time": time, "type": type}
    kind = find_format(target, format, folder=True)
    if kind == "meds":
        from retrodict.events.io.meds import write_meds

        return write_meds(streams, target)
    write = _writer(kind, target, names)
    with atomic_file(target) as file:
        write(streams, file, target)


def check_output(*paths: str | os.PathLike[str] | None) -> None:
    """Refuse names of no known format and files that cannot be written, before the work they are to hold."""
    for path in paths:
        kind = None if path is None else find_format(Path(path), None, folder=True)
        if path is not None and kind == "meds":
            check_new_folder(path)
        elif path is not None and kind is not None:
            _writer(kind, Path(path), {})
            check_writable(path)


def check_times(streams: StreamSet, path: str | os.PathLike[str]) -> None:
    """Refuse a format that has dates for streams whose times are plain numbers, before the work it is to hold."""
    kind = find_format(Path(path), None, folder=True)
    own = kind == "meds" and streams.source is not None and is_meds(streams.source.names)
    if kind in LAYOUTS and not own:
        refuse_numbers(streams.axis, kind, Path(path))


def check_types(streams: StreamSet, types: Iterable[str], path: str | os.PathLike[str]) -> None:
    """Refuse types that the encoding of the streams' own CSV file cannot hold, before the work it is to hold."""
    if find_format(Path(path), None, folder=True) == "csv":
        from retrodict.events.io.csv_file import refuse_lost

        refuse_lost(streams, types, Path(path))


def _writer(format: str, target: Path, names: Mapping[str, str | None]) -> Callable[[StreamSet, BinaryIO, Path], None]:
    """The function that writes a format; only tables have columns to name."""
    if format == "csv":
        from retrodict.events.io.csv_file import write_csv

        return partial(write_csv, names=names)
    if format == "parquet" and not is_gzip(target):
        from retrodict.events.io.parquet_file import write_parquet

        return partial(write_parquet, names=names)
    if format == "jsonl":
        from retrodict.events.io.jsonl import write_jsonl

        return write_jsonl
    if format == "xes":
        from retrodict.events.io.xes_out import write_xes

        return write_xes
    if format == "easytpp" and not (inner_suffix(target) in (".parquet", ".pq") and is_gzip(target)):
        from retrodict.events.io.easytpp import write_easytpp

        return write_easytpp
    if format == "parquet" or (format == "easytpp" and inner_suffix(target) in (".parquet", ".pq")):
        raise DataError("Parquet is compressed already", file=target, remedy="remove .gz from the name")
    raise DataError("pickles are read but never written", file=target, remedy="write .parquet or .jsonl")
