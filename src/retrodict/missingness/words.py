"""A mechanism in words, for a message."""

from __future__ import annotations

from retrodict.missingness.anything import Anything
from retrodict.missingness.base import Missingness
from retrodict.missingness.by_type import ByType


def in_words(missing: Missingness) -> str:
    """Rates as one would type them, other mechanisms as Python shows them, shortened."""
    if isinstance(missing, Anything):
        return "whatever goes missing"
    if isinstance(missing, ByType) and missing.types:
        rates = dict(zip(missing.types, missing.meaning()[1], strict=True))
        if len(set(rates.values())) == 1:
            return f"{next(iter(rates.values())):g} of every type"
        some = [f"{name}={rate:g}" for name, rate in rates.items() if rate > 0]
        return ", ".join(some[:4]) + (f" and {len(some) - 4} more" if len(some) > 4 else "")
    text = type(missing).__name__ if type(missing).__repr__ is object.__repr__ else repr(missing)
    return text if len(text) <= 160 else text[:160] + " ..."
