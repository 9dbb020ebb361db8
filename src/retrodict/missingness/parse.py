"""Missing rates as people type them: ``pick-up=0.5``, ``'pick-up:*=1'``, or ``0.5`` for every type."""

from __future__ import annotations

from collections.abc import Sequence
from fnmatch import fnmatchcase

from retrodict.errors import ModelError
from retrodict.events.stream_set import describe_types
from retrodict.missingness.by_type import ByType


def parse_missing(specs: Sequence[str], types: Sequence[str]) -> ByType:
    """A ByType mechanism over ``types`` from texts NAME=RATE, PATTERN=RATE or RATE; later ones win.

    >>> parse_missing(["0.1", "pick-up:*=0.5"], ["drop-off:A", "pick-up:A", "pick-up:B"])
    ByType({'drop-off:A': 0.1, 'pick-up:A': 0.5, 'pick-up:B': 0.5})
    """
    rates: dict[str, float] = {}
    for spec in specs:
        name, equals, number = spec.rpartition("=")
        try:
            rate = float(number)
        except ValueError:
            raise ModelError(
                f"cannot understand the missing rate {spec!r}. Write NAME=RATE, such as pick-up=0.5, a pattern such as "
                "'pick-up:*=1', or a single rate for every type."
            ) from None
        matches = [t for t in types if fnmatchcase(t, name)] if equals and name not in types else [name]
        if not equals:
            matches = list(types)
        if not matches:
            raise ModelError(f"no event type matches {name!r}. The types are {describe_types(types, 20)}.")
        rates.update(dict.fromkeys(matches, rate))
    return ByType(rates).bind(types)
