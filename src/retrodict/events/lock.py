"""A lock so that one process at a time writes to a folder; it names its holder and ends with the holder's process."""

from __future__ import annotations

import datetime
import os
import socket
import sys
import threading
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from retrodict.errors import BusyError, DataNotice
from retrodict.events.atomic import make_folder

_held: dict[tuple[int, str], int] = {}  # by thread and folder: how often it is held


@contextmanager
def lock_folder(path: str | os.PathLike[str]) -> Iterator[None]:
    """Hold a folder (made if need be) for the block; BusyError, with the holder's name, if another process holds it.

    A thread may hold a folder more than once.
    """
    folder = make_folder(path)
    key = threading.get_ident(), os.path.realpath(folder)
    if key in _held:
        _held[key] += 1
        try:
            yield
        finally:
            _held[key] -= 1
        return
    file = folder / ".lock"
    descriptor = _acquire(file)
    _held[key] = 1
    try:
        yield
    finally:
        del _held[key]
        if descriptor is not None:
            _release(file, descriptor)


def _acquire(file: Path) -> int | None:
    """An open, locked descriptor that holds the holder's name; None where locks are not supported."""
    while True:
        try:
            descriptor = os.open(file, os.O_RDWR | os.O_CREAT | getattr(os, "O_NOFOLLOW", 0), 0o666)
        except FileNotFoundError:  # the holder may have removed the whole folder just now
            make_folder(file.parent)
            continue
        except OSError as error:
            _go_without(file, error)
            return None
        try:
            _lock(descriptor)
        except BlockingIOError:
            holder = os.read(descriptor, 400).decode("utf-8", "replace").strip()
            os.close(descriptor)
            raise BusyError(
                f"{file.parent} is in use by {holder or 'another process'}. Wait until it has finished, stop it, or "
                "give another folder."
            ) from None
        except OSError as error:
            os.close(descriptor)
            _go_without(file, error)
            return None
        with suppress(OSError):
            if os.stat(file).st_ino == os.fstat(descriptor).st_ino:  # the holder may have removed the file just now
                break
        os.close(descriptor)
    with suppress(OSError):  # the lock holds without a name, too
        os.ftruncate(descriptor, 0)
        os.write(descriptor, _name().encode())
    return descriptor


if sys.platform == "win32":  # where an open file cannot be removed, nor a locked byte read
    import msvcrt

    def _lock(descriptor: int) -> None:
        os.lseek(descriptor, 1 << 30, os.SEEK_SET)  # a byte far behind the holder's name
        try:
            msvcrt.locking(descriptor, msvcrt.LK_NBLCK, 1)
        except PermissionError:
            raise BlockingIOError from None
        finally:
            os.lseek(descriptor, 0, os.SEEK_SET)

    def _release(file: Path, descriptor: int) -> None:
        os.close(descriptor)
        with suppress(OSError):
            file.unlink()

else:
    import fcntl

    def _lock(descriptor: int) -> None:
        """Lock an open file for this process, or raise BlockingIOError."""
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)

    def _release(file: Path, descriptor: int) -> None:
        """Remove the file of a lock, then let it go."""
        with suppress(OSError):
            file.unlink()
        os.close(descriptor)


def _go_without(file: Path, error: OSError) -> None:
    warnings.warn(
        f"{file.parent} cannot be locked ({error.strerror}): see to it that no other process writes there",
        DataNotice,
        stacklevel=4,
    )


def _name() -> str:
    command = " ".join([Path(sys.argv[0]).name, *sys.argv[1:]])[:200] if sys.argv and sys.argv[0] else "Python"
    since = datetime.datetime.now().astimezone().isoformat(timespec="seconds")
    return f"process {os.getpid()} on {socket.gethostname()} ({command}, since {since})"
