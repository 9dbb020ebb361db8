"""Where a mechanism and streams contradict each other: observed events that are always missing, windows beside them,
streams that end where a window begins."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from retrodict.events.batch import batches_by_length, iterate_batches, make_batch
from retrodict.events.stream_set import StreamSet
from retrodict.events.suspicion import Suspicion, edge_events
from retrodict.missingness.base import Context, Either, Missingness
from retrodict.missingness.windows import Windows
from retrodict.missingness.zones import moment

UNTOUCHED = "no stream was watched during any window of the mechanism"
IDLE = "no stream was watched during"
ALWAYS = "which the mechanism says is always missing"
_DRAWS = 8  # of times, to see which share of the streams' time is in windows


def untouched(streams: StreamSet) -> str:
    """That windows lie beside all streams, and from when to when these were watched."""
    if not streams.axis.is_calendar or not len(streams):
        return UNTOUCHED
    first, last = (moment(streams.axis, float(time)) for time in (streams.starts.min(), streams.ends.max()))
    return f"{UNTOUCHED}: they were watched between {first} and {last}"


def always_missing(mechanism: Missingness, observed: StreamSet) -> NDArray[np.bool_]:
    """Which observed events the mechanism says are always missing, [E]; of parts that look at the time alone."""
    result = np.zeros(observed.num_events, dtype=bool)
    for part in _parts(mechanism):
        if part.depends_on_time_alone:
            result |= part.on(observed).event_rates(observed) >= 1
    return result


def seen_in_windows(mechanism: Missingness, observed: StreamSet) -> tuple[int, float]:
    """Events observed in windows in which all go missing; about how many there were if nothing went missing in them."""
    windows = [part for part in _parts(mechanism) if isinstance(part, Windows) and max(part.inside, part.outside) >= 1]
    if not windows:
        return 0, 0.0
    rule = windows[0] if len(windows) == 1 else Either(*windows)
    seen = always_missing(rule, observed)
    if not seen.any():
        return 0, 0.0
    rng = np.random.default_rng(0)
    anywhere = [always_missing(rule, _moved(observed, rng)).sum() for _ in range(_DRAWS)]
    return int(seen.sum()), float(np.mean(anywhere))


def usual_rates(mechanism: Missingness, streams: StreamSet) -> NDArray[np.float64]:
    """About which share of each type goes missing, [K], by events of any type at any time of these streams."""
    rng, total, number = np.random.default_rng(0), np.zeros(streams.num_types), np.zeros(streams.num_types)
    for _ in range(_DRAWS):
        kinds = rng.integers(streams.num_types, size=streams.num_events).astype(streams.event_types.dtype)
        total += np.bincount(kinds, mechanism.on(streams).event_rates(_moved(streams, rng, kinds)), streams.num_types)
        number += np.bincount(kinds, minlength=streams.num_types)
    return total / np.maximum(number, 1)


def _moved(streams: StreamSet, rng: np.random.Generator, kinds: NDArray[Any] | None = None) -> StreamSet:
    """As many events at any time of each stream, of these types."""
    stream = streams.stream_of_event
    times = streams.starts[stream] + streams.durations[stream] * rng.random(streams.num_events)
    types = streams.event_types if kinds is None else kinds
    return streams.replace(event_times=times[np.lexsort((times, stream))], event_types=types)


def first_conflict(mechanism: Missingness, observed: StreamSet) -> str | None:
    """The first observed event that is always missing, in words; None where there is none."""
    which = np.flatnonzero(always_missing(mechanism, observed))
    if not len(which):
        return None
    event = int(which[0])
    id, name = observed.ids[int(observed.stream_of_event[event])], observed.types[int(observed.event_types[event])]
    at = moment(observed.axis, float(observed.event_times[event]))
    more = f" ({len(which) - 1:,} more such events)" if len(which) > 1 else ""
    return f"{id!r} has an event of type {name!r} at {at}, {ALWAYS}{more}"


def misses_all(mechanism: Missingness, streams: StreamSet) -> bool:
    """Whether the mechanism has windows, and no stream was watched during any of them."""
    windows = [part for part in _parts(mechanism) if isinstance(part, Windows)]
    return bool(windows and len(streams)) and not any(_touches(part, streams) for part in windows)


def beside_windows(mechanism: Missingness, streams: StreamSet) -> list[Suspicion]:
    """Windows, by dates, during which no stream was watched, and streams that end at an event just before one."""
    if misses_all(mechanism, streams):
        return []
    parts = [part for part in _parts(mechanism) if isinstance(part, Windows) and part.every is None]
    return [found for part in parts for look in (_idle, _before) for found in look(part, streams)]


def _idle(windows: Windows, streams: StreamSet) -> Iterator[Suspicion]:
    opened = torch.zeros(len(windows.windows), dtype=torch.bool)
    bound = windows.on(streams)
    assert isinstance(bound, Windows)
    for batch in iterate_batches(streams, 1024, dtype=torch.float64) if len(opened) else ():
        opened |= bound.opened(Context(batch.starts, batch.ids), batch.durations)
    idle = [pair for pair, is_open in zip(windows.windows, opened.tolist(), strict=True) if not is_open]
    if idle:
        low, high = ("..." if side is None else side for side in idle[0])
        which = f"{len(idle)} of {len(opened)} windows ({'the first: ' * (len(idle) > 1)}{low} to {high})"
        remedy = "correct its dates, unless it is for other streams"
        yield Suspicion(IDLE, f"{IDLE} {which}: nothing can have gone missing there", remedy)


def _before(windows: Windows, streams: StreamSet) -> Iterator[Suspicion]:
    at_end, gaps = edge_events(streams)[1], streams.num_events - int((streams.lengths > 0).sum())
    if not at_end.any() or gaps < 1 or windows.inside <= windows.outside:
        return
    bound, gap = windows.on(streams), float(streams.durations.sum()) / gaps
    assert isinstance(bound, Windows)
    near = np.zeros(len(streams), dtype=bool)
    for index in batches_by_length(streams.lengths, 1024):
        batch = make_batch(streams, index, dtype=torch.float64)
        near[index] = bound.follow(Context(batch.starts, batch.ids), batch.durations, gap).numpy()
    which = np.flatnonzero(near & at_end)
    if len(which):
        id = streams.ids[which[0]]
        some = f"stream {id!r}" if len(which) == 1 else f"{len(which)} streams ({id!r} is the first)"
        what = (
            f"{some} may have gone on into a window in which events go missing: the end was taken from the last "
            "observed event, at most a mean gap before it, and nothing is imputed after it"
        )
        yield Suspicion("before a window", what, "pass end= with when watching stopped, to the fit as well")


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
