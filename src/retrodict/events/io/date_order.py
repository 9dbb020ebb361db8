"""Dates that could all be read with day and month exchanged, and would then lie far closer together.

>>> dates = pa.array(["08.12.2025", "09.12.2025 07:30", "10.12.2025"])
>>> other_order(dates, "day-first") is None
True
>>> other_order(dates, "month-first").split(": ")[0]
'every date could be read both ways'
"""

from __future__ import annotations

import datetime

import pyarrow as pa
import pyarrow.compute as pc

from retrodict.events.io.date_forms import FIRST, LARGE, MONTHS, date_form, joined

_FAR_LESS = 0.1  # of the span
_LOOK = 1000  # dates that are looked at before all are


def other_order(column: pa.Array, dates: str) -> str | None:
    """That dates in the form "day-first" or "month-first" look like the other; None where they do not."""
    if dates not in FIRST:
        return None
    texts = pc.utf8_trim_whitespace(column.drop_null().cast(LARGE))
    if not len(texts) or _exchanged(texts[:_LOOK], dates) is None:
        return None
    both = _exchanged(texts, dates)
    if both is None:
        return None
    read, other = (_span(days) for days in both)
    if other > _FAR_LESS * read:
        return None
    at = pc.index(pc.not_equal(*both), True).as_py()
    day = both[0][at].as_py()
    names = {"day-first": "the day first", "month-first": "the month first"}
    instead = next(name for name in FIRST if name != dates)
    return (
        f"every date could be read both ways: with {names[dates]} they span {read:,} days, as here "
        f"({texts[at].as_py()!r} is {_words(day)}), with {names[instead]} only {other:,}. "
        f"If the {other:,} days are right, pass dates='{instead}'"
    )


def _exchanged(texts: pa.Array, dates: str) -> tuple[pa.Array, pa.Array] | None:
    """The days as they are read, and with day and month exchanged; None where some could not be so."""
    form = date_form(dates)
    if form.parts(texts)["day"].null_count:  # ISO 8601
        return None
    iso = form.to_iso(texts)
    year, month, day = (pc.utf8_slice_codeunits(iso, *place) for place in ((0, 4), (5, 7), (8, 10)))
    try:
        return _days(year, month, day), _days(year, day, month)
    except pa.ArrowInvalid:  # no month has this number
        return None


def _days(year: pa.Array, month: pa.Array, day: pa.Array) -> pa.Array:
    """Days from the texts of their parts."""
    return joined(year, "-", month, "-", day).cast(pa.date32())


def _span(days: pa.Array) -> int:
    ends = pc.min_max(days.cast(pa.int32())).as_py()
    return int(ends["max"] - ends["min"]) + 1


def _words(day: datetime.date) -> str:
    return f"{day.day} {MONTHS[day.month - 1]} {day.year}"
