"""What in a set of streams would mislead a model or an imputation: each with numbers and a remedy.

All of it is cheap: a few passes over the arrays, and a sample of the times for what is asked of single time stamps.
"""

from __future__ import annotations

import datetime
import warnings
from collections.abc import Callable, Iterator
from typing import NamedTuple
from zoneinfo import ZoneInfo

import numpy as np
from numpy.typing import NDArray

from retrodict.errors import DataError, SuspicionNotice, show
from retrodict.events.factor import in_times
from retrodict.events.stream_set import StreamSet
from retrodict.events.time_axis import SECONDS

_NEARLY, _FEWEST = 0.9, 10  # the share of streams that is nearly all of them, and how many must be there to say so
_SAMPLE = 2000  # times that are looked at one by one
_ROUND = {
    **{name: SECONDS[name] for name in ("millisecond", "second", "minute")},
    "5 minutes": 300.0,
    "quarter of an hour": 900.0,
    "half an hour": 1800.0,
    **{name: SECONDS[name] for name in ("hour", "day", "week")},
}
_UNIX = {"seconds": 1.0, "milliseconds": 1e-3, "microseconds": 1e-6, "nanoseconds": 1e-9}
_SINCE, _UNTIL = 8e8, 2.5e9  # seconds: 1995 to 2049


class Suspicion(NamedTuple):
    """A finding: its ``kind``, what is the case and what it does, and a remedy."""

    kind: str
    what: str
    remedy: str

    def __str__(self) -> str:
        return f"{self.what}. Remedy: {self.remedy}."


def suspicions(streams: StreamSet) -> list[Suspicion]:
    """What in the streams would mislead, the worst first; empty where nothing would."""
    if not streams.num_events:
        return []
    looks = (_unix_time, _same_number, _ends_at_events, _lattice, _midnight, _duplicates)
    return [found for look in looks for found in look(streams)]


def warn_of(streams: StreamSet, *, skip: tuple[str, ...] = (), stacklevel: int = 3) -> None:
    """One ``SuspicionNotice`` for each finding but the kinds to ``skip``; Unix time counted from 1970 is refused."""
    refuse_unix_time(streams)
    for found in suspicions(streams):
        if found.kind not in skip:
            warnings.warn(str(found), SuspicionNotice, stacklevel=stacklevel)


def refuse_unix_time(streams: StreamSet) -> None:
    """Refuse streams that start in 1970 and have their events decades later: no work on them would end."""
    for found in _unix_time(streams) if streams.num_events else ():
        raise DataError(found.what, remedy=found.remedy)


def _unix_time(streams: StreamSet) -> Iterator[Suspicion]:
    """Seconds since 1970 (or thousandths of them ...) in streams that start at 0."""
    filled = streams.lengths > 0
    first = streams.event_times[streams.offsets[:-1][filled]]
    last = streams.event_times[streams.offsets[1:][filled] - 1]
    if streams.axis.is_calendar or (streams.starts[filled] != 0).any() or first.min() <= 10 * (last - first).max():
        return
    scale = streams.axis.scale
    units = _UNIX if scale is None else {f"{streams.axis.unit}s": scale}
    for unit, seconds in units.items():
        if _SINCE < first.min() * seconds < _UNTIL and last.max() * seconds < _UNTIL:
            day = datetime.datetime.fromtimestamp(float(first.min()) * seconds, datetime.UTC)
            yield Suspicion(
                "unix",
                f"times look like Unix time ({first.min():.12g} is {day:%Y-%m-%d} in {unit} since 1970), but streams "
                f"start at 0, in 1970: {day.year - 1970} years without an event",
                "turn the column into dates (pandas.to_datetime with its unit), or pass start= with when each stream "
                "starts, a column or a number",
            )
            return


def _same_number(streams: StreamSet) -> Iterator[Suspicion]:
    """Nearly all streams have one and the same number of events."""
    lengths = streams.lengths[streams.lengths > 0]
    values, counts = np.unique(lengths, return_counts=True)
    most = int(counts.argmax())
    if len(lengths) >= _FEWEST and counts[most] >= _NEARLY * len(lengths) and values[most] > 1:
        yield Suspicion(
            "same number",
            f"{_of(int(counts[most]), len(lengths))} have exactly {values[most]} events, so a cut has chosen their "
            "lengths. A model does not know this, and expected numbers of missing events are biased",
            "cut streams at times that do not depend on the events, such as midnight (start= and end= say which)",
        )


def _ends_at_events(streams: StreamSet) -> Iterator[Suspicion]:
    """Nearly all streams end exactly at an event."""
    if nearly_all_end_at_events(streams):
        filled, at_end = streams.lengths > 0, edge_events(streams)[1]
        yield Suspicion(
            "ends",
            f"{_of(int(at_end.sum()), int(filled.sum()))} end exactly at an event, as if a cut by events had chosen "
            "their lengths. A model that was not fitted to complete streams of this kind does not know this, and where "
            "last events may be missing, expected numbers of missing events are biased",
            "fit the model to complete streams that end so (it then learns when streams end), or pass end= with when "
            "watching stopped",
        )


def nearly_all_end_at_events(streams: StreamSet) -> bool:
    """Whether nearly all streams that have events end exactly at one, and there are enough of them to say so."""
    filled = int((streams.lengths > 0).sum())
    return filled >= _FEWEST and int(edge_events(streams)[1].sum()) >= _NEARLY * filled


class Lattice(NamedTuple):
    """Times are multiples of a ``step``, so many times the ``usual`` gap; ``ties`` is the share of gaps of nought."""

    name: str
    step: float
    usual: float
    ties: float


def lattice_of(streams: StreamSet) -> Lattice | None:
    """The longest step that nearly all times are multiples of; None where there is none, or too few gaps to tell."""
    gaps = _gaps(streams)
    gaps = gaps[np.isfinite(gaps)]
    apart = gaps[gaps > 0]
    if len(apart) < _FEWEST:
        return None
    ties, usual = 1 - len(apart) / len(gaps), float(np.median(apart[:: 1 + len(apart) // 100_000]))
    times = _local_times(streams)
    for name, step in _steps(streams, usual):
        share = times / step
        if (np.abs(share - np.round(share)) < 1e-4).mean() >= 0.99:
            return Lattice(name, step, usual, ties)
    return None


def coarse_lattice(streams: StreamSet) -> Lattice | None:
    """The lattice of times whose step is not small against the gaps, or that has many ties; None without one."""
    found = lattice_of(streams) if streams.num_events else None
    return found if found is not None and (found.step >= 0.1 * found.usual or found.ties >= 0.01) else None


def _lattice(streams: StreamSet) -> Iterator[Suspicion]:
    """Nearly all times are multiples of a step that is not small against the gaps."""
    found = coarse_lattice(streams)
    if found is not None:
        yield Suspicion(
            "lattice",
            f"times are multiples of {found.name} ({in_times(found.step / found.usual)} the median gap), and "
            f"{found.ties:.1%} of the events have the time of the event before, which a model learns",
            "give finer times or rd.spread(streams); 'retrodict fit' compares models on spread times by itself",
        )


def _steps(streams: StreamSet, usual: float) -> list[tuple[str, float]]:
    """Steps that people round times to, in the streams' unit, the longest first."""
    scale = streams.axis.scale
    if scale is not None:
        named = [(name if name[0].isdigit() or " " in name else f"one {name}", s / scale) for name, s in _ROUND.items()]
        return [(name, step) for name, step in reversed(named) if 1e-3 * usual < step <= 1e3 * usual]
    power = int(np.floor(np.log10(usual)))
    steps = [digit * 10.0**p for p in range(power + 3, power - 4, -1) for digit in (5, 2, 1)]
    return [(f"{step:g}", step) for step in steps]


def _local_times(streams: StreamSet) -> NDArray[np.float64]:
    """Some of the times, counted from midnight where they are dates, in the streams' unit."""
    every = 1 + streams.num_events // _SAMPLE
    times, axis = streams.event_times[::every], streams.axis
    if not axis.is_calendar or axis.scale is None:
        return times
    day = round(86400e9)
    instants = axis.to_instants(times)
    if axis.timezone is not None:
        zone = _zone(axis.timezone)
        whole = (datetime.datetime.fromtimestamp(t, zone).utcoffset() for t in (instants // 10**9).tolist())
        instants = instants + np.array([round((o or datetime.timedelta()).total_seconds()) * 10**9 for o in whole])
    # Days and the rest apart: nanoseconds since 1970 have more digits than a float.
    return (instants // day) * (86400.0 / axis.scale) + (instants % day) / (axis.scale * 1e9)


def _zone(name: str) -> datetime.tzinfo:
    if name[0] not in "+-":
        return ZoneInfo(name)
    hours, minutes = int(name[1:3]), int(name[4:6])
    return datetime.timezone((1 if name[0] == "+" else -1) * datetime.timedelta(hours=hours, minutes=minutes))


def _midnight(streams: StreamSet) -> Iterator[Suspicion]:
    """Many dates, but not all, have no time of day."""
    if not streams.axis.is_calendar or streams.axis.scale is None:
        return
    share = float((_local_times(streams) % (86400.0 / streams.axis.scale) == 0).mean())
    if 0.05 <= share < 0.95 and streams.num_events >= 20:
        yield Suspicion(
            "midnight",
            f"{share:.0%} of the times are exactly midnight, as dates without a time of day are read. A model learns a "
            "burst of events at midnight",
            "fill in the times of day, or leave out the events that have none",
        )


def _duplicates(streams: StreamSet) -> Iterator[Suspicion]:
    """Events that repeat another of the same stream, time and type."""
    tied = _gaps(streams) == 0
    run = np.concatenate([[0], np.cumsum(~tied)])  # events of one stream at one time
    some = np.concatenate([[False], tied]) | np.concatenate([tied, [False]])
    keys = np.sort(run[some] * streams.num_types + streams.event_types[some])
    again = keys[1:][np.diff(keys) == 0]
    if len(again):
        event = int(np.searchsorted(run, again[0] // streams.num_types))
        first = streams.ids[int(np.searchsorted(streams.offsets, event, side="right")) - 1]
        yield Suspicion(
            "duplicates",
            f"{len(again):,} event{'s' if len(again) > 1 else ''} ({len(again) / streams.num_events:.2%}) "
            f"repeat{'' if len(again) > 1 else 's'} another of the same stream, time and type, the first in stream "
            f"{show(first)}. A model learns to expect an event right after itself",
            "drop those that are one event recorded twice",
        )


def _gaps(streams: StreamSet) -> NDArray[np.float64]:
    """Times between consecutive events, [E - 1]; infinite where the next one is of another stream."""
    gaps = np.diff(streams.event_times)
    borders = streams.offsets[1:-1]
    gaps[borders[(borders > 0) & (borders < streams.num_events)] - 1] = np.inf
    return gaps


def edge_events(streams: StreamSet) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """Whether each stream has an event exactly at its start, and one at its end, [N] each."""
    filled = streams.lengths > 0
    at_start, at_end = np.zeros(len(streams), dtype=bool), np.zeros(len(streams), dtype=bool)
    at_start[filled] = streams.event_times[streams.offsets[:-1][filled]] == streams.starts[filled]
    at_end[filled] = streams.event_times[streams.offsets[1:][filled] - 1] == streams.ends[filled]
    return at_start, at_end


def beyond_edges(streams: StreamSet, expected: Callable[[], float] | None = None) -> list[Suspicion]:
    """What is not imputed before or after streams that begin or end exactly at observed events.

    ``expected`` tells how many events are missing in all streams; by default as many as were seen. A stream that was
    watched from no event in particular has about one mean gap before its first observed event, and as many missing
    events there as anywhere in that time.
    """
    supposed = "" if expected is not None else " if as many are missing as were seen"
    duration, filled = float(streams.durations.sum()), int((streams.lengths > 0).sum())
    edges = edge_events(streams)
    gaps = streams.num_events + filled - int(edges[0].sum()) - int(edges[1].sum())
    if duration <= 0 or gaps <= 0 or filled < _FEWEST or max(there.sum() for there in edges) < _NEARLY * filled:
        return []
    missing = float(streams.num_events) if expected is None else expected()  # which may take long to find out
    if missing < 1:
        return []
    found = []
    words = (("begin", "before", "start", "began"), ("end", "after", "end", "stopped"))
    for (side, where, option, then), there in zip(words, edges, strict=True):
        if there.sum() >= _NEARLY * filled:
            lost = missing / gaps * int(there.sum())  # missing events per unit of time, times the mean gap
            what = (
                f"{_of(int(there.sum()), filled)} {side} exactly at an observed event, and nothing is imputed {where} "
                f"it. If watching did not {side} with an event, about {lost:,.0f} missing events are left out"
                f"{supposed}: as many as in a mean gap of each stream"
            )
            found.append(Suspicion(option, what, f"pass {option}= with when watching {then}, to the fit as well"))
    return found


def _of(some: int, all: int) -> str:
    return f"all {all:,} streams" if some == all else f"{some:,} of {all:,} streams"
