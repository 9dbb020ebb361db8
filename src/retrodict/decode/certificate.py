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
from retrodict.decode.ensemble import Ensemble
from retrodict.decode.search import first_at_least

CELLS = 1 << 20  # potentials held at a time, so that memory does not grow with particles x candidates


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


@njit
def _extend(closed: Floats, ensemble: Ensemble, delete: float, first: int, stop: int) -> Floats:
    """The largest potentials f_m at candidates ``first`` to ``stop``, [M, stop - first], given the events'."""
    f = np.empty((len(ensemble.weights), stop - first))
    for m in range(len(ensemble.weights)):
        begin, end = ensemble.offsets[m], ensemble.offsets[m + 1]
        after = begin + first_at_least(ensemble.position[begin:end], first)
        left, before = (closed[after - 1], ensemble.times[after - 1]) if after > begin else (0.0, -np.inf)
        place = first
        while place < stop:
            # Between two events of the particle only these two matter; the left one is at or before ``place``.
            reach, right, behind = stop, 0.0, np.inf
            if after < end:
                reach = min(stop, ensemble.position[after])
                right, behind = closed[after], ensemble.times[after]
            here, times = f[m, place - first : reach - first], ensemble.candidates[place:reach]
            for j in range(len(here)):
                here[j] = min(delete, min(left + (times[j] - before), right + (behind - times[j])))
            place, left, before = reach, right, behind
            after += 1
    return f


@njit
def _raised_floor(row: Floats, weights: Floats, guess: float) -> float:
    """The level b at which sum_m w_m max(f_m, b) = 0, by Newton steps (the sum is convex in b)."""
    level = guess
    for step in range(len(row) + 2):
        total, slope = 0.0, 0.0
        for m in range(len(row)):
            total += weights[m] * max(row[m], level)
            if row[m] < level:
                slope += weights[m]
        if slope == 0:
            if step > 0:
                break
            level = 0.0  # the guess was too low to say anything
            continue
        level -= total / slope
        if abs(total) <= 1e-16:
            break
    return level


@njit
def _price(closed: Floats, ensemble: Ensemble, insert: float, delete: float) -> tuple[Floats, Floats]:
    """sum_m w_m f_m at every candidate [n] (a consensus event there pays if it is negative), and the floors.

    A floor [n] is a level to which all potentials have to be raised for no event to pay.
    """
    n = len(ensemble.candidates)
    cost, floor = np.zeros(n), np.full(n, -insert)
    step = max(1, CELLS // len(ensemble.weights))
    guess = 0.0
    for first in range(0, n, step):
        stop = min(n, first + step)
        f = _extend(closed, ensemble, delete, first, stop)
        here = cost[first:stop]
        for m in range(len(ensemble.weights)):
            for j in range(len(here)):
                here[j] += ensemble.weights[m] * f[m, j]
        for j in range(first, stop):
            if cost[j] < 0:
                floor[j] = guess = _raised_floor(f[:, j - first].copy(), ensemble.weights, guess)
    for j in range(1, n):
        floor[j] = max(floor[j], floor[j - 1] - (ensemble.candidates[j] - ensemble.candidates[j - 1]))
    for j in range(n - 2, -1, -1):
        floor[j] = max(floor[j], floor[j + 1] - (ensemble.candidates[j + 1] - ensemble.candidates[j]))
    return cost, floor


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
