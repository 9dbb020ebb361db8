"""Times as a user gives them to questions, numbers or dates, on the axis of the streams that are asked about."""

from __future__ import annotations

import datetime
from typing import Any

import numpy as np
from numpy.typing import NDArray

from retrodict.errors import DataError, show
from retrodict.events.time_axis import TimeAxis

Moment = float | str | datetime.datetime | np.datetime64


def on_axis(value: Any, axis: TimeAxis, label: str) -> float:
    """A number as it is, or a date (text, datetime, Timestamp, datetime64) as a time on the axis.

    A date without a time zone is in the zone of the streams.
    """
    if isinstance(value, int | float | np.number) and not isinstance(value, bool | np.timedelta64):
        try:
            return float(value)
        except OverflowError:
            raise DataError(f"{label} is {show(value)}, which is too large", remedy="correct the time") from None
    from retrodict.events.io.request import Request
    from retrodict.events.io.time_column import read_time_value

    time = read_time_value(value, label, Request(timezone=axis.timezone), is_one=True)
    if time.calendar and not axis.is_calendar:
        raise DataError(f"{label} is a date, but the streams have plain numbers as times", remedy="give a number")
    if time.missing.any():
        raise DataError(f"{label} is {show(value)}, which is no time", remedy="give a number or a date")
    if not time.calendar and axis.is_calendar:
        problem = f"{label} is the number {show(value)}, but the streams have dates as times"
        raise DataError(problem, remedy="give a date, such as 2013-01-05T08:00")
    if not time.calendar:
        return float(time.values[0])
    if (time.zone is None) != (axis.timezone is None):
        remedy = "give it without a time zone" if axis.timezone is None else "give it with a time zone"
        raise DataError(f"{label} is in {time.zone}, but the dates of the streams have no time zone", remedy=remedy)
    return float(axis.from_instants(time.values)[0])


def stretch(start: Any, end: Any, axis: TimeAxis) -> tuple[float, float]:
    """The ends of a stretch of time on the axis, infinite where None was given; refused the wrong way round."""
    first = -np.inf if start is None else on_axis(start, axis, "start=")
    last = np.inf if end is None else on_axis(end, axis, "end=")
    if first > last:
        remedy = "give the earlier of the two as the start"
        raise DataError(f"start= ({show(start)}) is after end= ({show(end)})", remedy=remedy)
    return first, last


def all_on_axis(values: Any, axis: TimeAxis, label: str) -> NDArray[np.float64]:
    """Numbers or dates, one or an array of them, as times on the axis."""
    given = np.asarray(values)
    if given.dtype.kind in "iuf":
        return given.astype(np.float64)
    flat = [on_axis(value, axis, label) for value in (list(values) if given.ndim == 1 else [values])]
    return np.array(flat if given.ndim == 1 else flat[0], dtype=np.float64)
