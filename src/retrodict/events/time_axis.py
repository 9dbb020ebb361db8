"""What the numbers on the time axis mean: a unit, and for calendar data an origin and a time zone."""

from __future__ import annotations

from dataclasses import dataclass

SECONDS = {
    "nanosecond": 1e-9,
    "microsecond": 1e-6,
    "millisecond": 1e-3,
    "second": 1.0,
    "minute": 60.0,
    "hour": 3600.0,
    "day": 86400.0,
    "week": 604800.0,
}


@dataclass(frozen=True)
class TimeAxis:
    """The unit of a stream set's times, and where zero is when they came from a calendar.

    ``unit`` is a name from ``SECONDS``, any other word the user chose, or None when unknown.
    ``origin`` is the instant of time 0.0 in nanoseconds since 1970-01-01 UTC (naive times are counted as
    if they were UTC), or None when times were plain numbers. ``timezone`` is the zone in which datetimes
    are given back; None with an origin means naive datetimes.
    """

    unit: str | None = None
    origin: int | None = None
    timezone: str | None = None

    @property
    def is_calendar(self) -> bool:
        """Whether times stand for dates, so that tables give datetimes back."""
        return self.origin is not None

    @property
    def scale(self) -> float | None:
        """Seconds in one unit, where the unit is a known one."""
        return None if self.unit is None else SECONDS.get(self.unit)
