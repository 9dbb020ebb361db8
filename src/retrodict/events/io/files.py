"""Finding a file's format from its name, and reading its bytes."""

from __future__ import annotations

import gzip
import io
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO

from retrodict import _limits
from retrodict.errors import DataError
from retrodict.events.io.expanding import ANYWAY, PIECE, Expanding

SUFFIXES = {
    ".csv": "csv",
    ".parquet": "parquet",
    ".pq": "parquet",
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
    ".json": "easytpp",
    ".pkl": "pickle",
    ".pickle": "pickle",
    ".xes": "xes",
    ".meds": "meds",
}
FORMATS = ("csv", "parquet", "jsonl", "easytpp", "pickle", "xes", "meds")


def find_format(path: Path, format: str | None, folder: bool = False) -> str:
    """The format asked for, or the one the file's suffix (less .gz) stands for; a ``folder`` has none and is MEDS."""
    if format is not None:
        if format not in FORMATS:
            raise DataError(f"unknown format {format!r}", file=path, remedy=f"use one of {', '.join(FORMATS)}")
        return format
    suffix = inner_suffix(path)
    if folder and not suffix:
        return "meds"
    if suffix not in SUFFIXES:
        what = f"the suffix {suffix!r} stands for no known format" if suffix else "the name has no suffix"
        raise DataError(what, file=path, remedy=f"use one of {', '.join(SUFFIXES)} (.gz may follow), or pass format=")
    return SUFFIXES[suffix]


def inner_suffix(path: Path) -> str:
    """The suffix before .gz, in lower case."""
    suffixes = [suffix.lower() for suffix in path.suffixes]
    if suffixes and suffixes[-1] == ".gz":
        suffixes.pop()
    return suffixes[-1] if suffixes else ""


def is_gzip(path: Path) -> bool:
    """Whether the name says that the file is compressed."""
    return path.suffix.lower() == ".gz"


def read_bytes(path: Path) -> bytes:
    """The contents of a file, decompressed if its name ends in .gz; never empty, and within the limits."""
    try:
        with open_regular(path) as file:
            length = os.fstat(file.fileno()).st_size
            _limits.check("bytes", length, f"the file has {length:,} bytes", file=path)
            data = _expand(path, file) if is_gzip(path) and length else file.read()
    except OSError as error:
        raise cannot_read(path, error) from error
    if not data:
        raise DataError("the file is empty", file=path, remedy="give a file with at least one event")
    return data


def open_regular(path: Path) -> BinaryIO:
    """A file opened for reading; a pipe or a device is refused at once, without waiting for it."""
    descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0))
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise DataError("this is not a regular file", file=path, remedy="copy its contents into a file")
    return os.fdopen(descriptor, "rb")


def _expand(path: Path, file: BinaryIO) -> bytes:
    """The contents of a gzip file, so that a small one that would fill the memory is refused."""
    source, found = Expanding(file, path), io.BytesIO()
    while piece := source.read(PIECE):
        found.write(piece)
        if found.tell() > ANYWAY:
            _limits.check("bytes", found.tell(), f"the file expands to {found.tell():,} bytes or more", file=path)
    return found.getvalue()


@contextmanager
def packed(file: BinaryIO, target: Path) -> Iterator[Any]:
    """``file`` to write to, gzipped where the name of ``target`` asks for it; the same contents give the same bytes."""
    if not is_gzip(target):
        yield file
        return
    with gzip.GzipFile("", "wb", fileobj=file, mtime=0) as small:  # no name and no time in the header
        yield small


def read_text(path: Path) -> str:
    """The contents of a UTF-8 file."""
    try:
        return read_bytes(path).decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise DataError(
            f"the file is not UTF-8 text (byte {error.start} is wrong)",
            file=path,
            remedy="save it as UTF-8, or pass format= if it is not a text file",
        ) from error


NOT_UTF_8 = (
    "pass encoding='cp1252' if Excel on Windows saved it (or the encoding that it has), or save it as 'CSV UTF-8'"
)


def cannot_read(path: Path, error: OSError) -> DataError:
    """The error for a file that cannot be opened."""
    if isinstance(error, FileNotFoundError):
        return DataError("there is no such file", file=path, remedy="check the path")
    return DataError(
        f"the file cannot be read: {error.strerror}", file=path, remedy="check the path and its permissions"
    )
