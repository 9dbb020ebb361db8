"""The command that writes the table of another answer of the page, as far as the page knows where its draws are."""

from __future__ import annotations

import shlex
from itertools import pairwise
from pathlib import PurePath

_DRAWS, _ANSWER = "OUTPUT.draws", "ANSWER.csv"


def decode_command(command: str | None, cost: float, unit: str | None) -> str | None:
    """What to type for a cost in the unit of the streams, after the ``command`` that imputed; None without draws."""
    words = _words(command)
    if "--no-draws" in words:
        return None
    output, kept, given = (_option(words, *names) for names in (("--output", "-o"), ("--draws",), ("--unit",)))
    draws = kept or (f"{output}.draws" if output else _DRAWS)
    price = f"{cost:.6g}"
    units = ["--unit", unit] if unit and given not in (None, unit) else []  # else that of the streams is meant
    return shlex.join(["retrodict", "decode", draws, "--cost", price, *units, "-o", _beside(output, price)])


def _words(command: str | None) -> list[str]:
    """The words of a command that imputes; none of another, or of one that was cut off."""
    try:
        words = shlex.split(command or "")
    except ValueError:
        return []
    return words if words[:2] == ["retrodict", "impute"] else []


def _option(words: list[str], *names: str) -> str | None:
    """The last value of an option that may be written as ``-o x``, ``-ox``, ``--output x`` or ``--output=x``."""
    found = None
    for word, after in pairwise([*words, ""]):
        for name in names:
            joined = f"{name}=" if name.startswith("--") else name
            if word == name:
                found = after
            elif word.startswith(joined):
                found = word.removeprefix(joined)
    return found or None


def _beside(output: str | None, price: str) -> str:
    """A name that tells the cost, so that the table that was written stays."""
    if not output:
        return _ANSWER
    path = PurePath(output)
    stem, dot, ending = path.name.partition(".")
    return str(path.with_name(f"{stem}-cost-{price}{dot}{ending}"))
