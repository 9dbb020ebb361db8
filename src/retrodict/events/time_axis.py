"""What the numbers on the time axis mean: a unit, and for calendar data an origin and a time zone.

>>> axis = TimeAxis("hour", origin=0)
>>> axis.from_instants(np.array([5_400_000_000_000]))
array([1.5])
>>> axis.to_instants(np.array([1.5]))
array([5400000000000])
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from datetime import UTC, datetime, timedelta, timezone
from typing import Any
from zoneinfo import ZoneInfo

import numpy as np
from numpy.typing import NDArray

from retrodict.errors import DataError

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

    def units_in(self, other: TimeAxis) -> float:
        """How many of the other axis's units one of this axis's units is; both must be known."""
        if self.scale is None or other.scale is None:
            remedy = f"read the streams with unit={other.unit!r} if that is what their times are in"
            raise DataError(f"cannot convert times from {self.unit!r} to {other.unit!r}", remedy=remedy)
        return self.scale / other.scale

    def convert(self, times: NDArray[np.float64], other: TimeAxis) -> NDArray[np.float64]:
        """Times on the other axis: in its unit and, where both have dates, since its origin; NaN stays NaN."""
        if not (self.is_calendar and other.is_calendar and self.origin != other.origin):
            return times * (1.0 if self.unit == other.unit else self.units_in(other))
        known = ~np.isnan(times)
        result = np.full(times.shape, np.nan)
        result[known] = other.from_instants(self.to_instants(times[known]))
        return result

    @property
    def is_calendar(self) -> bool:
        """Whether times stand for dates, so that tables give datetimes back."""
        return self.origin is not None

    @property
    def scale(self) -> float | None:
        """Seconds in one unit, where the unit is a known one."""
        return None if self.unit is None else SECONDS.get(self.unit)

    @property
    def since_1970(self) -> float:
        """How many units after 1970-01-01 UTC zero is; 0 where times are plain numbers."""
        return 0.0 if self.origin is None or self.scale is None else self.origin / 1e9 / self.scale

    def to_dict(self) -> dict[str, Any]:
        """Plain values, for a file's metadata."""
        return asdict(self)

    @classmethod
    def from_dict(cls, facts: Mapping[str, Any]) -> TimeAxis:
        """The axis that ``to_dict`` described; ValueError if this is no such thing."""
        kinds = {"unit": str, "origin": int, "timezone": str}
        good = all(key in kinds and isinstance(value, kinds[key] | None) for key, value in facts.items())
        calendar = facts.get("origin") is not None
        good = good and abs(facts.get("origin") or 0) < 2**62
        if not good or (calendar and facts.get("unit") not in SECONDS) or not _is_zone(facts.get("timezone")):
            raise ValueError(f"{dict(facts)!r} is not a time axis")
        return cls(**facts)

    def from_instants(self, instants: NDArray[np.int64]) -> NDArray[np.float64]:
        """Times in units since the origin, from nanoseconds since 1970 (calendar axes only)."""
        origin, step = self._calendar()
        # Whole units and the rest apart: one division of the sum would lose the last digits.
        whole, rest = np.divmod(instants - origin, step)
        return whole + rest / step

    def to_instants(self, times: NDArray[np.float64]) -> NDArray[np.int64]:
        """Nanoseconds since 1970 (calendar axes only); what was read to the microsecond comes back so."""
        origin, step = self._calendar()
        whole = np.floor(times)
        instants = whole.astype(np.int64) * step + np.rint((times - whole) * step).astype(np.int64) + origin
        # A float64 of hours is a few nanoseconds off the instant it came from: give the instant itself back.
        snapped = (instants + 500) // 1000 * 1000
        return np.where(self.from_instants(snapped) == times, snapped, instants)

    def label(self, time: float) -> str:
        """A time as a person reads it: a date and time of day in the axis's zone, or a number."""
        if not self.is_calendar:
            return f"{time:g}"
        instant = datetime.fromtimestamp(int(self.to_instants(np.array([time]))[0]) / 1e9, UTC)
        if self.timezone is not None:
            fixed = re.fullmatch(r"([+-])(\d\d):(\d\d)", self.timezone)
            offset = int(fixed[1] + "1") * timedelta(hours=int(fixed[2]), minutes=int(fixed[3])) if fixed else None
            instant = instant.astimezone(ZoneInfo(self.timezone) if offset is None else timezone(offset))
        return f"{instant:%Y-%m-%d %H:%M:%S}"

    def _calendar(self) -> tuple[int, int]:
        if self.origin is None or self.scale is None:
            remedy = f"give it an origin and one of the units {', '.join(SECONDS)}"
            raise DataError(f"{self} does not say which instants its times stand for", remedy=remedy)
        return self.origin, round(self.scale * 1e9)


def _is_zone(name: str | None) -> bool:
    if name is None or re.fullmatch(r"[+-]\d\d:\d\d", name):
        return True
    try:
        return ZoneInfo(name).key == name
    except (KeyError, ValueError, OSError):  # unknown, malformed, or a folder of zones
        return False
