"""Which input, model and options a job belongs to: another run's chunks are never taken for this one's."""

from __future__ import annotations

import hashlib
import json
import platform
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from retrodict._version import __version__
from retrodict.errors import DataError
from retrodict.events.io.pieces import parquet_files
from retrodict.jobs.folder import digest_of, same
from retrodict.models.tensors import weights_digest
from retrodict.proposals.base import Proposal


def input_digest(path: Path) -> str:
    """A digest of all bytes of the input."""
    if not path.is_dir():
        return digest_of(path)
    found = hashlib.blake2b(digest_size=16)
    for file in parquet_files(path):
        found.update(f"{file.relative_to(path).as_posix()}\0{digest_of(file)}\0".encode())
    return found.hexdigest()


def input_identity(file: Path, given: Mapping[str, Any], streams: int, rows: int) -> dict[str, Any]:
    """The input, how it is read, and into which chunks it is cut."""
    found = {"the input": input_digest(file), "--chunk-streams and the rows of a chunk": [streams, rows]}
    return found | {f"--{name}": value for name, value in given.items()}


def describe_proposal(proposal: Proposal, engine: str) -> dict[str, str]:
    """The model, the mechanism, the weights of the proposal, and what runs it."""
    missing = json.dumps(proposal.missingness.meaning(), sort_keys=True, default=str)
    return {
        "the model": proposal.model.digest(),
        "what goes missing": hashlib.blake2b(missing.encode(), digest_size=8).hexdigest(),
        "the smoother": f"{proposal.kind} {weights_digest(proposal.state_dict())}",
        "the engine": engine,
        "the version of retrodict": __version__,
        "the machine's architecture": platform.machine(),
    }


def refuse_other(found: Mapping[str, Any], wanted: Mapping[str, Any], folder: Path) -> None:
    """Raise where an unfinished job is of another input, another model or other options than are asked for now."""
    names = [name for name in {**found, **wanted} if not same(found.get(name), wanted.get(name))]
    if names:
        told = [
            f"{name} ({found[name]} then, {wanted[name]} now)" if _is_short(found, wanted, name) else name
            for name in names
        ]
        listed = told[0] if len(told) == 1 else ", ".join(told[:-1]) + " and " + told[-1]
        raise DataError(
            f"the unfinished run that is kept here differs from this one in {listed}",
            file=folder,
            remedy="give the same command and files as before, another --output, or begin again by --restart",
        )


def _is_short(found: Mapping[str, Any], wanted: Mapping[str, Any], name: str) -> bool:
    given = found.get(name), wanted.get(name)
    return name.startswith("--") and all(value is not None and len(str(value)) < 60 for value in given)
