"""A data set in a folder: one file of streams for each of train, dev and test."""

from __future__ import annotations

import os
import shutil
from collections.abc import Sequence
from pathlib import Path

from retrodict.errors import DataError, WriteError
from retrodict.events.atomic import check_folder, make_folder
from retrodict.events.io.read import read_events
from retrodict.events.io.write import write_events
from retrodict.events.lock import lock_folder
from retrodict.events.stream_set import Splits, StreamSet

SUFFIXES = (".parquet", ".jsonl", ".jsonl.gz", ".csv", ".csv.gz")


def read_splits(folder: str | os.PathLike[str], train: Sequence[str] = ("train",)) -> Splits:
    """The streams of a folder; ``train`` names the files, without suffix, that together are for training."""
    parts = [read_events(path) for name in train if (path := find_part(folder, name)) is not None]
    if not parts:
        raise _missing(folder, " or ".join(train))
    types = parts[0].types
    held_out = []
    for name in ("dev", "test"):
        path = find_part(folder, name)
        if path is None:
            raise _missing(folder, name)
        held_out.append(read_events(path, types=types))
    return Splits(_join(parts), *held_out)


def write_splits(splits: Splits, folder: str | os.PathLike[str], suffix: str = ".parquet") -> list[Path]:
    """Write train, dev and test into a folder that has none yet: all three files, or none of them."""
    check_free(folder)
    target, names = Path(folder), [name + suffix for name in Splits._fields]
    with lock_folder(target):
        side = make_folder(target / ".splits.tmp")  # what a killed writer left there is written again
        try:
            for name, streams in zip(names, splits, strict=True):
                write_events(streams.replace(), side / name)
            for name in names:
                os.replace(side / name, target / name)
        except OSError as error:
            for name in names:
                (target / name).unlink(missing_ok=True)
            problem = f"cannot write: {error.strerror or error}; nothing was left behind"
            raise WriteError(problem, file=folder, remedy="check the folder and the space on the disk") from error
        finally:
            shutil.rmtree(side, ignore_errors=True)
    return [target / name for name in names]


def check_free(folder: str | os.PathLike[str]) -> None:
    """Refuse a folder that holds a data set already, or cannot be written."""
    check_folder(folder)
    for name in Splits._fields:
        path = find_part(folder, name)
        if path is not None:
            remedy = "give another folder, or remove it first"
            raise DataError("there is a data set in this folder already", file=path, remedy=remedy)


def find_part(folder: str | os.PathLike[str], name: str) -> Path | None:
    """The file of streams called ``name`` in a folder, whatever its format."""
    paths = (Path(folder) / (name + suffix) for suffix in SUFFIXES)
    return next((path for path in paths if path.is_file()), None)


def _join(parts: list[StreamSet]) -> StreamSet:
    if len(parts) == 1:
        return parts[0]
    types, axis = parts[0].types, parts[0].axis
    return StreamSet([stream for part in parts for stream in part.with_types(types)], types, axis)


def _missing(folder: str | os.PathLike[str], name: str) -> DataError:
    return DataError(
        f"there is no file of {name} streams in this folder",
        file=folder,
        remedy=f"add one, {name} with one of the suffixes {', '.join(SUFFIXES)}, or give another folder",
    )
