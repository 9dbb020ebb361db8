"""Other ways to turn an ensemble into one stream, to compare the consensus with."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

from retrodict.decode.ensemble import check_particles
from retrodict.decode.kernels import Floats
from retrodict.decode.transport import CostLike, distance_matrix
from retrodict.errors import DataError
from retrodict.events.stream import EventStream


def most_probable(particles: Sequence[EventStream], weights: ArrayLike | None) -> EventStream:
    """The particle of largest total weight, copies counted together."""
    streams, w = check_particles(particles, weights)
    total: dict[tuple[bytes, bytes], float] = {}
    for stream, weight in zip(streams, w.tolist(), strict=True):
        key = (stream.times.tobytes(), stream.types.tobytes())
        total[key] = total.get(key, 0.0) + weight
    return max(streams, key=lambda s: total[s.times.tobytes(), s.types.tobytes()])


def medoid(particles: Sequence[EventStream], weights: ArrayLike | None, cost: CostLike) -> EventStream:
    """The particle with the least weighted distance to all particles: M^2 alignments."""
    streams, w = check_particles(particles, weights)
    risks = distance_matrix(streams, streams, cost) @ w
    return streams[int(np.argmin(risks))]


def thresholded(
    particles: Sequence[EventStream], weights: ArrayLike | None, window: float, threshold: float = 0.5
) -> EventStream:
    """Events where the posterior intensity peaks: greedily, the window of time with the most expected events.

    A window of length ``window`` that holds at least ``threshold`` expected events (of one type) gives an
    event at their weighted median; its events are set aside and the search goes on.
    """
    if not (np.isfinite(window) and window > 0 and np.isfinite(threshold) and threshold > 0):
        raise DataError(f"window={window}, threshold={threshold}", remedy="pass a positive length and expected count")
    streams, w = check_particles(particles, weights)
    every = np.concatenate([s.times for s in streams])
    kinds = np.concatenate([s.types for s in streams])
    mass = np.repeat(w, [len(s) for s in streams])
    of_type = [kinds == k for k in range(kinds.max(initial=-1) + 1)]
    found = [_peaks(every[chosen], mass[chosen], window, threshold) for chosen in of_type]
    times = np.concatenate([np.empty(0), *found])
    types = np.repeat(np.arange(len(found)), [len(t) for t in found])
    order = np.argsort(times, kind="stable")
    start, end = min(s.start for s in streams), max(s.end for s in streams)
    return EventStream.trusted(times[order], types[order], start, end, streams[0].id)


def _peaks(times: Floats, mass: Floats, window: float, threshold: float) -> Floats:
    """Times [I] of the peaks of one type, from events of all particles [E] and the weight of each."""
    order = np.argsort(times, kind="stable")
    times, mass = times[order], mass[order]
    peaks = []
    while len(times):
        stop = np.searchsorted(times, times + window, side="right")
        running = np.concatenate([[0.0], np.cumsum(mass)])
        held = running[stop] - running[:-1]
        best = int(np.argmax(held))
        if held[best] < threshold * (1 - 1e-12):
            break
        inside = slice(best, stop[best])
        half = np.searchsorted(np.cumsum(mass[inside]), 0.5 * held[best])
        peaks.append(times[inside][min(half, stop[best] - best - 1)])
        times, mass = np.delete(times, inside), np.delete(mass, inside)
    return np.array(peaks)
