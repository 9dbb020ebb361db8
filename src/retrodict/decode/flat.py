"""Ensembles of many streams in flat arrays, what their consensus events are charged, and thinning.

A set of N streams with M particles each is decoded, thinned and compared without a Python object for any particle.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from retrodict.decode.ensemble import check_weights
from retrodict.decode.kernels import Floats, Ints, entry_point
from retrodict.errors import DataError


class Ensembles(NamedTuple):
    """M weighted particles for each of N streams, with E events in all.

    Particle m of stream i owns events ``offsets[i M + m]:offsets[i M + m + 1]``, sorted by time.
    """

    event_times: Floats  # [E]
    event_types: Ints  # [E]
    offsets: Ints  # [N M + 1]
    weights: Floats  # [N, M]


class Charges(NamedTuple):
    """What each consensus event costs beside its risk, by the segment of time it is in: a pseudo-count.

    Stream i has segments ``offsets[i]:offsets[i + 1]``. A segment begins at its entry of ``starts`` and ends where the
    next begins; the first also covers what is before it. ``values`` are in units of C_delete: 1 / N_eff for the
    effective number N_eff of independent guesses in the segment.
    """

    starts: Floats  # [S], sorted within each stream
    values: Floats  # [S]
    offsets: Ints  # [N + 1]


def check_ensembles(ensembles: Ensembles) -> Ensembles:
    """The ensembles with weights that sum to one for each stream; an error names the stream."""
    times = np.ascontiguousarray(ensembles.event_times, dtype=np.float64)
    types = np.ascontiguousarray(ensembles.event_types, dtype=np.int64)
    offsets = np.ascontiguousarray(ensembles.offsets, dtype=np.int64)
    weights = np.asarray(ensembles.weights, dtype=np.float64)
    if weights.ndim != 2 or weights.shape[1] == 0:
        raise DataError(f"weights have the shape {weights.shape}", remedy="give [N, M]: a row for each stream")
    if offsets.shape != (weights.size + 1,) or times.shape != types.shape or times.shape != (offsets[-1],):
        raise DataError(
            f"{weights.size} particles, but offsets {offsets.shape}, times {times.shape} and types {types.shape}",
            remedy="give offsets [N M + 1] that end at the number of events, and a time and a type for each event",
        )
    good = np.isfinite(weights).all(1) & (weights >= 0).all(1) & (weights.max(1) > 0)
    if not good.all():
        stream = int(np.argmin(good))
        try:
            check_weights(weights[stream], weights.shape[1])
        except DataError as error:
            raise DataError(error.problem, stream=stream, remedy=error.remedy) from error
    weights = weights / weights.max(1, keepdims=True)
    return Ensembles(times, types, offsets, weights / weights.sum(1, keepdims=True))


def check_charges(charges: Charges | None, streams: int) -> Charges:
    """The charges as arrays of the right kind; none for None."""
    if charges is None:
        return Charges(np.empty(0), np.empty(0), np.zeros(streams + 1, np.int64))
    starts = np.ascontiguousarray(charges.starts, dtype=np.float64)
    values = np.ascontiguousarray(charges.values, dtype=np.float64)
    offsets = np.ascontiguousarray(charges.offsets, dtype=np.int64)
    if offsets.shape != (streams + 1,) or starts.shape != values.shape or starts.shape != (offsets[-1],):
        raise DataError(
            f"charges of {streams} streams have starts {starts.shape}, values {values.shape}, offsets {offsets.shape}",
            remedy="give offsets [N + 1], and a start and a value for each segment",
        )
    first = np.zeros(len(starts) + 1, dtype=bool)
    first[offsets] = True
    wrong = ~(np.isfinite(values) & (values >= 0) & np.isfinite(starts))
    wrong[1:] |= (np.diff(starts) < 0) & ~first[1:-1]
    if wrong.any():
        segment = int(np.argmax(wrong))
        stream = int(np.searchsorted(offsets, segment, side="right")) - 1
        raise DataError(
            f"segment {segment - offsets[stream]} starts at {starts[segment]:g} and is charged {values[segment]:g}",
            stream=stream,
            remedy="give starts in order of time, and charges that are finite and not negative",
        )
    return Charges(starts, values, offsets)


def thin_set(ensembles: Ensembles, draws: int, uniforms: ArrayLike) -> Ensembles:
    """Equally weighted ``draws`` of each ensemble by systematic picking, so that all expectations are kept on average.

    ``uniforms`` [N] in [0, 1) say where the picking begins: a function of the stream's own key keeps a stream's draws
    whatever set it is in. Ensembles of no more particles are returned as they are.
    """
    if draws < 1:
        raise DataError(f"draws is {draws}", remedy="ask for at least 1")
    checked = check_ensembles(ensembles)
    N, M = checked.weights.shape
    if draws >= M:
        return checked
    begins = np.array(np.broadcast_to(np.asarray(uniforms, dtype=np.float64), N))
    picked = _pick(checked.weights, draws, begins) + M * np.arange(N)[:, None]
    rows = picked.reshape(-1)
    counts = np.diff(checked.offsets)[rows]
    offsets = np.concatenate([[0], np.cumsum(counts)])
    events = np.repeat(checked.offsets[rows] - offsets[:-1], counts) + np.arange(offsets[-1])
    equal = np.full((N, draws), 1.0 / draws)
    return Ensembles(checked.event_times[events], checked.event_types[events], offsets, equal)


@entry_point
def _pick(weights: Floats, draws: int, begins: Floats) -> Ints:
    """The particle of its stream that each draw is, [N, draws]: the one in whose share of the weight its point lies."""
    N, M = weights.shape
    picked = np.empty((N, draws), np.int64)
    for i in range(N):
        total, last = 0.0, 0
        for m in range(M):
            total += weights[i, m]
            if weights[i, m] > 0.0:
                last = m  # rounding must not pick beyond all weight
        m, edge = 0, weights[i, 0]
        for d in range(draws):
            point = (d + begins[i]) / draws
            while m < last and edge / total <= point:
                m += 1
                edge += weights[i, m]
            picked[i, d] = m
    return picked
