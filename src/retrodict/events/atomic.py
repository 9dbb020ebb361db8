"""Write a file to the side and move it into place, so that no reader ever sees half of it.

>>> with atomic_file("results.json") as file:  # doctest: +SKIP
...     file.write(b"{}")

A full disk, a deleted folder or a lost file system is a ``WriteError`` that says what is still there. A process that
is killed leaves its temporary file or folder behind; the next process that writes to the same place removes it.
"""

from __future__ import annotations

import json
import os
import re
import secrets
import shutil
import socket
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from pathlib import Path
from typing import Any, BinaryIO

from retrodict.errors import WriteError

_later: ContextVar[bool] = ContextVar("later", default=False)
_HOST = re.sub(r"[^A-Za-z0-9-]", "-", socket.gethostname())[:40]


@contextmanager
def atomic_file(path: str | os.PathLike[str]) -> Iterator[BinaryIO]:
    """A temporary file beside ``path``, open for writing, which takes its place when the block ends well.

    If the block raises, the temporary file is removed and an existing ``path`` is left untouched.
    """
    target = Path(os.path.realpath(path))  # a link stays a link: its target is replaced
    if target.is_dir():
        raise WriteError("cannot write: this is a folder", file=path, remedy="give the path of a file")
    temporary = _aside(target)
    try:
        file = open_new(temporary)
    except OSError as error:
        remedy = "give a path in a folder that exists and that you may write to"
        raise WriteError(f"cannot write: {error.strerror or error}", file=path, remedy=remedy) from error
    try:
        with file:
            yield file
            file.flush()
            if not _later.get():
                os.fsync(file.fileno())
        if target.exists():  # the new file gets the old one's permissions
            os.chmod(temporary, target.stat().st_mode & 0o777)
        os.replace(temporary, target)
    except OSError as error:
        kept = "the file that was there before is as it was" if target.exists() else "nothing was left behind"
        remedy = "check that there is space on the disk and that the folder is still there, then write again"
        raise WriteError(f"cannot write: {error.strerror or error}; {kept}", file=path, remedy=remedy) from error
    finally:
        with suppress(OSError):
            temporary.unlink(missing_ok=True)
    with suppress(OSError):  # some file systems cannot sync a folder; the file itself is safe
        if not _later.get():
            _sync_folder(target.parent)
    with suppress(OSError):
        remove_stale(target)


@contextmanager
def synced_later() -> Iterator[None]:
    """Within the block, files are not forced to the disk: for files whose digests are checked before they are used.

    Nothing is lost if the process is killed. If the machine fails, such a file may be empty.
    """
    token = _later.set(True)
    try:
        yield
    finally:
        _later.reset(token)


def sync_tree(path: Path) -> None:
    """Force all files of a folder to the disk."""
    for folder, _, files in os.walk(path):
        for name in files:
            with open(os.path.join(folder, name), "r+b") as file:  # Windows syncs only what may be written
                os.fsync(file.fileno())
        with suppress(OSError):
            _sync_folder(Path(folder))


def check_writable(*paths: str | os.PathLike[str] | None) -> None:
    """Refuse files that could not be written, before the work whose result they are to hold."""
    for path in paths:
        if path is None:
            continue
        target = Path(os.path.realpath(path))
        if target.is_dir():
            raise WriteError("cannot write: this is a folder", file=path, remedy="give the path of a file")
        remedy = "give a path in a folder that exists and that you may write to"
        _try_folder(target.parent, "cannot write", path, remedy)


def check_folder(path: str | os.PathLike[str]) -> None:
    """Refuse a folder that could not be made or written into, before the work whose result it is to hold."""
    folder = Path(os.path.realpath(path))
    there = next(f for f in (folder, *folder.parents) if f.exists())
    _try_folder(there, "cannot make this folder", path, "give a folder that you may write to")


def _try_folder(folder: Path, problem: str, path: str | os.PathLike[str], remedy: str) -> None:
    """Make a file in the folder and remove it again."""
    trial = folder / f".{_HOST}.{os.getpid()}.{secrets.token_hex(6)}.tmp"
    try:
        open_new(trial).close()
        trial.unlink()
    except OSError as error:
        raise WriteError(f"{problem}: {error.strerror or error}", file=path, remedy=remedy) from error


def write_text(path: str | os.PathLike[str], text: str) -> None:
    """Write a UTF-8 file, all of it or nothing."""
    with atomic_file(path) as file:
        file.write(text.encode("utf-8"))


def write_json(path: str | os.PathLike[str], value: Any) -> None:
    """Write a value as JSON, all of it or nothing."""
    write_text(path, json.dumps(value, indent=1) + "\n")


def make_folder(path: str | os.PathLike[str]) -> Path:
    """The folder ``path``, made if need be."""
    folder = Path(path)
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        remedy = "give a folder that you may write to"
        raise WriteError(f"cannot make this folder: {error.strerror or error}", file=path, remedy=remedy) from error
    return folder


def open_new(path: Path) -> BinaryIO:
    """A file that was not there, open for writing, with the usual permissions (umask)."""
    return os.fdopen(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY | getattr(os, "O_BINARY", 0), 0o666), "wb")


def is_running(pid: int) -> bool:
    """Whether a process of this machine is still running; True where the system does not tell."""
    if os.name != "posix":
        return True
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except OSError:
        pass
    return True


def remove_folder(path: Path) -> None:
    """Remove a folder: all of it, or, if the process is killed on the way, from its place."""
    aside = _aside(path)
    with suppress(FileNotFoundError):
        os.rename(path, aside)
        shutil.rmtree(aside, ignore_errors=True)


def _aside(target: Path) -> Path:
    """A name for what is beside the target for a while."""
    return target.with_name(f".{target.name[:150]}.{_HOST}.{os.getpid()}.{secrets.token_hex(6)}.tmp")


def remove_stale(target: Path) -> None:
    """Remove temporary files and folders for ``target`` that processes of this machine left when they were killed."""
    pattern = re.compile(re.escape(f".{target.name[:150]}.{_HOST}.") + r"(\d+)\.[0-9a-f]{12}\.tmp")
    for entry in os.scandir(target.parent):
        found = pattern.fullmatch(entry.name)
        if found is not None and not is_running(int(found[1])):
            shutil.rmtree(entry.path) if entry.is_dir(follow_symlinks=False) else os.unlink(entry.path)


def _sync_folder(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


@contextmanager
def atomic_folder(path: str | os.PathLike[str]) -> Iterator[Path]:
    """A temporary folder beside ``path``, which must be new or empty, and takes its place when the block ends well."""
    check_new_folder(path)
    target = Path(os.path.realpath(path))
    temporary = _aside(target)
    try:
        temporary.mkdir()
        yield temporary
        sync_tree(temporary)
        _replace_folder(temporary, target)
    except OSError as error:
        remedy = "check that there is space on the disk and that you may write there, then write again"
        raise WriteError(
            f"cannot write: {error.strerror or error}; nothing was left behind", file=path, remedy=remedy
        ) from error
    finally:
        shutil.rmtree(temporary, ignore_errors=True)
    with suppress(OSError):
        _sync_folder(target.parent)
    with suppress(OSError):
        remove_stale(target)


@contextmanager
def own_folder(path: str | os.PathLike[str]) -> Iterator[Path]:
    """A new folder beside ``path``, which takes the place of whatever is there when the block ends well.

    Several processes may do so at once: each has a folder of its own, and that of the last stays, whole. The folder
    above is not made where it is gone.
    """
    target = Path(os.path.realpath(path))
    own = _aside(target)
    own.mkdir()
    try:
        yield own
        while True:
            remove_folder(target)
            try:
                os.rename(own, target)
            except OSError:
                if not target.exists():
                    raise
            else:  # where another process was a moment faster, its folder is replaced
                break
    finally:
        shutil.rmtree(own, ignore_errors=True)


def _replace_folder(temporary: Path, target: Path) -> None:
    """Move a folder to where nothing is, or an empty folder, which Windows does not replace by itself."""
    empty = target.is_dir()
    if empty:
        target.rmdir()
    try:
        os.replace(temporary, target)
    except OSError:
        if empty:
            with suppress(OSError):
                target.mkdir()
        raise


def check_new_folder(path: str | os.PathLike[str]) -> None:
    """Refuse a folder that could not be made, or that is there and holds anything."""
    target = Path(os.path.realpath(path))
    if target.exists() and not target.is_dir():
        raise WriteError("cannot make this folder: a file has its name", file=path, remedy="give a new name")
    if target.is_dir() and any(target.iterdir()):
        remedy = "give the name of a new folder: nothing that is there is replaced"
        raise WriteError("this folder is not empty", file=path, remedy=remedy)
    remedy = "give a path in a folder that exists and that you may write to"
    _try_folder(target.parent, "cannot write", path, remedy)
