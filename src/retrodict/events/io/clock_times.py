"""A time of day, such as 06:00, as the start or end of streams: refused with the two lines that say what is meant.

A stream has one start and one end, each with a date. Which days a stream was watched on only its table can tell.
"""

from __future__ import annotations

import datetime
import re
from typing import Any

from retrodict.events.io.request import Request

_CLOCK = re.compile(r"\s*(\d{1,2}):(\d\d)(?::(\d\d)(?:\.\d+)?)?\s*")


def refuse_clock_time(value: Any, role: str, request: Request) -> None:
    """Raise where ``value``, of the ``role`` start or end, is a time of day without a date."""
    if _clock(value) is None:
        return
    given = {side: _clock(getattr(request, side)) for side in ("start", "end")}
    given = {side: clock for side, clock in given.items() if clock is not None} or {role: str(_clock(value))}
    columns = ", ".join(f'table["{side}"]' for side in given)
    read = {None: "", "day-first": ", dayfirst=True", "month-first": ""}.get(
        request.dates, f", format={request.dates!r}"
    )
    moments = ", ".join(f'day + pd.Timedelta("{clock}")' for clock in given.values())
    remedy = (
        "make each day of a driver, a machine or a shop a stream of its own, and write from when to when it was "
        "watched into columns, with pandas:\n"
        f'    day = pd.to_datetime(table["{request.time or "time"}"]{read}).dt.normalize()\n'
        f"    {columns} = {moments}\n"
        "Then name these columns: " + ", ".join(f'{side}="{side}"' for side in given)
    )
    raise request.error(f"{role}={value} is a time of day, and streams start and end at a time with a date", remedy)


def _clock(value: Any) -> str | None:
    """Hours, minutes and seconds of a time of day; None for anything else."""
    if isinstance(value, datetime.time):
        return f"{value:%H:%M:%S}"
    found = _CLOCK.fullmatch(value) if isinstance(value, str) else None
    return None if found is None else f"{int(found[1]):02}:{found[2]}:{found[3] or '00'}"
