"""A mechanism in words, for a message."""

from __future__ import annotations

import datetime
from typing import Any

from retrodict.missingness.anything import Anything
from retrodict.missingness.base import Either, Missingness
from retrodict.missingness.by_type import ByType
from retrodict.missingness.windows import Windows
from retrodict.missingness.zones import zone_of

_SHOWN = 2  # windows


def in_words(missing: Missingness) -> str:
    """Rates as one would type them, windows by their times, other mechanisms as Python shows them, shortened."""
    if isinstance(missing, Anything):
        return "whatever goes missing"
    if isinstance(missing, ByType) and missing.types:
        rates = dict(zip(missing.types, missing.meaning()[1], strict=True))
        if len(set(rates.values())) == 1:
            return f"{next(iter(rates.values())):g} of every type"
        some = [f"{name}={rate:g}" for name, rate in rates.items() if rate > 0]
        return ", ".join(some[:4]) + (f" and {len(some) - 4} more" if len(some) > 4 else "")
    if isinstance(missing, Windows):
        return _windows(missing)
    if isinstance(missing, Either):
        return " * ".join(f"({in_words(part)})" for part in missing.parts)
    text = type(missing).__name__ if type(missing).__repr__ is object.__repr__ else repr(missing)
    return text if len(text) <= 160 else text[:160] + " ..."


def _windows(missing: Windows) -> str:
    """The first windows, with the offset of their zone, how many more there are, and for which types."""
    pairs: list[tuple[str | None, list[Any]]] = [(None, pair) for pair in missing.windows]
    pairs += [(str(id), pair) for id, own in missing.by_stream.items() for pair in own]
    shown = []
    for id, (low, high) in pairs[:_SHOWN]:
        since = "the start" if low is None else _time(low, missing)
        until = "the end" if high is None else _time(high, missing)
        shown.append(f"{since} to {until}" + ("" if id is None else f" of stream {id[:40]!r}"))
    text = "windows " + ", ".join(shown) + (f" and {len(pairs) - _SHOWN:,} more" if len(pairs) > _SHOWN else "")
    if missing.every is not None:
        text += f" every {missing.every}" + (f" in {missing.zone}" if missing.zone else "")
    if missing.types is not None:
        types = ", ".join(str(name)[:40] for name in missing.types[:4])
        text += f", for {types}" + (f" and {len(missing.types) - 4} more types" if len(missing.types) > 4 else "")
    return text


def _time(value: Any, missing: Windows) -> str:
    """A time as it was given; a date with its offset, where it or its mechanism has one."""
    if not isinstance(value, str):
        return f"{value:g}" + (f" {missing.unit}s" if missing.unit else "")
    try:
        moment = datetime.datetime.fromisoformat(value.strip())
    except ValueError:
        return value.strip()[:40]
    if moment.tzinfo is None and missing.zone is not None:
        moment = moment.replace(tzinfo=zone_of(missing.zone))
    exact = "minutes" if moment.second == 0 == moment.microsecond else "seconds"
    return moment.isoformat(" ", exact)
