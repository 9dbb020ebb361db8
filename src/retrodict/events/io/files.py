"""Finding a file's format from its name, and reading its bytes."""

from __future__ import annotations

import gzip
import zlib
from pathlib import Path

from retrodict.errors import DataError

SUFFIXES = {
    ".csv": "csv",
    ".parquet": "parquet",
    ".pq": "parquet",
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
    ".json": "easytpp",
    ".pkl": "pickle",
    ".pickle": "pickle",
}
FORMATS = ("csv", "parquet", "jsonl", "easytpp", "pickle")


def find_format(path: Path, format: str | None) -> str:
    """The format asked for, or the one the file's suffix (less .gz) stands for."""
    if format is not None:
        if format not in FORMATS:
            raise DataError(f"unknown format {format!r}", file=path, remedy=f"use one of {', '.join(FORMATS)}")
        return format
    suffix = inner_suffix(path)
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
    """The contents of a file, decompressed if its name ends in .gz; never empty."""
    try:
        raw = path.read_bytes()
    except OSError as error:
        raise cannot_read(path, error) from error
    if raw and is_gzip(path):
        try:
            raw = gzip.decompress(raw)
        except EOFError as error:
            raise DataError("the gzip file is cut off", file=path, remedy="copy or download the file again") from error
        except (OSError, zlib.error) as error:
            raise DataError(
                "the name ends in .gz, but the contents are not (or are damaged) gzip",
                file=path,
                remedy="copy the file again, or remove .gz from its name if it is not compressed",
            ) from error
    if not raw:
        raise DataError("the file is empty", file=path, remedy="give a file with at least one event")
    return raw


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


def cannot_read(path: Path, error: OSError) -> DataError:
    """The error for a file that cannot be opened."""
    if isinstance(error, FileNotFoundError):
        return DataError("there is no such file", file=path, remedy="check the path")
    return DataError(
        f"the file cannot be read: {error.strerror}", file=path, remedy="check the path and its permissions"
    )
