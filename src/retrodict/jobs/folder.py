"""What is on disk while a job is unfinished.

FOLDER/plan.json            the chunks of the input, and what holds for all of them
FOLDER/rows/                the input, spread into files of some streams each
FOLDER/job.json             the model, the options and the versions
FOLDER/settled.json         for all chunks, how many particles a stream has and how many events one of them may have
FOLDER/sampled/00007/       the draws of chunk 7, a folder as ``Posterior.save`` writes it
FOLDER/pooled/00007/        what of it all streams together are judged by (``pooled``)
FOLDER/pooled.json          what all draws together decided
FOLDER/parts/00007.*        the answer for chunk 7
FOLDER/done/sampled-00007.json, FOLDER/done/parts-00007.json    its entries in the manifest
FOLDER/held.json            the run that works on it now: workers that outlive an earlier one commit nothing more
FOLDER/finished.json        what was done, once all parts are; FOLDER/written.json the output's digest, once it is there

The manifest has one small file for each chunk and stage, written after the files that it vouches for, with their
digests: a chunk is done if its entry is there and the files are what it says. So nothing has to be forced to the disk
before the output is, and whoever does a chunk twice writes the same bytes twice. Every JSON file has a digest of its
own content as well: one that was damaged on the disk is never believed.
"""

from __future__ import annotations

import hashlib
import json
import secrets
import shutil
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from retrodict.errors import BusyError, DataError
from retrodict.events.atomic import make_folder, remove_folder, synced_later, write_json
from retrodict.events.plain import read_json

SUFFIX = ".unfinished"
_ENTRY: dict[str, dict[str, type]] = {  # what an entry of each stage has
    "sampled": {"files": dict, "streams": int, "possible": int, "impossible": list, "notes": list},
    "parts": {"files": dict, "streams": int, "rows": int, "observed": int, "imputed": int, "notes": list},
}
_SEAL = "digest of this file"
_PIECE = 1 << 20
_MOST = 1 << 30  # bytes of a plan


def beside(output: Path) -> Path:
    """Where the unfinished job of an output is kept."""
    return output.with_name(output.name + SUFFIX)


def digest_of(path: Path) -> str:
    """A digest of the bytes of a file, or of all files of a folder with their names."""
    found = hashlib.blake2b(digest_size=16)
    files = sorted(p for p in path.rglob("*") if p.is_file()) if path.is_dir() else [path]
    for file in files:
        if path.is_dir():
            found.update(f"{file.relative_to(path).as_posix()}\0{file.stat().st_size}\0".encode())
        with open(file, "rb") as opened:
            while piece := opened.read(_PIECE):
                found.update(piece)
    return found.hexdigest()


def _sealed(value: Mapping[str, Any]) -> dict[str, Any]:
    """A JSON object with the digest of its content."""
    text = json.dumps(dict(value), sort_keys=True)
    return {**value, _SEAL: hashlib.blake2b(text.encode(), digest_size=16).hexdigest()}


def _read_sealed(path: Path) -> dict[str, Any]:
    """A JSON object without its digest; ValueError where it is not what was written."""
    found = read_json(path, _MOST)
    if not isinstance(found, dict):
        raise ValueError("it holds no JSON object")
    value = {name: each for name, each in found.items() if name != _SEAL}
    if _sealed(value) != found:
        raise ValueError("its content is not what its digest says")
    return value


class JobFolder:
    """The folder of one job."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.rows, self.sampled, self.parts = path / "rows", path / "sampled", path / "parts"
        self.pooled = path / "pooled"

    @property
    def exists(self) -> bool:
        """Whether there is anything to go on with."""
        return self.path.is_dir() and any(entry.name != ".lock" for entry in self.path.iterdir())

    def make(self) -> None:
        """Make the folders that are lacking."""
        for folder in (self.rows, self.sampled, self.pooled, self.parts, self.path / "done"):
            make_folder(folder)

    def clear(self) -> None:
        """Remove all but the lock that is held."""
        for entry in self.path.iterdir():
            if entry.name != ".lock":
                shutil.rmtree(entry) if entry.is_dir() and not entry.is_symlink() else entry.unlink()

    def tidy(self) -> None:
        """Remove what processes that were killed left beside the draws of chunks."""
        for folder in (self.sampled, self.pooled):
            for entry in folder.glob(".*"):
                shutil.rmtree(entry, ignore_errors=True)

    def remove(self) -> None:
        """Remove the folder: the job is finished."""
        remove_folder(self.path)

    def read(self, name: str) -> dict[str, Any] | None:
        """A JSON object of the job, None where there is none; a damaged one is an error in words."""
        file = self.path / name
        if not file.exists():
            return None
        try:
            return _read_sealed(file)
        except (OSError, ValueError) as error:
            why = getattr(error, "strerror", None) or error
            problem = f"this file of an unfinished run is damaged ({why})"
            raise DataError(problem, file=file, remedy="begin again with --restart") from error

    def write(self, name: str, value: Mapping[str, Any]) -> None:
        """Write a JSON object of the job, all of it or nothing."""
        write_json(self.path / name, _sealed(value))

    def part(self, number: int, suffix: str) -> Path:
        """The file with the answer for a chunk."""
        return self.parts / f"{number:05d}{suffix}"

    def draws(self, number: int) -> Path:
        """The folder with the draws of a chunk."""
        return self.sampled / f"{number:05d}"

    def _entry(self, stage: str, number: int) -> Path:
        return self.path / "done" / f"{stage}-{number:05d}.json"

    def hold(self) -> str:
        """From now on only work that was given this name is committed."""
        name = secrets.token_hex(8)
        self.write("held.json", {"run": name})
        return name

    def check_held(self, run: str) -> None:
        """Refuse to go on with the work of a run whose place another one has taken."""
        found = self.read("held.json")
        if found is None or found.get("run") != run:
            raise BusyError(f"{self.path} is not held by the run that this process works for: it has ended.")

    def commit(self, stage: str, number: int, digests: Mapping[Path, str], facts: Mapping[str, Any]) -> dict[str, Any]:
        """Enter a chunk into the manifest, its files (or folders) being complete."""
        entry = {"files": {file.relative_to(self.path).as_posix(): digest for file, digest in digests.items()}, **facts}
        with synced_later():
            write_json(self._entry(stage, number), _sealed(entry))
        return entry

    def entry(self, stage: str, number: int) -> dict[str, Any] | None:
        """What the manifest says of a chunk; None where it says nothing, or nothing that can be read."""
        with suppress(OSError, ValueError):
            found = _read_sealed(self._entry(stage, number))
            if all(isinstance(found.get(name), kind) for name, kind in _ENTRY[stage].items()):
                return found
        return None

    def is_done(self, stage: str, number: int, files: Sequence[Path]) -> bool:
        """Whether a chunk is done and its files are what the manifest says; else it is taken out of the manifest."""
        found = self.entry(stage, number)
        with suppress(OSError):
            if found is not None and all(
                file.exists() and digest_of(file) == found["files"].get(file.relative_to(self.path).as_posix())
                for file in files
            ):
                return True
        self.forget(stage, number)
        return False

    def forget(self, stage: str, number: int) -> None:
        """Take a chunk out of the manifest."""
        self._entry(stage, number).unlink(missing_ok=True)
