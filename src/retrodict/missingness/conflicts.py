"""Where a mechanism and streams contradict each other: observed events that are always missing, windows beside them."""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import NDArray

from retrodict.events.batch import iterate_batches
from retrodict.events.stream_set import StreamSet
from retrodict.missingness.base import Context, Either, Missingness
from retrodict.missingness.windows import Windows
from retrodict.missingness.zones import moment

UNTOUCHED = "no stream was watched during any window of the mechanism"


def always_missing(mechanism: Missingness, observed: StreamSet) -> NDArray[np.bool_]:
    """Which observed events the mechanism says are always missing, [E]; of parts that look at the time alone."""
    result = np.zeros(observed.num_events, dtype=bool)
    for part in _parts(mechanism):
        if part.depends_on_time_alone:
            result |= part.on(observed).event_rates(observed) >= 1
    return result


def first_conflict(mechanism: Missingness, observed: StreamSet) -> str | None:
    """The first observed event that is always missing, in words; None where there is none."""
    which = np.flatnonzero(always_missing(mechanism, observed))
    if not len(which):
        return None
    event = int(which[0])
    id, name = observed.ids[int(observed.stream_of_event[event])], observed.types[int(observed.event_types[event])]
    at = moment(observed.axis, float(observed.event_times[event]))
    more = f" ({len(which) - 1:,} more such events)" if len(which) > 1 else ""
    return f"{id!r} has an event of type {name!r} at {at}, which the mechanism says is always missing{more}"


def misses_all(mechanism: Missingness, streams: StreamSet) -> bool:
    """Whether the mechanism has windows, and no stream was watched during any of them."""
    windows = [part for part in _parts(mechanism) if isinstance(part, Windows)]
    return bool(windows and len(streams)) and not any(_touches(part, streams) for part in windows)


def _touches(windows: Windows, streams: StreamSet) -> bool:
    if windows.every is not None:
        return True
    bound = windows.on(streams)
    assert isinstance(bound, Windows)
    return any(
        bound.is_open(Context(batch.starts, batch.ids), batch.durations)
        for batch in iterate_batches(streams, 1024, dtype=torch.float64)
    )


def _parts(mechanism: Missingness) -> tuple[Missingness, ...]:
    return mechanism.parts if isinstance(mechanism, Either) else (mechanism,)
