"""Clocks that a calendar goes by, and those of a table: a bare offset, such as +01:00, has no summer time."""

from __future__ import annotations

import re
import warnings

import torch

from retrodict.errors import SuspicionNotice
from retrodict.events.stream_set import StreamSet
from retrodict.missingness.zones import offsets_of
from retrodict.models.base import Model


def has_no_summer_time(zone: str | None) -> bool:
    """Whether a zone is an offset from UTC, and no place."""
    return zone is None or zone == "UTC" or re.fullmatch(r"[+-]\d\d:\d\d", zone) is not None


def warn_of_bare_offset(zone: str | None) -> None:
    """Say that a calendar was learned by an offset that dates were written with."""
    if zone not in (None, "UTC") and has_no_summer_time(zone):
        warnings.warn(
            f"hours of the day are learned by clocks of {zone}, which know no summer time. If people's clocks there "
            "do, fit again with the place, such as timezone='Europe/Berlin'",
            SuspicionNotice,
            stacklevel=3,
        )


def warn_of_other_clocks(model: Model, streams: StreamSet) -> None:
    """Say where a table's dates are written by other clocks than those that the model's hours of the day are of.

    Dates in UTC are instants to a model that knows its place.
    """
    calendar, axis = model.calendar, streams.axis
    if calendar is None or not len(streams) or not axis.is_calendar or calendar.zone == axis.timezone:
        return
    if axis.timezone == "UTC" and not has_no_summer_time(calendar.zone):
        return
    first = torch.as_tensor(axis.to_instants(streams.starts) / 1e9)
    differ = offsets_of(calendar.zone, 1.0).at(first) != offsets_of(axis.timezone, 1.0).at(first)
    if not differ.any():
        return
    remedy = "Check that they are of the same place"
    if has_no_summer_time(calendar.zone):
        remedy = "If only one of the two is summer time, fit again with the place, such as timezone='Europe/Berlin'"
    warnings.warn(
        f"these dates are by clocks of {axis.timezone or 'no time zone'}, and the model knows hours of the day by "
        f"clocks of {calendar.zone or 'no time zone'}, where it was another hour: it takes people's habits to be "
        f"shifted. {remedy}",
        SuspicionNotice,
        stacklevel=3,
    )
