"""What was probably meant by a name or a folder that is not there."""

from __future__ import annotations

import os
from collections.abc import Iterable
from contextlib import suppress
from difflib import get_close_matches
from itertools import islice
from pathlib import Path

_LONGEST, _MOST, _ALIKE = 100, 10_000, 0.7  # characters, names that are compared, and how much they have in common


def nearest(name: object, known: Iterable[str]) -> str | None:
    """The known name that is most like this one, whatever the case; None where none is, or where it is a number.

    >>> nearest("ruond", ["admission", "round"])
    'round'
    """
    if not isinstance(name, str) or len(name) > _LONGEST or name.isdecimal():
        return None
    folded = {each.casefold(): each for each in islice(known, _MOST) if len(each) <= _LONGEST}
    found = get_close_matches(name.casefold(), folded, 1, _ALIKE)
    return folded[found[0]] if found else None


def did_you_mean(name: object, known: Iterable[str]) -> str:
    """A question to end a message with, after a space, or nothing."""
    near = nearest(name, known)
    return "" if near is None else f" Did you mean {near!r}?"


def correct_type(name: object, known: Iterable[str]) -> str:
    """The first words of a remedy for an unknown type."""
    near = nearest(name, known)
    return "correct the type" + ("" if near is None else f" (did you mean {near!r}?)")


def why_no_folder(path: Path, holds: str) -> str | None:
    """Why a path is no folder that holds such a file as ``model.json``, with the remedy; None where it is one."""
    if os.path.isfile(path / holds):
        return None
    what, remedy = holds.removesuffix(".json"), "Pass the folder that fit wrote."
    if os.path.isdir(path):
        return f"{path} is not a saved {what}: there is no {holds} in it. {remedy}"
    if os.path.lexists(path):
        remedy = "Pass the folder that it is in." if path.name == holds else remedy
        return f"{path} is a file, not the folder of a saved {what}. {remedy}"
    near = nearest(path.name, _folders_beside(path, holds))
    return f"{path}: there is no such folder. " + (remedy if near is None else f"Did you mean {path.with_name(near)}/?")


def _folders_beside(path: Path, holds: str) -> list[str]:
    """The folders beside a path that hold such a file, by name."""
    with suppress(OSError), os.scandir(path.parent) as there:
        return [each.name for each in islice(there, _MOST) if os.path.isfile(Path(each.path, holds))]
    return []
