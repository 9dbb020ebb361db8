"""The first calendar of any model: that of a Poisson process, if it gains on dev."""

from __future__ import annotations

from typing import Any

import torch

from retrodict.errors import DataError
from retrodict.events.stream_set import StreamSet
from retrodict.events.time_axis import SECONDS
from retrodict.models.base import Model
from retrodict.models.calendar import Calendar
from retrodict.models.calendar_fit import improve_calendar
from retrodict.models.clocks import warn_of_bare_offset
from retrodict.models.covariates import DAY, Covariates
from retrodict.models.poisson import Poisson

PENALTIES = (1.0, 10.0, 100.0)  # to choose from on dev
HARMONICS = ((3, 0), (4, 3))  # of a day and of a week
FEWEST_DAYS, FEWEST_WEEKS = 3.0, 3.0  # that training streams reach over, for days and weeks to be told apart


def days_of(streams: StreamSet) -> float:
    """Over how many days dated streams reach in all; 0 where they have no dates."""
    if not streams.axis.is_calendar or not len(streams):
        return 0.0
    reach = float(streams.ends.max() - streams.starts.min())
    return reach * SECONDS[streams.axis.unit or "day"] / DAY


def first_calendar(
    model: Model, train: StreamSet, dev: StreamSet, covariates: Any = None
) -> tuple[Calendar | None, dict[str, Any]]:
    """The calendar of a Poisson process that is best on dev, None where there had better be none, and what to record.

    ``covariates`` is a table of what is known in advance (``models/covariates.py``).
    """
    days = days_of(train)
    known = None if covariates is None else Covariates.from_table(covariates, train.axis.timezone)
    if train.axis.unit not in SECONDS or not train.axis.is_calendar:
        remedy = "read streams from a table with dates, or leave the calendar out"
        raise DataError("a calendar needs streams with dates", remedy=remedy)
    kinds = [pair for pair in HARMONICS if days >= FEWEST_DAYS and (not pair[1] or days >= 7 * FEWEST_WEEKS)]
    if known is not None:
        kinds = kinds or [(0, 0)]
    flat = Poisson.from_streams(train).to(torch.float64)
    best, top = None, 0.0
    for day, week in kinds:
        flat.calendar = Calendar(
            model.num_types, day, week, unit=str(train.axis.unit), zone=train.axis.timezone, covariates=known
        ).double()
        gain = improve_calendar(flat, train, dev, PENALTIES)
        if gain > top:
            best, top = flat.calendar, gain
    record = {"poisson_dev_gain_per_event": top}
    if best is None:
        return None, {"calendar": record}
    warn_of_bare_offset(best.zone)
    best = best.to(model.device, model.dtype)
    return best, {"calendar": {**best.config(), **record}}
