"""Time zones of mechanisms: dates in the zone of a table, and the hours that its clocks show, summer time included."""

from __future__ import annotations

import datetime
import functools
import re
from typing import NamedTuple
from zoneinfo import ZoneInfo

import numpy as np
import torch
from torch import Tensor

from retrodict.errors import ModelError, show
from retrodict.events.time_axis import TimeAxis

_FIRST, _LAST = 0, 4_102_444_800  # 1970 to 2100, in seconds: before and after, the first and last offsets hold
_STEP = 7 * 86_400  # clocks are never changed twice within a week


class Offsets(NamedTuple):
    """What clocks show ahead of UTC: ``ahead`` [n + 1], before, between and after the ``changes`` [n], in one unit."""

    changes: Tensor
    ahead: Tensor

    def at(self, time: Tensor) -> Tensor:
        """By how much clocks are ahead of UTC at times [...]."""
        changes = self.changes.to(time.device)
        return self.ahead.to(time.device)[torch.searchsorted(changes, time.contiguous(), right=True)]

    def change_between(self, start: Tensor, stop: Tensor) -> Tensor:
        """Whether clocks are changed in [start, stop], [...]."""
        changes = self.changes.to(start.device)
        before = torch.searchsorted(changes, start.contiguous())
        return torch.searchsorted(changes, stop.contiguous(), right=True) > before


def check_zone(name: str | None) -> str | None:
    """The zone, or an error where there is none of this name."""
    if name is not None:
        zone_of(name)
    return name


def zone_of(name: str | None) -> datetime.tzinfo:
    """A zone by name or by offset, such as +02:00; UTC where there is none."""
    if name is None:
        return datetime.UTC
    try:
        fixed = re.fullmatch(r"([+-])(\d\d):(\d\d)", name)
        if fixed is None:
            return ZoneInfo(name)
        ahead = datetime.timedelta(hours=int(fixed[2]), minutes=int(fixed[3]))
        return datetime.timezone(ahead if fixed[1] == "+" else -ahead)
    except (TypeError, KeyError, ValueError, OSError):
        raise ModelError(f"there is no time zone {show(name)}. Give one such as Europe/Berlin or +02:00.") from None


def moment(axis: TimeAxis, time: float) -> str:
    """A time of streams as a person writes it: a date with the offset of its zone, or a number."""
    if not axis.is_calendar:
        return axis.label(time)
    text = axis.label(time).removesuffix(":00")
    if axis.timezone is None:
        return text
    second = int(axis.to_instants(np.array([time]))[0]) / 1e9
    ahead = datetime.datetime.fromtimestamp(second, zone_of(axis.timezone)).strftime("%z")
    return f"{text}{ahead[:3]}:{ahead[3:5]}"


def offsets_of(name: str | None, second: float) -> Offsets:
    """How far the clocks of a zone are ahead of UTC, in a unit of so many seconds."""
    changes, ahead = _changes(name)
    as_tensor = functools.partial(torch.tensor, dtype=torch.float64)
    return Offsets(as_tensor(changes) / second, as_tensor(ahead) / second)


@functools.lru_cache(maxsize=64)
def _changes(name: str | None) -> tuple[list[float], list[float]]:
    """When the clocks of a zone are changed, and how far they are ahead before and after each change, in seconds."""
    zone = zone_of(name)

    def ahead(second: int) -> float:
        moment = datetime.datetime.fromtimestamp(second, zone)
        return (moment.utcoffset() or datetime.timedelta()).total_seconds()

    changes, known = [], [ahead(_FIRST)]
    if isinstance(zone, datetime.timezone):
        return [], known
    for low in range(_FIRST, _LAST, _STEP):
        high = low + _STEP
        if ahead(high) == known[-1]:
            continue
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (low, middle) if ahead(middle) != known[-1] else (middle, high)
        changes.append(float(high))
        known.append(ahead(high))
    return changes, known
