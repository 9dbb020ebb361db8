"""What the particles say about each event of a decode, and the expected terms of eq. (decomp)."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit

from retrodict.decode.aligned import Decode, clear, gather, quantile
from retrodict.decode.arrays import Floats, Ints
from retrodict.decode.ensemble import Ensemble
from retrodict.decode.search import first_at_least


class Summary(NamedTuple):
    """The ``place`` [I] (a candidate), ``probability`` [I] and ``interval`` [I, 2] of each event.

    ``expected`` [3] is the time moved and the numbers of insertions and deletions, weighted over particles.
    """

    place: Ints
    probability: Floats
    interval: Floats
    expected: Floats


@njit
def summarise(decode: Decode, ensemble: Ensemble, level: float, first: int, count: int, result: Summary) -> int:
    """Add the events of a decode, whose candidates begin at ``first``, after ``count`` others; the new count.

    Events that no particle has are left out: they are worth something only if C_delete = 0, and then nothing.
    """
    before = count
    mass = np.zeros(len(ensemble.candidates))
    for i in range(len(decode.times)):
        low, high, total = gather(i, ensemble, decode.match, mass)
        if high < 0:
            continue
        slack = 1e-12 * total  # cumulative sums of weights round
        earliest = quantile(mass, low, high, 0.5 * (1.0 - level) * total - slack)
        latest = quantile(mass, low, high, 0.5 * (1.0 + level) * total - slack)
        for j in range(low, high + 1):
            result.expected[0] += mass[j] * abs(ensemble.candidates[j] - decode.times[i])
        clear(mass, low, high)
        place = first_at_least(ensemble.candidates, decode.times[i], 0, len(mass))
        result.place[count] = first + place
        result.probability[count] = min(total, 1.0)
        result.interval[count, 0] = ensemble.candidates[earliest]
        result.interval[count, 1] = ensemble.candidates[latest]
        count += 1
    for m in range(len(ensemble.weights)):
        agreed = 0
        for i in range(len(decode.times)):
            agreed += decode.match[m, i] >= 0
        size = ensemble.offsets[m + 1] - ensemble.offsets[m]
        result.expected[1] += ensemble.weights[m] * (size - agreed)
        result.expected[2] += ensemble.weights[m] * (count - before - agreed)
    return count
