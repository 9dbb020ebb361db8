"""Counting processes on chosen times: the variables of the consensus program (docs/consensus.md, section 2).

The consensus may have events at the chosen candidates only. Every particle then has a chain of nodes, the
chosen candidates together with its own times; H counts its events after insertions and deletions up to each
node, and the potential f of the dual program lives on the same nodes. Potentials are kept as integers,
``weight * f * scale``, so that the flow that improves them is exact.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from retrodict.decode.arrays import Ints
from retrodict.decode.ensemble import Ensemble
from retrodict.decode.search import first_at_least


class Chains(NamedTuple):
    """Particle m owns nodes ``bounds[m]:bounds[m + 1]``, sorted by ``place`` [V] (a candidate).

    ``chosen`` [V] is the node's rank among the K chosen candidates, or -1; ``events`` [V] is how many events
    the particle has there.
    """

    bounds: NDArray[np.int64]
    place: NDArray[np.int64]
    chosen: NDArray[np.int64]
    events: NDArray[np.int64]


@njit
def build_chains(ensemble: Ensemble, chosen: Ints) -> Chains:
    """The chains of an ensemble for the ``chosen`` [K] candidates (sorted)."""
    particles = len(ensemble.weights)
    size = particles * len(chosen) + len(ensemble.times)
    bounds = np.zeros(particles + 1, np.int64)
    place = np.empty(size, np.int64)
    rank = np.full(size, -1, np.int64)
    count = np.zeros(size, np.int64)
    node = 0
    for m in range(particles):
        k = 0
        event, stop = ensemble.offsets[m], ensemble.offsets[m + 1]
        while k < len(chosen) or event < stop:
            here = len(ensemble.candidates)
            if k < len(chosen):
                here = chosen[k]
            if event < stop:
                here = min(here, ensemble.position[event])
            place[node] = here
            if k < len(chosen) and chosen[k] == here:
                rank[node] = k
                k += 1
            while event < stop and ensemble.position[event] == here:
                count[node] += 1
                event += 1
            node += 1
        bounds[m + 1] = node
    return Chains(bounds, place[:node], rank[:node], count[:node])


@njit
def counts_from_alignment(chains: Chains, ensemble: Ensemble, decode: Ints, match: Ints) -> Ints:
    """H [V]: cumulative counts of each particle once it is edited as ``match`` [M, I] says."""
    level = np.zeros(len(chains.place), np.int64)
    for m in range(len(ensemble.weights)):
        first, stop = chains.bounds[m], chains.bounds[m + 1]
        for i in range(len(decode)):
            event = match[m, i]
            here = decode[i] if event < 0 else ensemble.position[event]
            level[first_at_least(chains.place, here, first, stop)] += 1
        for node in range(first + 1, stop):
            level[node] += level[node - 1]
    return level


@njit
def _allowed(low: float, high: float, gap: float, difference: int) -> tuple[float, float]:
    """Potentials across a gap from [low, high], given consensus minus particle count between."""
    if difference > 0:
        return low - gap, high - gap
    if difference < 0:
        return low + gap, high + gap
    return low - gap, high + gap


@njit
def potentials_from_counts(
    chains: Chains, ensemble: Ensemble, number: Ints, level: Ints, insert: float, delete: float, scale: float
) -> Ints:
    """Integer potentials [V] that prove each particle's alignment optimal, where the interval is not a point
    the middle of it (``number`` [K] consensus events at each chosen candidate, ``level`` [V] as above)."""
    flow = np.zeros(len(chains.place), np.int64)
    low = np.empty(len(chains.place))
    high = np.empty(len(chains.place))
    difference = np.empty(len(chains.place), np.int64)
    for m in range(len(ensemble.weights)):
        first, stop = chains.bounds[m], chains.bounds[m + 1]
        total = 0
        for node in range(first, stop):
            change = level[node] - chains.events[node] - (level[node - 1] if node > first else 0)
            floor, ceiling = (delete if change > 0 else -insert), (-insert if change < 0 else delete)
            if node > first:
                gap = ensemble.candidates[chains.place[node]] - ensemble.candidates[chains.place[node - 1]]
                a, b = _allowed(low[node - 1], high[node - 1], gap, difference[node - 1])
                floor, ceiling = max(floor, a), min(ceiling, b)
                if floor > ceiling:  # by rounding
                    floor = ceiling = 0.5 * (floor + ceiling)
            low[node], high[node] = floor, ceiling
            if chains.chosen[node] >= 0:
                total += number[chains.chosen[node]]
            difference[node] = total - level[node]
        value = 0.0
        for node in range(stop - 1, first - 1, -1):
            floor, ceiling = low[node], high[node]
            if node < stop - 1:
                gap = ensemble.candidates[chains.place[node + 1]] - ensemble.candidates[chains.place[node]]
                a, b = _allowed(value, value, gap, -difference[node])
                floor, ceiling = max(floor, a), min(ceiling, b)
            value = 0.5 * (floor + ceiling)
            flow[node] = round(ensemble.weights[m] * value * scale)
    return flow


@njit
def carry_over(
    old: Chains, level: Ints, flow: Ints, new: Chains, ensemble: Ensemble, delete: float, scale: float
) -> tuple[Ints, Ints]:
    """Counts and potentials on the ``new`` chains, from those on the ``old`` ones.

    At a new node the count stays, and the potential is the largest that its neighbours allow.
    """
    levels = np.zeros(len(new.place), np.int64)
    flows = np.empty(len(new.place), np.int64)
    for m in range(len(ensemble.weights)):
        unit = ensemble.weights[m] * scale
        before, stop = old.bounds[m] - 1, old.bounds[m + 1]
        for node in range(new.bounds[m], new.bounds[m + 1]):
            here = new.place[node]
            while before + 1 < stop and old.place[before + 1] < here:
                before += 1
            if before + 1 < stop and old.place[before + 1] == here:
                before += 1
                flows[node] = flow[before]
            else:
                time = ensemble.candidates[here]
                value = round(unit * delete)
                if before >= old.bounds[m]:
                    gap = time - ensemble.candidates[old.place[before]]
                    value = min(value, flow[before] + round(unit * gap))
                if before + 1 < stop:
                    gap = ensemble.candidates[old.place[before + 1]] - time
                    value = min(value, flow[before + 1] + round(unit * gap))
                flows[node] = value
            if before >= old.bounds[m]:
                levels[node] = level[before]
    return levels, flows
