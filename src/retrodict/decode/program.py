"""The consensus program on chosen times, as a minimum-cost flow (docs/consensus.md, sections 2 and 3).

The consensus has y_k events at chosen candidate k, and Y counts them up to each time. Every particle m has a chain of
nodes, the chosen candidates together with its own times, where it has n events; H counts its events after
insertions and deletions up to each node. The risk is a sum of terms, each of a difference of two such counts: the
gap between two nodes times |Y - H|, which is time moved, C_delete or C_insert for each event by which H rises
more or less than n, and a charge for each step of Y. So the counts are the heights of a network (``flow.py``), and the
flow on the arc of a node's events is w_m f_m, where f_m is the potential that proves the optimum (``bound.py``). Flows
are integers, ``weight * f * scale``, so that the solution is exact.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit

from retrodict.decode.ensemble import Ensemble
from retrodict.decode.flow import Arcs, make_arcs, minimise, set_arc, slope
from retrodict.decode.kernels import Floats, Ints, first_at_least, longest
from retrodict.decode.local import Decode
from retrodict.decode.transport import Cost

LARGEST_FLOW = 2.0**59
UNBOUNDED = 1 << 60


class Program(NamedTuple):
    """K ``chosen`` candidates, sorted, and a solution: ``number`` [K] is y; ``counts`` [V] is H; ``flow`` [V] is w f.

    The chain of particle m owns nodes ``bounds[m]:bounds[m + 1]``, sorted by ``place`` [V] (a candidate); ``rank`` [V]
    is the node's rank among the chosen candidates, or -1, and ``events`` [V] is n. The flow comes in ``scale`` steps
    per unit.
    """

    chosen: Ints
    number: Ints
    bounds: Ints
    place: Ints
    rank: Ints
    events: Ints
    counts: Ints
    flow: Ints
    scale: float


@njit
def _lay_out(ensemble: Ensemble, chosen: Ints, number: Ints, scale: float) -> Program:
    """The program on ``chosen`` [K] candidates, with counts and flows of zero."""
    particles = len(ensemble.weights)
    size = particles * len(chosen) + len(ensemble.times)
    bounds = np.zeros(particles + 1, np.int64)
    place, rank, events = np.empty(size, np.int64), np.full(size, -1, np.int64), np.zeros(size, np.int64)
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
                events[node] += 1
                event += 1
            node += 1
        bounds[m + 1] = node
    counts, flow = np.zeros(node, np.int64), np.zeros(node, np.int64)
    return Program(chosen, number, bounds, place[:node], rank[:node], events[:node], counts, flow, scale)


# --- where to start ----------------------------------------------------------------------------------------


@njit
def start_program(decode: Decode, ensemble: Ensemble, cost: Cost) -> Program:
    """The program on the candidates that a decode uses, at the counts and potentials that it implies."""
    place, chosen = np.empty(len(decode.times), np.int64), np.empty(len(decode.times), np.int64)
    number = np.zeros(len(place), np.int64)
    count = 0
    for i in range(len(place)):
        place[i] = first_at_least(ensemble.candidates, decode.times[i], 0, len(ensemble.candidates))
        if i == 0 or place[i] != place[i - 1]:
            chosen[count] = place[i]
            count += 1
        number[count - 1] += 1
    # As fine as sums of flow at one node can be without overflow.
    scale = LARGEST_FLOW / ((longest(ensemble.offsets) + 4) * (cost.insert + cost.delete))
    program = _lay_out(ensemble, chosen[:count], number[:count], scale)
    _count_edited(program, ensemble, place, decode.match)
    _prove_alignments(program, ensemble, cost)
    return program


@njit
def _count_edited(program: Program, ensemble: Ensemble, decode: Ints, match: Ints) -> None:
    """Set H: cumulative counts of each particle once it is edited as ``match`` [M, I] says."""
    counts = program.counts
    for m in range(len(ensemble.weights)):
        first, stop = program.bounds[m], program.bounds[m + 1]
        for i in range(len(decode)):
            event = match[m, i]
            here = decode[i] if event < 0 else ensemble.position[event]
            counts[first_at_least(program.place, here, first, stop)] += 1
        for node in range(first + 1, stop):
            counts[node] += counts[node - 1]


@njit
def _allowed(low: float, high: float, gap: float, difference: int) -> tuple[float, float]:
    """Potentials across a gap from [low, high], given consensus minus particle count between."""
    if difference > 0:
        return low - gap, high - gap
    if difference < 0:
        return low + gap, high + gap
    return low - gap, high + gap


@njit
def _gap(program: Program, ensemble: Ensemble, node: int) -> float:
    """Time from the node before to this one, in the same chain."""
    return ensemble.candidates[program.place[node]] - ensemble.candidates[program.place[node - 1]]


@njit
def _prove_alignments(program: Program, ensemble: Ensemble, cost: Cost) -> None:
    """Set the flow to potentials that prove each particle's alignment optimal, the middle where an interval does."""
    size = len(program.place)
    low, high, difference = np.empty(size), np.empty(size), np.empty(size, np.int64)
    for m in range(len(ensemble.weights)):
        first, stop = program.bounds[m], program.bounds[m + 1]
        total = 0
        for node in range(first, stop):
            change = program.counts[node] - program.events[node] - (program.counts[node - 1] if node > first else 0)
            floor = cost.delete if change > 0 else -cost.insert
            ceiling = -cost.insert if change < 0 else cost.delete
            if node > first:
                a, b = _allowed(low[node - 1], high[node - 1], _gap(program, ensemble, node), difference[node - 1])
                floor, ceiling = max(floor, a), min(ceiling, b)
                if floor > ceiling:  # by rounding
                    floor = ceiling = 0.5 * (floor + ceiling)
            low[node], high[node] = floor, ceiling
            if program.rank[node] >= 0:
                total += program.number[program.rank[node]]
            difference[node] = total - program.counts[node]
        value = 0.0
        for node in range(stop - 1, first - 1, -1):
            floor, ceiling = low[node], high[node]
            if node < stop - 1:
                a, b = _allowed(value, value, _gap(program, ensemble, node + 1), -difference[node])
                floor, ceiling = max(floor, a), min(ceiling, b)
            value = 0.5 * (floor + ceiling)
            program.flow[node] = round(ensemble.weights[m] * value * program.scale)


@njit
def widen(old: Program, chosen: Ints, ensemble: Ensemble, delete: float) -> Program:
    """The same program with more ``chosen`` candidates, none of them used yet.

    At a new node the count stays, and the potential is the largest that its neighbours allow.
    """
    number = np.zeros(len(chosen), np.int64)
    k = 0
    for i in range(len(chosen)):
        if k < len(old.chosen) and old.chosen[k] == chosen[i]:
            number[i] = old.number[k]
            k += 1
    new = _lay_out(ensemble, chosen, number, old.scale)
    for m in range(len(ensemble.weights)):
        unit = ensemble.weights[m] * old.scale
        before, stop = old.bounds[m] - 1, old.bounds[m + 1]
        for node in range(new.bounds[m], new.bounds[m + 1]):
            here = new.place[node]
            while before + 1 < stop and old.place[before + 1] < here:
                before += 1
            if before + 1 < stop and old.place[before + 1] == here:
                before += 1
                new.flow[node] = old.flow[before]
            else:
                time = ensemble.candidates[here]
                value = round(unit * delete)
                if before >= old.bounds[m]:
                    gap = time - ensemble.candidates[old.place[before]]
                    value = min(value, old.flow[before] + round(unit * gap))
                if before + 1 < stop:
                    gap = ensemble.candidates[old.place[before + 1]] - time
                    value = min(value, old.flow[before + 1] + round(unit * gap))
                new.flow[node] = value
            if before >= old.bounds[m]:
                new.counts[node] = old.counts[before]
    return new


# --- the network -------------------------------------------------------------------------------------------


@njit
def solve(program: Program, ensemble: Ensemble, cost: Cost, patience: int) -> Floats:
    """Solve the program in place; the potential f of every particle event [E]."""
    arcs, height = _build_network(program, ensemble, cost)
    minimise(arcs, height, patience)
    K = len(program.number)
    for k in range(K):
        program.number[k] = height[k + 1] - height[k]
    values = np.empty(len(ensemble.times))
    event = 0
    for m in range(len(ensemble.weights)):
        unit = ensemble.weights[m] * program.scale
        for node in range(program.bounds[m], program.bounds[m + 1]):
            a = K + 2 * node
            program.flow[node] = arcs.flow[a]
            program.counts[node] = height[arcs.head[a]] - height[0]
            for _ in range(program.events[node]):
                values[event] = arcs.flow[a] / unit
                event += 1
    return values


@njit
def _build_network(program: Program, ensemble: Ensemble, cost: Cost) -> tuple[Arcs, Ints]:
    """Arcs and node heights: consensus counts Y_0..Y_K are nodes 0..K, then one node for each chain node.

    The last node of each chain is Y_K itself, and its own node stays alone. Arc k < K is that of consensus
    events at chosen time k; chain node v has arcs K + 2 v (its count) and K + 2 v + 1 (the gap after it).
    """
    K = len(program.number)
    arcs = make_arcs(K + 2 * len(program.place))
    height = np.zeros(K + 1 + len(program.place), np.int64)
    for k in range(K):
        height[k + 1] = height[k] + program.number[k]
        charge = round(ensemble.charge[program.chosen[k]] * program.scale)
        set_arc(arcs, k, k, k + 1, 0, UNBOUNDED, charge)
    for node in range(len(program.counts)):
        height[K + 1 + node] = program.counts[node]
    for m in range(len(ensemble.weights)):
        _add_chain(arcs, height, program, ensemble, m, cost)
    for k in range(K):
        arcs.flow[k] = arcs.above[k] if program.number[k] > 0 else min(arcs.flow[k], arcs.above[k])
    return arcs, height


@njit
def _add_chain(arcs: Arcs, height: Ints, program: Program, ensemble: Ensemble, m: int, cost: Cost) -> None:
    """Arcs of one particle: from each count to the next, and to the consensus count across each gap."""
    K = len(program.number)
    unit = ensemble.weights[m] * program.scale
    first, stop = program.bounds[m], program.bounds[m + 1]
    previous, consensus, value = 0, 0, 0
    for node in range(first, stop):
        a = K + 2 * node
        here = K + 1 + node if node < stop - 1 else K
        set_arc(arcs, a, previous, here, program.events[node], round(unit * cost.insert), round(unit * cost.delete))
        difference = height[here] - height[previous] - program.events[node]
        last = value
        value = slope(difference, program.flow[node], arcs.below[a], arcs.above[a])
        arcs.flow[a] = value
        if node > first:  # the gap before this node: its flow balances the chain where it can
            difference = height[arcs.head[a - 1]] - height[arcs.tail[a - 1]]
            arcs.flow[a - 1] = slope(difference, last - value, arcs.below[a - 1], arcs.above[a - 1])
        if program.rank[node] >= 0:
            arcs.flow[program.rank[node]] -= value
            consensus = program.rank[node] + 1
        room = 0
        if node < stop - 1:
            room = round(unit * min(_gap(program, ensemble, node + 1), cost.insert + cost.delete))
        set_arc(arcs, a + 1, here, consensus, 0, room, room)
        previous = here


@njit
def decoded_times(program: Program, candidates: Floats) -> Floats:
    """The times of the consensus that a solved program describes, sorted."""
    times = np.empty(program.number.sum())
    count = 0
    for k in range(len(program.chosen)):
        for _ in range(program.number[k]):
            times[count] = candidates[program.chosen[k]]
            count += 1
    return times
