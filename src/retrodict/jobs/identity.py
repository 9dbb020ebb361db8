"""Which input, model and options a job belongs to: another run's chunks are never taken for this one's."""

from __future__ import annotations

import hashlib
import json
import platform
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from retrodict._version import __version__
from retrodict.errors import DataError
from retrodict.events.io.pieces import parquet_files
from retrodict.jobs.folder import digest_of
from retrodict.models.tensors import weights_digest
from retrodict.proposals.base import Proposal


@dataclass(frozen=True)
class Input:
    """A table that is imputed in chunks: of which kind it is, what the user said of it, and the size of chunks."""

    file: Path
    kind: str  # "csv", "parquet" or "lines"
    given: Mapping[str, Any]  # of columns and times
    streams: int  # of a chunk, at most
    rows: int  # of a chunk, about

    @cached_property
    def identity(self) -> dict[str, Any]:
        """What another run must have in common with this one to go on with its chunks."""
        chunks = {"--chunk-streams and the rows of a chunk": [self.streams, self.rows]}
        return {"the input": _digest(self.file), **chunks, **{f"--{name}": value for name, value in self.given.items()}}


def _digest(path: Path) -> str:
    """A digest of all bytes of the input."""
    if not path.is_dir():
        return digest_of(path)
    found = hashlib.blake2b(digest_size=16)
    for file in parquet_files(path):
        found.update(f"{file.relative_to(path).as_posix()}\0{digest_of(file)}\0".encode())
    return found.hexdigest()


def describe_proposal(proposal: Proposal, engine: str) -> dict[str, str]:
    """The model, the mechanism, the weights of the proposal, and what runs it."""
    return {
        "the model": proposal.model.digest(),
        "what goes missing": digest_of_json(proposal.missingness.meaning()),
        "the smoother": f"{proposal.kind} {weights_digest(proposal.state_dict())}",
        "the engine": engine,
        "the version of retrodict": __version__,
        "the machine's architecture": platform.machine(),
    }


def digest_of_json(value: Any) -> str:
    """A digest of plain values, and of others as they are written."""
    text = json.dumps(value, sort_keys=True, default=str)
    return hashlib.blake2b(text.encode(), digest_size=8).hexdigest()


def refuse_other(found: Mapping[str, Any], wanted: Mapping[str, Any], folder: Path) -> None:
    """Raise where a job is of another input, another model or other options than are asked for now."""
    names = [name for name in {**found, **wanted} if _as_json(found.get(name)) != _as_json(wanted.get(name))]
    if names:
        told = [
            f"{name} ({found[name]} then, {wanted[name]} now)" if _is_short(found, wanted, name) else name
            for name in names
        ]
        listed = told[0] if len(told) == 1 else ", ".join(told[:-1]) + " and " + told[-1]
        raise DataError(
            f"the run that is kept here differs from this one in {listed}",
            file=folder,
            remedy="give the same command and files as before, another --output, or begin again by --restart",
        )


def _as_json(value: Any) -> str:
    return json.dumps(value, sort_keys=True)


def _is_short(found: Mapping[str, Any], wanted: Mapping[str, Any], name: str) -> bool:
    given = found.get(name), wanted.get(name)
    return name.startswith("--") and all(value is not None and len(str(value)) < 60 for value in given)
