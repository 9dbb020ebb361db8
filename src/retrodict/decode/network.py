"""The network whose potentials are the counts of the consensus program (docs/consensus.md, section 3)."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit

from retrodict.decode.arrays import Indices, Ints
from retrodict.decode.chains import Chains
from retrodict.decode.ensemble import Ensemble

UNBOUNDED = 1 << 60


class Arcs(NamedTuple):
    """A convex terms of p[head] - p[tail], arrays [A]: slope ``-below`` before ``offset``, ``above`` after.

    ``flow`` is a subgradient: one of the two, or anything between at the kink.
    """

    tail: Indices
    head: Indices
    offset: Ints
    below: Ints
    above: Ints
    flow: Ints


class Residual(NamedTuple):
    """Each arc in both directions: node v owns edges ``first[v]:first[v + 1]`` with ``room`` [2A] left.

    ``to`` [2A] is where an edge leads, ``back`` its reverse and ``arc`` its arc; ``forward`` [A] is an
    arc's edge from tail to head.
    """

    first: Indices
    to: Indices
    back: Indices
    arc: Indices
    room: Ints
    forward: Indices


@njit
def slope(difference: int, flow: int, below: int, above: int) -> int:
    """The flow nearest to ``flow`` that is a subgradient of the term at ``difference``."""
    if difference > 0:
        return above
    if difference < 0:
        return -below
    return min(max(flow, -below), above)


@njit
def _set_arc(arcs: Arcs, a: int, tail: int, head: int, offset: int, below: int, above: int) -> None:
    arcs.tail[a], arcs.head[a] = tail, head
    arcs.offset[a], arcs.below[a], arcs.above[a] = offset, below, above


@njit
def _chain_arcs(
    arcs: Arcs,
    potential: Ints,
    chains: Chains,
    ensemble: Ensemble,
    m: int,
    flow: Ints,
    insert: float,
    delete: float,
    scale: float,
) -> None:
    """Arcs of one particle: from each count to the next, and to the consensus count across each gap."""
    K = len(potential) - 1 - len(chains.place)
    unit = ensemble.weights[m] * scale
    first, stop = chains.bounds[m], chains.bounds[m + 1]
    previous, consensus, value = 0, 0, 0
    for node in range(first, stop):
        a = K + 2 * node
        here = K + 1 + node if node < stop - 1 else K
        _set_arc(arcs, a, previous, here, chains.events[node], round(unit * insert), round(unit * delete))
        difference = potential[here] - potential[previous] - chains.events[node]
        last = value
        value = slope(difference, flow[node], arcs.below[a], arcs.above[a])
        arcs.flow[a] = value
        if node > first:  # the gap before this node: its flow balances the chain where it can
            difference = potential[arcs.head[a - 1]] - potential[arcs.tail[a - 1]]
            arcs.flow[a - 1] = slope(difference, last - value, arcs.below[a - 1], arcs.above[a - 1])
        if chains.chosen[node] >= 0:
            arcs.flow[chains.chosen[node]] -= value
            consensus = chains.chosen[node] + 1
        room = 0
        if node < stop - 1:
            gap = ensemble.candidates[chains.place[node + 1]] - ensemble.candidates[chains.place[node]]
            room = round(unit * min(gap, insert + delete))
        _set_arc(arcs, a + 1, here, consensus, 0, room, room)
        previous = here


@njit
def build_arcs(
    chains: Chains,
    ensemble: Ensemble,
    number: Ints,
    level: Ints,
    flow: Ints,
    insert: float,
    delete: float,
    scale: float,
) -> tuple[Arcs, Ints]:
    """Arcs and node potentials: consensus counts Y_0..Y_K are nodes 0..K, then one node for each chain node.

    The last node of each chain is Y_K itself, and its own node stays alone. Arc k < K is that of consensus
    events at chosen time k; chain node v has arcs K + 2 v (its count) and K + 2 v + 1 (the gap after it).
    """
    K = len(number)
    size = K + 2 * len(chains.place)
    arcs = Arcs(
        np.zeros(size, np.uint32),
        np.zeros(size, np.uint32),
        np.zeros(size, np.int64),
        np.zeros(size, np.int64),
        np.zeros(size, np.int64),
        np.zeros(size, np.int64),
    )
    potential = np.zeros(K + 1 + len(chains.place), np.int64)
    for k in range(K):
        potential[k + 1] = potential[k] + number[k]
        _set_arc(arcs, k, k, k + 1, 0, UNBOUNDED, 0)
    for node in range(len(level)):
        potential[K + 1 + node] = level[node]
    for m in range(len(ensemble.weights)):
        _chain_arcs(arcs, potential, chains, ensemble, m, flow, insert, delete, scale)
    for k in range(K):
        arcs.flow[k] = 0 if number[k] > 0 else min(arcs.flow[k], 0)
    return arcs, potential


@njit
def build_residual(arcs: Arcs, potential: Ints) -> tuple[Residual, Ints]:
    """The residual graph and the excess [V] of every node."""
    size = len(arcs.tail)
    first = np.zeros(len(potential) + 1, np.uint32)
    excess = np.zeros(len(potential), np.int64)
    for a in range(size):
        first[arcs.tail[a] + 1] += 1
        first[arcs.head[a] + 1] += 1
        excess[arcs.head[a]] += arcs.flow[a]
        excess[arcs.tail[a]] -= arcs.flow[a]
    for v in range(len(potential)):
        first[v + 1] += first[v]
    slot = first[:-1].copy()
    to = np.empty(2 * size, np.uint32)
    back = np.empty(2 * size, np.uint32)
    arc = np.empty(2 * size, np.uint32)
    forward = np.empty(size, np.uint32)
    room = np.zeros(2 * size, np.int64)
    for a in range(size):
        tail = arcs.tail[a]
        head = arcs.head[a]
        out = slot[tail]
        slot[tail] += 1
        into = slot[head]
        slot[head] += 1
        to[out] = head
        to[into] = tail
        back[out] = into
        back[into] = out
        arc[out] = a
        arc[into] = a
        forward[a] = out
        if potential[head] - potential[tail] == arcs.offset[a]:
            room[out] = arcs.above[a] - arcs.flow[a]
            room[into] = arcs.flow[a] + arcs.below[a]
    return Residual(first, to, back, arc, room, forward), excess
