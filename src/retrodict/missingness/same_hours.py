"""Windows by dates, moved to the same hours of every day, so that a check can try them on streams of other days."""

from __future__ import annotations

from typing import Any

from retrodict.events.stream_set import StreamSet
from retrodict.missingness.base import Either, Missingness
from retrodict.missingness.schedule import is_date, to_unit
from retrodict.missingness.windows import Windows

_DAY = 86_400


def at_same_hours(mechanism: Missingness, streams: StreamSet) -> Missingness | None:
    """The mechanism with all of its windows at the same hours of every day; None where one cannot be moved so.

    Windows of less than a day between two dates can be, for dated streams.
    """
    if isinstance(mechanism, Either):
        parts = [at_same_hours(part, streams) if isinstance(part, Windows) else part for part in mechanism.parts]
        known = [part for part in parts if part is not None]
        return Either(*known) if len(known) == len(parts) else None
    if not isinstance(mechanism, Windows) or mechanism.every is not None or mechanism.by_stream:
        return None
    if not streams.axis.is_calendar or mechanism.clock != "axis":
        return None
    zone = mechanism.in_zone(streams.axis.timezone).zone
    pairs = []
    for low, high in mechanism.windows:
        if not (is_date(low) and is_date(high)):
            return None
        since, until = (to_unit(side, None, "second", "a window", zone, shown=True) for side in (low, high))
        if until - since >= _DAY:
            return None
        pairs.append([_on_clock(since), _on_clock(until)])
    kept: dict[str, Any] = {"types": mechanism.types, "inside": mechanism.inside, "outside": mechanism.outside}
    return Windows(pairs, **kept, every="day", zone=zone)


def _on_clock(second: float) -> str:
    """The time of day."""
    minutes, seconds = divmod(int(second) % _DAY, 60)
    return f"{minutes // 60:02}:{minutes % 60:02}:{seconds:02}"
