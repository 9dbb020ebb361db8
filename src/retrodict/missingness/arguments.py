"""Arguments of mechanisms: types by name, by a pattern such as ``pick-up:*`` or by index; probabilities and numbers."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from fnmatch import fnmatchcase
from typing import Any

import numpy as np
import torch
from torch import Tensor

from retrodict._near import did_you_mean
from retrodict.errors import ModelError, show
from retrodict.events.stream_set import describe_types

# Constructors and torch raise these for values of the wrong kind or size in a file.
WRONG = (TypeError, ValueError, ArithmeticError, AttributeError, LookupError, RuntimeError)


def positions(name: str | int, types: Sequence[str], what: str = "to give a missing rate to") -> list[int]:
    """The positions in ``types`` of what a name, a pattern or an index means.

    >>> positions("pick-up:*", ["pick-up:A", "drop-off", "pick-up:B"])
    [0, 2]
    """
    if isinstance(name, int) and 0 <= name < len(types):
        return [name]
    if name in types:
        return [types.index(str(name))]
    found = [k for k, known in enumerate(types) if isinstance(name, str) and fnmatchcase(known, name)]
    if not found:
        near = did_you_mean(name, types)
        raise ModelError(f"no event type {name!r} {what}. The types are {describe_types(types, 20)}.{near}")
    return found


def mask_of(names: Iterable[str | int] | None, types: Sequence[str], what: str) -> Tensor:
    """1 at the types that are named, 0 at others, [K] float64; all of them where names is None."""
    mask = torch.ones(len(types), dtype=torch.float64)
    if names is not None:
        mask.zero_()
        for name in names:
            mask[positions(name, types, what)] = 1.0
    return mask


def spread(values: Any, types: Sequence[str], default: float = 0.0, what: str = "to give a value to") -> Tensor:
    """A value for each type, [K] float64, from one value or a dict by name, pattern or index; later entries win."""
    if not isinstance(values, Mapping):
        return torch.full((len(types),), float(values), dtype=torch.float64)
    vector = torch.full((len(types),), default, dtype=torch.float64)
    for name, value in values.items():
        vector[positions(name, types, what)] = float(value)
    return vector


def names_in(types: Any) -> list[str | int] | None:
    """A list of types as it was given: None for all, one name, or several."""
    if types is None:
        return None
    names = [types] if isinstance(types, str | int) else types
    if not isinstance(names, Sequence) or not all(isinstance(name, str | int) for name in names):
        raise ModelError(f"the types are {show(types)}. Give a name, or a list of names.")
    return list(names)


def check_probability(rate: Any, what: str) -> float:
    """The rate as a number, or an error that names ``what``."""
    if not (_is_number(rate) and 0 <= rate <= 1):
        as_percent = f", such as {rate / 100:g} for {rate:g} %" if _is_number(rate) and 1 < rate <= 100 else ""
        raise ModelError(
            f"{what} is {rate!r}. A rate is a probability: give a number from 0 (never missing) to 1 (always missing)"
            f"{as_percent}."
        )
    return float(rate)


def check_probabilities(rates: Any, what: str) -> None:
    """Check one rate for all types, or a dict of rates by type."""
    for name, rate in (rates if isinstance(rates, Mapping) else {"every type": rates}).items():
        check_probability(rate, f"{what} of {name!r}")


def check_positive(value: Any, what: str) -> float:
    """The value as a number, or an error that names ``what``."""
    if not (_is_number(value) and 0 < value < math.inf):
        raise ModelError(f"{what} must be a positive number, but is {value!r}.")
    return float(value)


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float | np.number) and not isinstance(value, bool)


def plain(value: Any) -> Any:
    """Values as Python's own numbers, lists and dicts, from NumPy's and torch's too."""
    if isinstance(value, Mapping):
        return {plain(name): plain(item) for name, item in value.items()}
    if isinstance(value, np.ndarray | np.generic | Tensor):
        return value.tolist()
    if isinstance(value, Sequence) and not isinstance(value, str):
        return [plain(item) for item in value]
    return value
