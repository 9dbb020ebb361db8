"""What is kept of an online run in a folder, from which the next server goes on.

RUN/asked.json      how the run was created
RUN/N/              all of the run at some time, as ``Online.save`` writes it; N counts these states
RUN/N/since.jsonl   what was fed and closed since then: a line each, with a digest

So a feed costs one line, however many streams a run has. The next state is written when about as much was fed as there
are streams; a server that starts goes through the lines since the last one. Folders are moved into place when they are
complete, and out of it before they are removed: a server that is killed leaves a run as it was or as it is to be.
"""

from __future__ import annotations

import hashlib
import json
import logging
import os
import re
import shutil
import threading
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from retrodict import _limits
from retrodict.errors import DataError, RetrodictError, WriteError
from retrodict.events.atomic import atomic_folder, remove_folder, synced_later, write_text
from retrodict.events.plain import read_json, read_regular
from retrodict.serve.limits import RefusalError
from retrodict.serve.online_schemas import CloseRequest, FeedRequest, OnlineRequest
from retrodict.smc.online.arrivals import Arrival
from retrodict.smc.online.online import Online

log = logging.getLogger("retrodict.serve")
_ASKED, _SINCE = "asked.json", "since.jsonl"
_LEAST = 256  # streams and events that are fed before all is written again, also where a run has fewer streams
_MOST = 64 << 20  # bytes of lines before all is written again, however little they feed
_DIGEST = 16  # characters of it
_ASIDE = r"\..+\.\d+\.[0-9a-f]{12}\.tmp"  # folders that are not in place (events/atomic.py)


class KeptRun:
    """The folder of one run."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._state = folder / "0"
        self._size = self._fed = 0  # bytes of the lines since the state; requests, streams and events in them
        self._is_removed = False
        self._lock = threading.Lock()

    @classmethod
    def create(cls, folder: Path, asked: OnlineRequest, online: Online) -> KeptRun:
        """Keep a new run: all of it or nothing."""
        with atomic_folder(folder) as aside, synced_later():
            write_text(aside / _ASKED, asked.model_dump_json() + "\n")
            _write_state(online, aside / "0")
        return cls(folder)

    def asked(self) -> OnlineRequest:
        """How the run was created."""
        return OnlineRequest.model_validate(read_json(self.folder / _ASKED))

    def find_state(self) -> Path:
        """The last state that was written; what a server that was killed left beside it is removed."""
        tidy(self.folder)
        states = sorted((path for path in self.folder.iterdir() if path.name.isdecimal()), key=lambda p: int(p.name))
        if not states:
            raise DataError(
                "it holds no state of the run", file=self.folder, remedy="remove the folder, and begin anew"
            )
        self._state = states[-1]
        for path in states[:-1]:
            shutil.rmtree(path, ignore_errors=True)
        return self._state

    def replay(self, online: Online) -> None:
        """Do again what was fed and closed since the state was written."""
        data = read_regular(self._state / _SINCE, _limits.current().bytes)
        *lines, rest = data.split(b"\n")
        good = [_digest(line[_DIGEST + 1 :]) == line[:_DIGEST] for line in lines]
        count = good.index(False) if False in good else len(good)
        if any(good[count:]):
            raise DataError("it is damaged", file=self._state / _SINCE, row=count + 1, remedy="begin the run anew")
        if count < len(lines) or rest:
            log.warning("%s ends within a request, which was never answered: left out", self._state / _SINCE)
        for line in lines[:count]:
            self._size += len(line) + 1
            request = json.loads(line[_DIGEST + 1 :])
            if "streams" in request:
                online.close(CloseRequest.model_validate(request).streams)
            else:
                feed = FeedRequest.model_validate(request)
                self._count(online._take(feed.events, feed.until, feed.start, lambda _: None))

    def add(self, asked: FeedRequest | CloseRequest, arrivals: Sequence[Arrival] = ()) -> None:
        """Write down a request that is about to be done, and what it feeds; all of it or nothing."""
        text = json.dumps(asked.model_dump()).encode()
        line = _digest(text) + b" " + text + b"\n"
        with self._lock:
            if self._is_removed:
                raise RefusalError(404, "run", "the run was deleted just now.")
            try:
                _append(self._state / _SINCE, self._size, line)
            except OSError as error:
                remedy = "check that there is space on the disk and that the folder is still there"
                problem = f"cannot write: {error.strerror or error}"
                raise WriteError(problem, file=self._state / _SINCE, remedy=remedy) from error
            self._size += len(line)
            self._count(arrivals)

    def renew(self, online: Online) -> None:
        """Write all of the run if much was fed since it was; the lines stay where it cannot be written."""
        with self._lock:
            is_due = self._fed >= max(_LEAST, len(online)) or self._size >= _MOST
            if self._is_removed or not is_due:
                return
            self._fed = 0
            old, new = self._state, self.folder / str(int(self._state.name) + 1)
            try:
                _write_new_state(online, new)
            except (OSError, RetrodictError):
                log.exception("all of a run cannot be written; what was fed is kept")
                return
            self._state, self._size = new, 0
            with suppress(OSError):  # the next server removes it
                remove_folder(old)

    def remove(self) -> None:
        """Remove the folder; nothing is written into it, or into another one of its name, after that."""
        with self._lock:
            if self._is_removed:
                return
            try:
                remove_folder(self.folder)
            except OSError as error:
                problem, remedy = f"cannot remove: {error.strerror or error}", "check that you may write there"
                raise WriteError(problem, file=self.folder, remedy=remedy) from error
            self._is_removed = True

    def _count(self, arrivals: Sequence[Arrival]) -> None:
        self._fed += 1 + sum(1 + len(arrival.times) for arrival in arrivals)


def is_kept(folder: Path) -> bool:
    """Whether a folder is that of a run."""
    return folder.is_dir() and (folder / _ASKED).exists()


def tidy(folder: Path) -> None:
    """Remove what a server that was killed had not yet moved into place, or had moved out of it."""
    for path in folder.glob(".*.tmp"):
        if re.fullmatch(_ASIDE, path.name) and path.is_dir() and not path.is_symlink():
            log.warning("%s was left by a server that was killed: removed", path)
            shutil.rmtree(path, ignore_errors=True)


def _write_new_state(online: Online, folder: Path) -> None:
    with atomic_folder(folder) as aside, synced_later():
        _write_state(online, aside)


def _write_state(online: Online, folder: Path) -> None:
    online.save(folder)
    (folder / _SINCE).touch()


def _append(path: Path, size: int, line: bytes) -> None:
    """Write a line at ``size``, over what may be left of one that could not be written, and force it to the disk."""
    with open(path, "r+b", buffering=0) as file:
        try:
            file.truncate(size)
            file.seek(size)
            while line:
                line = line[file.write(line) :]
            os.fsync(file.fileno())
        except OSError:
            with suppress(OSError):
                file.truncate(size)
            raise


def _digest(text: bytes) -> bytes:
    return hashlib.blake2b(text, digest_size=_DIGEST // 2).hexdigest().encode()
