"""Times as people give them, in the unit of the streams: 7.5, "08:30", "sat 22:00", "2 hours", "2024-03-01T08:00".

Dated streams count from 1970-01-01 UTC in their unit (times without a zone as if they were UTC), so that the time of
day is the remainder by a day. A mechanism looks either at the time since the stream's start or at this axis.
"""

from __future__ import annotations

import datetime
import math
import re
from typing import Any

import torch
from torch import Tensor

from retrodict.errors import ModelError
from retrodict.events.time_axis import SECONDS
from retrodict.missingness.base import Context, between
from retrodict.missingness.vocabulary import check_positive

_MOST_TIMES = 1e6
CLOCKS = ("stream", "axis")
_DAYS = {name: day for day, name in enumerate(("thu", "fri", "sat", "sun", "mon", "tue", "wed"))}  # 1970 began so
_OF_DAY = re.compile(r"(?:(?P<day>[a-z]{3})[a-z]*)?\s*(?:(?P<hour>\d\d?):(?P<minute>\d\d)(?::(?P<second>\d\d))?)?")
_LENGTH = re.compile(rf"(?P<number>[\d.]+)\s*(?P<unit>{'|'.join(SECONDS)})s?")


def to_unit(value: Any, own: str | None, unit: str | None, what: str) -> float:
    """A time or a length of time in ``unit``, the streams' own; numbers are in the unit ``own``, if that is given."""
    if isinstance(value, int | float) and not isinstance(value, bool) and not math.isnan(value):
        if own is None or unit is None or own == unit:
            return float(value)
        return float(value) * _seconds(own, what) / _seconds(unit, what)
    seconds = _read(value)
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
    """Whether a time is of the calendar or of the clock on the wall."""
    return isinstance(value, str) and not _LENGTH.fullmatch(value.strip().lower()) and value not in SECONDS


def check_unit(unit: str | None, what: str) -> str | None:
    """The unit, or an error where it is not a known one."""
    if unit is not None and unit not in SECONDS:
        raise ModelError(f"{what} has the unit {unit!r}. Choose one of {', '.join(SECONDS)}.")
    return unit


def check_clock(clock: str | None, is_dated: bool, what: str) -> str:
    """Which time the mechanism looks at, "stream" or "axis"; by default as the times suggest."""
    if clock is None:
        return "axis" if is_dated else "stream"
    if clock not in CLOCKS:
        raise ModelError(f"{what} has the clock {clock!r}. Choose stream (time since its start) or axis (dates).")
    return clock


def period(every: Any, own: str | None, unit: str | None, what: str) -> float | None:
    """How often times recur, in the streams' unit."""
    return None if every is None else check_positive(to_unit(every, own, unit, what), what)


def on_clock(t: Tensor, context: Context | None, clock: str) -> Tensor:
    """The time t since the start, or on the axis."""
    if clock == "stream":
        return t
    if context is None:
        raise ModelError("a mechanism that looks at dates needs to know when the stream started: give a context.")
    return t + context.start


def recurring(times: Tensor, every: float | None, start: Tensor, stop: Tensor, shift: Tensor | float) -> Tensor | None:
    """Clock times [..., J], once or every so often, since the start of the stream, as ``breaks`` gives them."""
    if every is not None:
        first = torch.floor((start + shift) / every)
        longest = float((stop - start).max()) if start.numel() else 0.0
        if longest / every > _MOST_TIMES:
            raise ModelError(
                f"what recurs every {every:g} recurs {longest / every:,.0f} times between two events. Is it in the "
                "right unit?"
            )
        number = torch.arange(math.ceil(longest / every) + 1, device=start.device)
        times = (times[..., None, :] + ((first[..., None] + number) * every)[..., None]).flatten(-2)
    return between(times - (shift[..., None] if isinstance(shift, Tensor) else shift), start, stop)


def _seconds(unit: str, what: str) -> float:
    if unit not in SECONDS:
        raise ModelError(
            f"{what} cannot be told in {unit!r}, the unit of the streams' times. Units are {', '.join(SECONDS)}."
        )
    return SECONDS[unit]


def _read(value: Any) -> float | None:
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
    zone = moment.tzinfo or datetime.UTC
    return moment.replace(tzinfo=zone).timestamp()
