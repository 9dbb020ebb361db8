"""The dates at which simulated streams start, as numbers on an axis."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from retrodict.errors import ModelError
from retrodict.events.stream_set import StreamSet
from retrodict.events.time_axis import SECONDS, TimeAxis


def dates_of(streams: StreamSet) -> NDArray[np.datetime64] | None:
    """When dated streams start, in UTC or, without a zone, as they say it, [N]; None for streams without dates."""
    if not streams.axis.is_calendar:
        return None
    return streams.axis.to_instants(streams.starts).view("datetime64[ns]")


def on_axis(dates: Any, count: int, unit: str | None, zone: str | None) -> tuple[NDArray[np.float64], TimeAxis]:
    """Starts [count] from one date or as many, and their axis; dates without an offset are in the zone.

    Datetimes of NumPy are instants, in UTC.
    """
    import pandas as pd

    try:
        given = pd.DatetimeIndex(np.atleast_1d(dates) if isinstance(dates, np.ndarray) else _listed(dates))
        if given.tz is None and zone is not None and not isinstance(dates, np.ndarray):
            given = given.tz_localize(zone)
        if given.tz is not None:
            given = given.tz_convert("UTC").tz_localize(None)
    except (ValueError, TypeError) as error:
        raise ModelError(f"start={dates!r} is no date ({error}). Give one such as 2024-03-01T08:00.") from error
    if unit not in SECONDS:
        raise ModelError(f"start= gives dates, but the model's times are in {unit!r}: dates need a known unit of time.")
    instants = given.to_numpy("datetime64[ns]").view(np.int64)
    if len(instants) not in (1, count) or given.hasnans:
        raise ModelError(f"start must be one date or {count}, one per stream.")
    instants = np.broadcast_to(instants, count)
    axis = TimeAxis(unit, int(instants.min(initial=2**62)) if count else 0, zone)
    return axis.from_instants(instants), axis


def _listed(dates: Any) -> list[Any]:
    return list(dates) if isinstance(dates, list | tuple) or hasattr(dates, "to_list") else [dates]
