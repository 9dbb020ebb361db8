"""A decode together with its alignments to all particles of one type, and where the aligned events are."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit

from retrodict.decode.align import align, workspace
from retrodict.decode.arrays import Floats, Ints
from retrodict.decode.ensemble import Ensemble


class Decode(NamedTuple):
    """Sorted ``times`` [I], their ``risk``, and the event of each particle aligned to each, ``match`` [M, I], or -1."""

    times: Floats
    risk: float
    match: Ints


@njit
def align_all(times: Floats, ensemble: Ensemble, insert: float, delete: float) -> Decode:
    """Align Phase of Algorithm 3: a decode with its risk and its alignments."""
    match = np.empty((len(ensemble.weights), len(times)), np.int64)
    longest = 0
    for m in range(len(ensemble.weights)):
        longest = max(longest, ensemble.offsets[m + 1] - ensemble.offsets[m])
    work = workspace(len(times), longest)
    risk = 0.0
    for m in range(len(ensemble.weights)):
        first = ensemble.offsets[m]
        own = ensemble.times[first : ensemble.offsets[m + 1]]
        risk += ensemble.weights[m] * align(times, own, insert, delete, match[m], work)
        for i in range(len(times)):
            if match[m, i] >= 0:
                match[m, i] += first
    return Decode(times, risk, match)


@njit
def gather(event: int, ensemble: Ensemble, match: Ints, mass: Floats) -> tuple[int, int, float]:
    """Add the weight of the events aligned to ``event`` to ``mass`` [n]; the candidates they span, and the total."""
    first, last = len(mass), -1
    total = 0.0
    for m in range(len(ensemble.weights)):
        if match[m, event] >= 0:
            place = ensemble.position[match[m, event]]
            mass[place] += ensemble.weights[m]
            total += ensemble.weights[m]
            first, last = min(first, place), max(last, place)
    return first, last, total


@njit
def quantile(mass: Floats, first: int, last: int, wanted: float) -> int:
    """The first candidate from ``first`` on up to which the mass is ``wanted`` or more, at most ``last``."""
    below = 0.0
    for place in range(first, last):
        below += mass[place]
        if below >= wanted:
            return place
    return last


@njit
def clear(mass: Floats, first: int, last: int) -> None:
    """Make ``mass`` zero again between two candidates."""
    for place in range(first, last + 1):
        mass[place] = 0.0
