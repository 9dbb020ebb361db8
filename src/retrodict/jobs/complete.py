"""The manifest that stays in a folder of parts: what is in it, and what it was made from, so that it is known again."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from retrodict.errors import DataError
from retrodict.events.atomic import write_json
from retrodict.events.plain import read_json
from retrodict.jobs.folder import digest_of
from retrodict.jobs.identity import refuse_other

NAME = "_manifest.json"  # readers of tables pass over names that begin with "_"
_MOST = 1 << 28


def write_manifest(folder: Path, identity: Mapping[str, Any], entries: list[dict[str, Any]]) -> None:
    """Write what each part holds, with its digest."""
    names = ("streams", "rows", "observed", "imputed")
    parts = {
        Path(next(iter(entry["files"]))).name: {"digest": next(iter(entry["files"].values()))}
        | {name: entry[name] for name in names}
        for entry in entries
    }
    write_json(folder / NAME, {"format": "retrodict parts", "version": 1, "made from": dict(identity), "parts": parts})


def made_from(folder: Path) -> dict[str, Any] | None:
    """What a folder of parts was made from; None where it has no manifest."""
    return _read(folder)[0] if (folder / NAME).is_file() else None


def is_complete(folder: Path, identity: Mapping[str, Any]) -> bool:
    """Whether a folder holds the whole output of this very run; that of another one is an error in words."""
    if not (folder / NAME).is_file():
        return False
    made, parts = _read(folder)
    refuse_other(made, identity, folder)
    for name, digest in parts.items():
        path = folder / Path(name).name
        if not _is_whole(path, digest):
            problem = "this part of a finished output is not what the manifest says"
            raise DataError(problem, file=path, remedy="remove the folder, and run again")
    return True


def _read(folder: Path) -> tuple[dict[str, Any], dict[str, Any]]:
    """What the folder was made from, and the digests of its parts."""
    try:
        found = read_json(folder / NAME, _MOST)
        made, parts = dict(found["made from"]), {str(name): part["digest"] for name, part in found["parts"].items()}
        if any(len(name) > 255 for name in parts):
            raise ValueError("no file can have such a name")
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        remedy = "remove the folder, and run again"
        raise DataError("the manifest is damaged", file=folder / NAME, remedy=remedy) from error
    return made, parts


def _is_whole(part: Path, digest: object) -> bool:
    with suppress(OSError, ValueError):  # a name that no file can have
        return part.is_file() and digest_of(part) == digest
    return False
