"""What goes missing as people type it: ``pick-up=0.5``, ``'pick-up:*=1'``, ``0.5`` for every type, or a YAML file."""

from __future__ import annotations

from collections.abc import Sequence
from fnmatch import fnmatchcase

from retrodict.errors import DataError, ModelError
from retrodict.events.stream_set import describe_types
from retrodict.missingness.base import Either, Missingness
from retrodict.missingness.by_type import ByType
from retrodict.missingness.vocabulary import WRONG

_SUFFIXES = (".yaml", ".yml")


def parse_missing(specs: Sequence[str], types: Sequence[str], unit: str | None = None) -> Missingness:
    """A mechanism over ``types`` from texts NAME=RATE, PATTERN=RATE or RATE, of which later ones win, and YAML files.

    >>> parse_missing(["0.1", "pick-up:*=0.5"], ["drop-off:A", "pick-up:A", "pick-up:B"])
    ByType({'drop-off:A': 0.1, 'pick-up:A': 0.5, 'pick-up:B': 0.5})
    """
    files = [spec for spec in specs if spec.lower().endswith(_SUFFIXES)]
    rates = [spec for spec in specs if spec not in files]
    parts = [_from_file(file, types, unit) for file in files]
    if rates:
        parts.insert(0, _by_type(rates, types))
    return parts[0] if len(parts) == 1 else Either(*parts)


def _from_file(file: str, types: Sequence[str], unit: str | None) -> Missingness:
    from retrodict.missingness.spec import read_missing

    mechanism = read_missing(file)
    try:
        return mechanism.bind(types, unit)
    except WRONG as error:
        raise DataError(str(error)[:500], file=file, remedy="correct the mechanism") from error


def _by_type(specs: Sequence[str], types: Sequence[str]) -> ByType:
    rates: dict[str, float] = {}
    for spec in specs:
        name, equals, number = spec.rpartition("=")
        try:
            rate = float(number)
        except ValueError:
            raise ModelError(
                f"cannot understand the missing rate {spec!r}. Write NAME=RATE, such as pick-up=0.5, a pattern such as "
                "'pick-up:*=1', a single rate for every type, or a file such as missing.yaml."
            ) from None
        matches = [t for t in types if fnmatchcase(t, name)] if equals and name not in types else [name]
        if not equals:
            matches = list(types)
        if not matches:
            raise ModelError(f"no event type matches {name!r}. The types are {describe_types(types, 20)}.")
        rates.update(dict.fromkeys(matches, rate))
    return ByType(rates).bind(types)
