"""Times as people give them, in the unit of the streams: 7.5, "08:30", "sat 22:00", "2 hours", "2024-03-01T08:00".

Mechanisms that follow a timetable are ``Scheduled``: they look at the time since the stream's start, or at its dates.
Dated streams count from 1970-01-01 UTC in their unit (times without a zone as if they were UTC). Dates without an
offset are in the zone of the streams, and what recurs follows the clocks there: the time of day is the remainder by a
day of what these show.
"""

from __future__ import annotations

import copy
import datetime
import math
import re
from collections.abc import Iterable, Sequence
from typing import Any, Self

import torch
from torch import Tensor

from retrodict.errors import ModelError
from retrodict.events.time_axis import SECONDS
from retrodict.missingness.arguments import check_positive
from retrodict.missingness.base import Context, Missingness, between
from retrodict.missingness.zones import Offsets, check_zone, offsets_of, zone_of

_MOST_TIMES = 1e6
_DAYS = {name: day for day, name in enumerate(("thu", "fri", "sat", "sun", "mon", "tue", "wed"))}  # 1970 began so
_OF_DAY = re.compile(r"(?:(?P<day>[a-z]{3})[a-z]*)?\s*(?:(?P<hour>\d\d?):(?P<minute>\d\d)(?::(?P<second>\d\d))?)?")
_LENGTH = re.compile(rf"(?P<number>[\d.]+)\s*(?P<unit>{'|'.join(SECONDS)})s?")


def to_unit(
    value: Any, own: str | None, unit: str | None, what: str, zone: str | None = None, *, shown: bool = False
) -> float:
    """A time or a length of time in ``unit``, the streams' own; numbers are in the unit ``own``, if that is given.

    Dates without an offset are in ``zone``; ``shown`` asks for what clocks show there, as if that were UTC.
    """
    if isinstance(value, int | float) and not isinstance(value, bool) and not math.isnan(value):
        if own is None or unit is None or own == unit:
            return float(value)
        return float(value) * _seconds(own, what) / _seconds(unit, what)
    seconds = read_seconds(value, zone, shown)
    if seconds is None:
        raise ModelError(
            f'{what} is {value!r}, which is no time. Give a number, a time of day such as "08:30" or "sat 08:30", a '
            'length such as "2 hours", or a date such as "2024-03-01T08:00".'
        )
    if unit is None:
        raise ModelError(
            f"{what} is {value!r}, but it is not known in which unit the streams' times are. Read dated streams, or "
            "read them with unit='hour' (or whatever they are in)."
        )
    return seconds / _seconds(unit, what)


def check_time(value: Any, what: str) -> Any:
    """The time as JSON can hold it, or the error of ``to_unit``."""
    if isinstance(value, datetime.date):
        value = value.isoformat()
    to_unit(value, None, "second", what)
    return value


def is_date(value: Any) -> bool:
    """Whether a time is a date, a weekday or a time of day."""
    return isinstance(value, str) and not _LENGTH.fullmatch(value.strip().lower()) and value not in SECONDS


def is_of_day(value: Any) -> bool:
    """Whether a time is a time of day or a weekday, and no date."""
    return is_date(value) and bool(value.strip()) and _OF_DAY.fullmatch(value.strip().lower()) is not None


def _clock_of(value: str) -> str:
    """The time of day in a time, for a message."""
    found = re.search(r"\d\d?:\d\d", value)
    return found[0].zfill(5) if found else "08:00"


def check_unit(unit: str | None, what: str) -> str | None:
    """The unit, or an error where it is not a known one."""
    if unit is not None and unit not in SECONDS:
        raise ModelError(f"{what} has the unit {unit!r}. Choose one of {', '.join(SECONDS)}.")
    return unit


def period(every: Any, own: str | None, unit: str | None, what: str) -> float | None:
    """The period ``every`` in the streams' unit; None if nothing recurs."""
    return None if every is None else check_positive(to_unit(every, own, unit, what), what)


def on_clock(t: Tensor, context: Context | None, clock: str) -> Tensor:
    """The time t since the start, or on the axis."""
    if clock == "stream":
        return t
    if context is None:
        raise ModelError("a mechanism that looks at dates needs to know when the stream started: give a context.")
    return t + context.start


def _seconds(unit: str, what: str) -> float:
    if unit not in SECONDS:
        raise ModelError(
            f"{what} cannot be told in {unit!r}, the unit of the streams' times. Units are {', '.join(SECONDS)}."
        )
    return SECONDS[unit]


def read_seconds(value: Any, zone: str | None = None, shown: bool = False) -> float | None:
    """Seconds, since 1970 or since midnight or in all; None where it is no time."""
    if not isinstance(value, str):
        return None
    text = value.strip().lower()
    if text in SECONDS:
        return SECONDS[text]
    length = _LENGTH.fullmatch(text)
    if length is not None:
        return float(length["number"]) * SECONDS[length["unit"]]
    clock = _OF_DAY.fullmatch(text)
    if text and clock is not None and (clock["day"] is None or clock["day"] in _DAYS):
        parts = [int(clock[name] or 0) for name in ("hour", "minute", "second")]
        if parts[0] > 24 or parts[1] > 59 or parts[2] > 59:
            return None
        return _DAYS.get(clock["day"] or "thu", 0) * 86400.0 + parts[0] * 3600 + parts[1] * 60 + parts[2]
    try:
        moment = datetime.datetime.fromisoformat(value.strip())
    except ValueError:
        return None
    here = zone_of(zone)
    try:
        moment = moment if moment.tzinfo else moment.replace(tzinfo=here)
        return (moment.astimezone(here).replace(tzinfo=datetime.UTC) if shown else moment).timestamp()
    except (OverflowError, ValueError):  # at the end of the calendar
        return None


class Scheduled(Missingness):
    """What mechanisms share that follow a timetable: its clock, its unit, and how often it recurs (``every``).

    The clock is "stream" (time since the stream's start) or "axis" (dates); by default as the times suggest. ``zone``
    is that of dates and times of day; None for the zone of the streams.
    """

    def __init__(
        self, times: Iterable[Any], every: Any, clock: str | None, unit: str | None, zone: str | None, what: str
    ) -> None:
        if clock not in (None, "stream", "axis"):
            raise ModelError(f"{what} has the clock {clock!r}. Choose stream (time since its start) or axis (dates).")
        self.every, self.given_clock, self.unit = every, clock, check_unit(unit, what)
        times = list(times)
        once = next((time for time in times if is_of_day(time)), None)
        if every is None and clock != "stream" and once is not None:
            raise ModelError(
                f"{what} has the time of day {once!r}, and no date. Add every: day (every='day') if it recurs, or "
                f'week for weekdays; for one day give dates, such as "2024-03-01T{_clock_of(once)}".'
            )
        dated = every is not None or any(is_date(time) for time in times)
        self.clock = clock or ("axis" if dated else "stream")
        period(every, None, "second", "every")
        self.period: float | None = None
        self.zone = check_zone(zone)
        self.offsets: Offsets | None = None
        self.bound_to: tuple[Sequence[str], str | None] | None = None

    def config(self) -> dict[str, Any]:
        """As it was given, with the zone it was found to be in."""
        return {"every": self.every, "clock": self.given_clock, "unit": self.unit, "zone": self.zone}

    @classmethod
    def from_config(cls, config: dict[str, Any]) -> Self:
        """The mechanism that ``config`` described; one from before there were zones was in UTC."""
        return cls(**{"zone": "UTC", **config})

    def in_zone(self, zone: str | None) -> Self:
        """The same with the zone of streams, where it has none of its own."""
        if zone is None or self.zone is not None or self.clock == "stream":
            return self
        there = copy.copy(self)
        there.zone = check_zone(zone)
        return there if self.bound_to is None else there.bind(*self.bound_to)

    def bind(self, types: Sequence[str], unit: str | None = None) -> Self:
        """A copy with its period in the streams' unit."""
        bound = copy.copy(self)
        bound.period = period(self.every, self.unit, unit, "every")
        bound.bound_to, bound.offsets = (types, unit), None
        if self.clock == "axis" and bound.period is not None and unit in SECONDS:
            offsets = offsets_of(self.zone, SECONDS[unit])
            bound.offsets = offsets if offsets.ahead.any() else None
        return bound

    @property
    def hours_of(self) -> list[Any] | None:
        """The clocks that what recurs follows, in lists and numbers; None for UTC."""
        return None if self.offsets is None else [x.tolist() for x in self.offsets]

    def in_unit(self, value: Any, unit: str | None, what: str) -> float:
        """A time of the timetable in the streams' unit: an instant, or, of what recurs, what clocks show."""
        return to_unit(value, self.unit, unit, what, self.zone, shown=self.every is not None)

    @property
    def depends_on_time_alone(self) -> bool:
        """Always."""
        return True

    def now(self, t: Tensor, context: Context | None, origin: Tensor | float = 0.0) -> Tensor:
        """The time t since the start on the clock; what recurs is reduced to the period that begins at ``origin``."""
        now = on_clock(t, context, self.clock)
        if self.offsets is not None:
            now = now + self.offsets.at(now)
        return now if self.period is None else origin + torch.remainder(now - origin, self.period)

    def stretch(
        self, start: Tensor, stop: Tensor, context: Context | None, origin: Tensor | float = 0.0
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Both ends on the clock, the first in the first period, and the slack that covers rounding; [..., 1] each."""
        length = stop - start
        slack = 8 * torch.finfo(torch.float64).eps * (1 + on_clock(start, context, self.clock).abs() + length)
        first = self.now(start, context, origin)
        return first[..., None], (first + length)[..., None], slack[..., None]

    def changes_clocks(self, start: Tensor, stop: Tensor, context: Context | None) -> Tensor:
        """Whether a period, or a change to or from summer time, lies between: what recurs may be anywhere then."""
        if self.period is None:
            return torch.zeros_like(start, dtype=torch.bool)
        whole = stop - start >= self.period
        if self.offsets is None:
            return whole
        low, high = (on_clock(x, context, self.clock) for x in (start, stop))
        slack = 1e-9 * (1 + high.abs())
        return whole | self.offsets.change_between(low - slack, high + slack)

    def recurring(self, times: Tensor, start: Tensor, stop: Tensor, context: Context | None) -> Tensor | None:
        """Clock times [..., J], once or every period, since the start of the stream, as ``breaks`` gives them."""
        shift = on_clock(torch.zeros_like(start), context, self.clock)
        if self.offsets is None:
            return between(self._all(times, start, stop, shift), start, stop)
        # Also where a clock that goes otherwise would show these times: integrals may be cut there too.
        each = [self._all(times, start, stop, shift + ahead) for ahead in self._ahead(start, stop, shift)]
        some = [found for part in each if (found := between(part, start, stop)) is not None]
        changes = between(self.offsets.changes.to(start.device) - shift[..., None], start, stop)
        some += [] if changes is None else [changes]
        return between(torch.cat(some, -1), start, stop) if some else None

    def _ahead(self, start: Tensor, stop: Tensor, shift: Tensor) -> list[float]:
        """How far clocks are ahead of UTC somewhere between the first start and the last stop."""
        assert self.offsets is not None
        if not start.numel():
            return []
        changes, ahead = self.offsets
        low, high = float((start + shift).min()), float((stop + shift).max())
        first, last = (int((changes <= time).sum()) for time in (low, high))
        return sorted(set(ahead[first : last + 1].tolist()))

    def _all(self, times: Tensor, start: Tensor, stop: Tensor, shift: Tensor) -> Tensor:
        """Clock times [..., J], once or every period from before start until after stop, less ``shift`` [...]."""
        if self.period is not None:
            first = torch.floor((start + shift) / self.period)
            periods = float((stop - start).max()) / self.period if start.numel() else 0.0
            if periods > _MOST_TIMES:
                raise ModelError(
                    f"what recurs every {self.period:g} recurs {periods:,.0f} times between two events. Is it in the "
                    "right unit?"
                )
            number = torch.arange(math.ceil(periods) + 1, device=start.device)
            times = (times[..., None, :] + ((first[..., None] + number) * self.period)[..., None]).flatten(-2)
        return times - shift[..., None]
