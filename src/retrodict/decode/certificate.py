"""Lower bounds on the risk of every decode, from dual potentials (docs/consensus.md, section 4).

If f_m is 1-Lipschitz with -C_insert <= f_m <= C_delete, then L(z, z_m) is at least the sum of f_m over the
events of z less its sum over the events of z_m. If moreover sum_m w_m f_m >= 0 at every candidate, the first
sums weigh nothing or more, and no decode has a risk below -sum_m w_m sum_i f_m(z_mi).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit

from retrodict.decode.arrays import Floats
from retrodict.decode.ensemble import Ensemble, weighted_sum


class Bound(NamedTuple):
    """A lower bound on the risk of every decode, and the feasible ``potentials`` [E] behind it.

    ``price`` [n] is what a consensus event would cost at every candidate before potentials were made feasible.
    """

    lower: float
    potentials: Floats
    price: Floats


@njit
def _close(values: Floats, ensemble: Ensemble, insert: float, delete: float) -> Floats:
    """The largest 1-Lipschitz potentials at the events [E] that are at most ``values`` and within bounds."""
    closed = np.empty(len(values))
    for e in range(len(values)):
        closed[e] = min(max(values[e], -insert), delete)
    for m in range(len(ensemble.weights)):
        first, stop = ensemble.offsets[m], ensemble.offsets[m + 1]
        for e in range(first + 1, stop):
            closed[e] = min(closed[e], closed[e - 1] + ensemble.times[e] - ensemble.times[e - 1])
        for e in range(stop - 2, first - 1, -1):
            closed[e] = min(closed[e], closed[e + 1] + ensemble.times[e + 1] - ensemble.times[e])
    return closed


@njit(fastmath={"reassoc"})
def _raised(row: Floats, weights: Floats, level: float) -> tuple[float, float]:
    """sum_m w_m max(f_m, level), and the weight of the f_m below the level."""
    total, slope = 0.0, 0.0
    for m in range(len(row)):
        total += weights[m] * max(row[m], level)
        slope += weights[m] if row[m] < level else 0.0
    return total, slope


@njit
def _raised_floor(row: Floats, weights: Floats, guess: float, slack: float) -> float:
    """The level b at which sum_m w_m max(f_m, b) = 0, by Newton steps (it is convex in b), or ``guess`` if more."""
    level = guess
    for step in range(len(row) + 2):
        total, slope = _raised(row, weights, level)
        if step == 0 and total >= 0:
            break
        if slope == 0:
            if step > 0:
                break
            level = 0.0  # the guess was too low to say anything
            continue
        level -= total / slope
        if abs(total) <= slack:
            break
    return level


@njit
def _price(closed: Floats, ensemble: Ensemble, insert: float, delete: float) -> tuple[Floats, Floats]:
    """sum_m w_m f_m at every candidate [n] (a consensus event there pays if it is negative), and the floors.

    f_m is as large as the events' potentials allow; a floor [n] is a level to which all have to be raised for
    no event to pay. A sweep over time that knows the neighbouring events of every particle.
    """
    times, offsets, weights = ensemble.times, ensemble.offsets, ensemble.weights
    n, M = len(ensemble.candidates), len(weights)
    price, floor, f = np.empty(n), np.empty(n), np.empty(M)
    left, before, right, behind = np.zeros(M), np.full(M, -np.inf), np.zeros(M), np.full(M, np.inf)
    for m in range(M):
        if offsets[m] < offsets[m + 1]:
            right[m], behind[m] = closed[offsets[m]], times[offsets[m]]
    for j in range(n):
        time = ensemble.candidates[j]
        for k in range(ensemble.bounds[j], ensemble.bounds[j + 1]):
            e = ensemble.events[k]
            m = ensemble.owner[e]
            left[m], before[m], right[m], behind[m] = closed[e], time, 0.0, np.inf
            if e + 1 < offsets[m + 1]:
                right[m], behind[m] = closed[e + 1], times[e + 1]
        for m in range(M):
            f[m] = min(delete, min(left[m] + (time - before[m]), right[m] + (behind[m] - time)))
        price[j] = weighted_sum(f, weights)
        floor[j] = -insert if j == 0 else max(-insert, floor[j - 1] - (time - ensemble.candidates[j - 1]))
        if price[j] < 0:
            floor[j] = _raised_floor(f, weights, floor[j], 2e-16 * (insert + delete))
    for j in range(n - 2, -1, -1):
        floor[j] = max(floor[j], floor[j + 1] - (ensemble.candidates[j + 1] - ensemble.candidates[j]))
    return price, floor


@njit
def bound(values: Floats, ensemble: Ensemble, insert: float, delete: float) -> Bound:
    """The bound that potentials ``values`` [E] at the particle events give.

    Any will do: where they would let a consensus event pay, potentials are raised.
    """
    closed = _close(values, ensemble, insert, delete)
    price, floor = _price(closed, ensemble, insert, delete)
    lower = 0.0
    for m in range(len(ensemble.weights)):
        for e in range(ensemble.offsets[m], ensemble.offsets[m + 1]):
            closed[e] = max(closed[e], floor[ensemble.position[e]])
            lower -= ensemble.weights[m] * closed[e]
    return Bound(lower, closed, price)
