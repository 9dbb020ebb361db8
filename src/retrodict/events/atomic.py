"""Write a file to the side and move it into place, so that nobody ever sees half of it.

>>> with atomic_path("results.json") as path:  # doctest: +SKIP
...     path.write_text("{}")
"""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from retrodict.errors import DataError


@contextmanager
def atomic_path(path: str | os.PathLike[str]) -> Iterator[Path]:
    """A temporary path beside ``path``, which takes its place when the block ends well.

    If the block raises, the temporary file is removed and an existing ``path`` is left untouched.
    """
    target = Path(os.path.realpath(path))  # a link stays a link: its target is replaced
    if target.is_dir():
        raise DataError("cannot write: this is a folder", file=path, remedy="give the path of a file")
    temporary = target.with_name(f".{target.name[:200]}.{secrets.token_hex(6)}.tmp")
    try:
        # Created here, not by tempfile, so that the usual permissions (umask) apply.
        os.close(os.open(temporary, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o666))
    except OSError as error:
        raise DataError(
            f"cannot write: {error.strerror}",
            file=path,
            remedy="give a path in a folder that exists and that you may write to",
        ) from error
    try:
        usual = temporary.stat().st_mode & 0o777
        yield temporary
        # A library may have replaced the file by one of its own; a replaced target keeps its permissions.
        temporary.chmod(target.stat().st_mode & 0o777 if target.exists() else usual)
        _sync(temporary)
        os.replace(temporary, target)
        with suppress(OSError):  # some file systems cannot sync a folder; the file itself is safe
            _sync(target.parent)
    finally:
        temporary.unlink(missing_ok=True)


def make_folder(path: str | os.PathLike[str]) -> Path:
    """The folder ``path``, made if need be."""
    folder = Path(path)
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise DataError(
            f"cannot make this folder: {error.strerror}", file=path, remedy="give a folder that you may write to"
        ) from error
    return folder


def _sync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
