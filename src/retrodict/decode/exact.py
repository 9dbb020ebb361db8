"""The minimum-risk consensus of one event type, with a certificate (docs/consensus.md, section 5).

Column generation: solve the program on few chosen times, price all other candidates by the particles'
potentials, choose the best of each stretch that would pay, and go on until none does.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from retrodict.decode.arrays import Floats, Ints
from retrodict.decode.certificate import bound, prices
from retrodict.decode.chains import (
    Chains,
    build_chains,
    carry_over,
    counts_from_alignment,
    potentials_from_counts,
)
from retrodict.decode.ensemble import Ensemble
from retrodict.decode.flow import solve_flow
from retrodict.decode.local import align_all

LARGEST_FLOW = 2.0**59
CURRENT = 0.8  # pricing at 0.8 current + 0.2 best feasible potentials saves columns


@njit
def _scale(ensemble: Ensemble, insert: float, delete: float) -> float:
    """Integer steps per unit of potential: as fine as sums of flow at one node can be without overflow."""
    longest = 0
    for m in range(len(ensemble.weights)):
        longest = max(longest, ensemble.offsets[m + 1] - ensemble.offsets[m])
    return LARGEST_FLOW / ((longest + 4) * (insert + delete))


@njit
def _choose(decode: Floats, candidates: Floats) -> tuple[Ints, Ints, Ints]:
    """The distinct candidates [K] of a decode, the events at each [K], and the place of each event [I]."""
    place = np.searchsorted(candidates, decode)
    chosen = np.empty(len(place), np.int64)
    number = np.zeros(len(place), np.int64)
    count = 0
    for i in range(len(place)):
        if i == 0 or place[i] != place[i - 1]:
            chosen[count] = place[i]
            count += 1
        number[count - 1] += 1
    return chosen[:count], number[:count], place


@njit
def _times(chosen: Ints, number: Ints, candidates: Floats) -> Floats:
    """The decode with ``number`` events at each chosen candidate."""
    decode = np.empty(number.sum())
    count = 0
    for k in range(len(chosen)):
        for _ in range(number[k]):
            decode[count] = candidates[chosen[k]]
            count += 1
    return decode


@njit
def _event_values(chains: Chains, flow: Ints, ensemble: Ensemble, scale: float) -> Floats:
    """The potential of every particle event [E]."""
    values = np.empty(len(ensemble.times))
    event = 0
    for m in range(len(ensemble.weights)):
        for node in range(chains.bounds[m], chains.bounds[m + 1]):
            for _ in range(chains.events[node]):
                values[event] = flow[node] / (ensemble.weights[m] * scale)
                event += 1
    return values


@njit
def _paying(price: Floats, chosen: Ints, threshold: float) -> Ints:
    """The chosen candidates and the cheapest of every stretch of candidates priced below ``threshold``."""
    pays = price < threshold
    pays[chosen] = False
    more = np.zeros(len(price), np.bool_)
    best = -1
    for j in range(len(price)):
        if pays[j]:
            if best < 0 or price[j] < price[best]:
                best = j
        elif best >= 0:
            more[best] = True
            best = -1
    if best >= 0:
        more[best] = True
    more[chosen] = True
    return np.flatnonzero(more)


@njit
def _next_choice(
    values: Floats,
    feasible: Floats,
    lower: float,
    chosen: Ints,
    ensemble: Ensemble,
    insert: float,
    delete: float,
    slack: float,
) -> tuple[Ints, Floats, float]:
    """Candidates to solve on next; the bound improves on the way if mixed potentials prove feasible."""
    share = CURRENT
    while True:
        mixed = share * values + (1.0 - share) * feasible
        more = _paying(prices(mixed, ensemble, insert, delete), chosen, -slack)
        if len(more) > len(chosen) or share == 1.0:
            return more, feasible, lower
        reached, potentials, _ = bound(mixed, ensemble, insert, delete)
        if reached > lower:
            lower, feasible = reached, potentials
        share = 0.5 * (1.0 + share) if share == CURRENT else 1.0


@njit
def _prepare(
    decode: Floats, ensemble: Ensemble, insert: float, delete: float, scale: float
) -> tuple[Ints, Ints, Chains, Ints, Ints]:
    """The candidates a decode uses, its events there, and the chains, counts and potentials it implies."""
    chosen, number, place = _choose(decode, ensemble.candidates)
    match = np.empty((len(ensemble.weights), len(decode)), np.int64)
    align_all(decode, ensemble, insert, delete, match)
    chains = build_chains(ensemble, chosen)
    level = counts_from_alignment(chains, ensemble, place, match)
    flow = potentials_from_counts(chains, ensemble, number, level, insert, delete, scale)
    return chosen, number, chains, level, flow


@njit
def exact_search(
    ensemble: Ensemble, insert: float, delete: float, start: Floats, tolerance: float, rounds: int
) -> tuple[Floats, float, float]:
    """The optimal decode [I], its risk, and a lower bound on the risk of any decode.

    Stops when the bound is within ``tolerance`` (relative) of the risk, when no candidate pays, or after
    ``rounds`` rounds; in the last case the gap is what it is.
    """
    scale = _scale(ensemble, insert, delete)
    slack = 2e-15 * (insert + delete)
    chosen, number, chains, level, flow = _prepare(start, ensemble, insert, delete, scale)
    lower, feasible = -np.inf, np.empty(0)
    for _ in range(rounds):
        solve_flow(chains, ensemble, number, level, flow, insert, delete, scale)
        decode = _times(chosen, number, ensemble.candidates)
        match = np.empty((len(ensemble.weights), len(decode)), np.int64)
        risk = align_all(decode, ensemble, insert, delete, match)
        values = _event_values(chains, flow, ensemble, scale)
        reached, potentials, price = bound(values, ensemble, insert, delete)
        if reached > lower:
            lower, feasible = reached, potentials
        if risk - lower <= tolerance * risk or price.min() >= -slack:
            break
        more, feasible, lower = _next_choice(values, feasible, lower, chosen, ensemble, insert, delete, slack)
        if len(more) == len(chosen) or risk - lower <= tolerance * risk:
            break
        wider = build_chains(ensemble, more)
        level, flow = carry_over(chains, level, flow, wider, ensemble, delete, scale)
        spread = np.zeros(len(more), np.int64)
        spread[np.searchsorted(more, chosen)] = number
        chains, chosen, number = wider, more, spread
    return decode, risk, lower
