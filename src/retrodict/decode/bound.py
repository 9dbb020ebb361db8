"""The dual bound: a certificate that no decode has a risk below a number (docs/consensus.md, section 4).

Let every particle m value an event at time t at f_m(t), its potential, where -C_insert <= f_m <= C_delete and f_m
changes by at most one per unit of time. To edit a decode z into z_m then costs at least the sum of f_m over z less
its sum over z_m: a move from t to t' costs |t - t'| >= f_m(t) - f_m(t'), a deletion C_delete >= f_m(t), an insertion
C_insert >= -f_m(t'). Averaged over particles, with the price g(t) = sum_m w_m f_m(t) of a consensus event at t,

    risk(z) >= (sum of g over z) + B,    B = -sum_m w_m (sum of f_m over z_m).

Where a consensus event at t is charged e(t) on top, that is added to both sides: the objective, risk plus charges, is
at least B plus the sum of g + e over z. If g + e >= 0 at every candidate, no decode has an objective below B, which
does not mention z: the f_m are the certificate, anybody can check them, and a decode whose objective is B is optimal.
If g + e < 0 somewhere, an event there may pay. By duality the largest B is the least objective; ``exact.py`` finds
such f_m, and ``bound`` makes any f_m comply.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit

from retrodict.decode.ensemble import Ensemble
from retrodict.decode.kernels import Floats
from retrodict.decode.transport import Cost


class Bound(NamedTuple):
    """``lower`` is B, which no decode's objective goes below, and ``potentials`` [E] the f_m that prove it.

    ``price`` [n] is g + e at every candidate, before it was made nonnegative.
    """

    lower: float
    potentials: Floats
    price: Floats


@njit
def bound(values: Floats, ensemble: Ensemble, cost: Cost) -> Bound:
    """The bound that potentials ``values`` [E] at the particle events give; any will do.

    They are lowered until they are within bounds and 1-Lipschitz, then raised where a consensus event would pay.
    """
    closed = _close(values, ensemble, cost)
    price, floor = _price(closed, ensemble, cost)
    lower = 0.0
    for m in range(len(ensemble.weights)):
        for e in range(ensemble.offsets[m], ensemble.offsets[m + 1]):
            closed[e] = max(closed[e], floor[ensemble.position[e]])
            lower -= ensemble.weights[m] * closed[e]
    return Bound(lower, closed, price)


@njit
def _close(values: Floats, ensemble: Ensemble, cost: Cost) -> Floats:
    """The largest 1-Lipschitz potentials at the events [E] that are at most ``values`` and within bounds."""
    closed = np.empty(len(values))
    for e in range(len(values)):
        closed[e] = min(max(values[e], -cost.insert), cost.delete)
    for m in range(len(ensemble.weights)):
        first, stop = ensemble.offsets[m], ensemble.offsets[m + 1]
        for e in range(first + 1, stop):
            closed[e] = min(closed[e], closed[e - 1] + ensemble.times[e] - ensemble.times[e - 1])
        for e in range(stop - 2, first - 1, -1):
            closed[e] = min(closed[e], closed[e + 1] + ensemble.times[e + 1] - ensemble.times[e])
    return closed


@njit(fastmath={"reassoc"})
def _weighted_sum(values: Floats, weights: Floats) -> float:
    """sum_m w_m v_m, in any order, so that it is vectorised."""
    total = 0.0
    for m in range(len(weights)):
        total += weights[m] * values[m]
    return total


@njit(fastmath={"reassoc"})
def _raised(row: Floats, weights: Floats, level: float) -> tuple[float, float]:
    """sum_m w_m max(f_m, level), and the weight of the f_m below the level."""
    total, slope = 0.0, 0.0
    for m in range(len(row)):
        total += weights[m] * max(row[m], level)
        slope += weights[m] if row[m] < level else 0.0
    return total, slope


@njit
def _raised_floor(row: Floats, weights: Floats, charge: float, guess: float, slack: float) -> float:
    """The level b at which sum_m w_m max(f_m, b) = -e, by Newton steps (it is convex in b), or ``guess`` if more."""
    level = guess
    for step in range(len(row) + 2):
        total, slope = _raised(row, weights, level)
        total += charge
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
def _price(closed: Floats, ensemble: Ensemble, cost: Cost) -> tuple[Floats, Floats]:
    """e + sum_m w_m f_m at every candidate [n] (a consensus event there pays if it is negative), and the floors.

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
            f[m] = min(cost.delete, min(left[m] + (time - before[m]), right[m] + (behind[m] - time)))
        price[j] = _weighted_sum(f, weights) + ensemble.charge[j]
        floor[j] = -cost.insert if j == 0 else max(-cost.insert, floor[j - 1] - (time - ensemble.candidates[j - 1]))
        if price[j] < 0:
            slack = 2e-16 * (cost.insert + cost.delete)
            floor[j] = _raised_floor(f, weights, ensemble.charge[j], floor[j], slack)
    for j in range(n - 2, -1, -1):
        floor[j] = max(floor[j], floor[j + 1] - (ensemble.candidates[j + 1] - ensemble.candidates[j]))
    return price, floor
