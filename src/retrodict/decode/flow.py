"""Primal-dual minimum-cost flow for the consensus program on chosen times (docs/consensus.md, section 3).

Every variable of the program is the potential of a network node and every term a convex function of one
difference, so that its dual is a flow. Starting from the counts and potentials at hand, flow is sent from
nodes of excess to nodes of deficit along arcs whose term is at its kink (shortest augmenting paths); when no
deficit can be reached, the potentials of all reached nodes fall by one. Capacities are integers, so the
result is exact.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from retrodict.decode.arrays import Indices, Ints, Shorts
from retrodict.decode.chains import Chains
from retrodict.decode.ensemble import Ensemble
from retrodict.decode.network import Arcs, Residual, build_arcs, build_residual, slope
from retrodict.errors import RetrodictError


@njit
def _label(graph: Residual, excess: Ints, distance: Shorts, queue: Indices) -> int:
    """Distance [V] of every node to the nearest deficit (V where none); returns how many are reached."""
    first, to, back, room = graph.first, graph.to, graph.back, graph.room
    stop = first[1:]
    V = len(excess)
    head = tail = 0
    for v in range(V):
        distance[v] = V
        if excess[v] < 0:
            distance[v] = 0
            queue[tail] = v
            tail += 1
    while head < tail:
        v = queue[head]
        head += 1
        for e in range(first[v], stop[v]):
            u = to[e]
            if distance[u] == V and room[back[e]] > 0:
                distance[u] = distance[v] + 1
                queue[tail] = u
                tail += 1
    return tail


@njit
def _push(room: Ints, back: Indices, path: Indices, amount: int) -> tuple[int, int]:
    """Send at most ``amount`` along the path; returns what was sent and the place of the first full edge."""
    for e in path:
        amount = min(amount, room[e])
    full = len(path)
    for i, e in enumerate(path):
        room[e] -= amount
        room[back[e]] += amount
        if room[e] == 0:
            full = min(full, i)
    return amount, full


@njit
def _relabel(graph: Residual, distance: Shorts, tally: Shorts, v: int) -> None:
    """Raise the distance of v to one more than its nearest neighbour's, or to V if none is left in reach."""
    V = len(distance)
    old, new = distance[v], V
    for e in range(graph.first[v], graph.first[v + 1]):
        if graph.room[e] > 0:
            new = min(new, distance[graph.to[e]] + 1)
    tally[old] -= 1
    if tally[old] == 0:  # nobody is at this distance any more: whoever is further is cut off
        for u in range(V):
            if old < distance[u] < V:
                tally[distance[u]] -= 1
                tally[V] += 1
                distance[u] = V
        new = V
    distance[v] = new
    tally[new] += 1


@njit
def _augment(
    graph: Residual,
    excess: Ints,
    distance: Shorts,
    sources: Indices,
    tally: Shorts,
    current: Indices,
    path: Indices,
) -> bool:
    """Send excess along shortest paths, nearest sources first; False if labels should be made afresh."""
    first, to, back, room = graph.first, graph.to, graph.back, graph.room
    stop = first[1:]
    V = len(excess)
    budget = 4 * (len(to) + 1)  # of steps; enough for one path, and about what fresh labels cost
    for source in sources:
        v, depth = source, 0
        while excess[source] > 0 and distance[source] < V:
            budget -= 1
            if budget < 0:
                return False
            if excess[v] < 0:
                amount, full = _push(room, back, path[:depth], min(excess[source], -excess[v]))
                excess[source] -= amount
                excess[v] += amount
                if full < depth:
                    v, depth = to[back[path[full]]], full
                continue
            advanced, nearer = False, distance[v] - 1
            for e in range(current[v], stop[v]):
                if room[e] > 0 and distance[to[e]] == nearer:
                    current[v] = path[depth] = e
                    v = to[e]
                    depth += 1
                    advanced = True
                    break
            if advanced:
                continue
            budget -= 8 * (stop[v] - first[v])
            _relabel(graph, distance, tally, v)
            current[v] = first[v]
            if depth > 0:
                depth -= 1
                v = to[back[path[depth]]]
    return True


@njit
def _lower_reached(graph: Residual, arcs: Arcs, potential: Ints, excess: Ints, reached: Shorts, queue: Indices) -> None:
    """Lower by one the potentials of all nodes in reach of an excess, none of which is a deficit."""
    first, to, back, room, arc = graph.first, graph.to, graph.back, graph.room, graph.arc
    head = tail = 0
    for v in range(len(excess)):
        reached[v] = excess[v] > 0
        if reached[v]:
            queue[tail] = v
            tail += 1
    while head < tail:
        v = queue[head]
        head += 1
        for e in range(first[v], first[v + 1]):
            u = to[e]
            if not reached[u] and room[e] > 0:
                reached[u] = 1
                queue[tail] = u
                tail += 1
    for i in range(tail):
        potential[queue[i]] -= 1
    for i in range(tail):
        v = queue[i]
        for e in range(first[v], first[v + 1]):
            if reached[to[e]]:
                continue
            a = arc[e]
            at_kink = potential[arcs.head[a]] - potential[arcs.tail[a]] == arcs.offset[a]
            # An arc that left its kink is at a bound for good; one that came to it can only turn back.
            room[e] = arcs.above[a] + arcs.below[a] if at_kink else 0
            room[back[e]] = 0


@njit
def solve_flow(
    chains: Chains,
    ensemble: Ensemble,
    number: Ints,
    level: Ints,
    flow: Ints,
    insert: float,
    delete: float,
    scale: float,
    patience: int,
) -> None:
    """Improve ``number`` [K], ``level`` [V] and ``flow`` [V] in place to an optimum on the chosen times.

    More than ``patience`` passes over the network are taken for an endless loop, which is an error.
    """
    arcs, potential = build_arcs(chains, ensemble, number, level, flow, insert, delete, scale)
    graph, excess = build_residual(arcs, potential)
    V = len(potential)
    distance, queue = np.empty(V, np.int32), np.empty(V, np.uint32)
    path = np.empty(V + 1, np.uint32)
    passes = 0
    while excess.max() > 0:
        passes += 1
        if passes > patience:
            raise RetrodictError("the exact consensus did not end; please report this ensemble as a bug in retrodict")
        reached = _label(graph, excess, distance, queue)
        tally = np.zeros(V + 1, np.int32)
        for v in range(V):
            tally[distance[v]] += 1
        if not _augment(graph, excess, distance, queue[:reached], tally, graph.first[:-1].copy(), path):
            continue
        if excess.max() > 0:
            _lower_reached(graph, arcs, potential, excess, distance, queue)
    K = len(number)
    for k in range(K):
        number[k] = potential[k + 1] - potential[k]
    for m in range(len(ensemble.weights)):
        for node in range(chains.bounds[m], chains.bounds[m + 1]):
            a = K + 2 * node
            difference = potential[arcs.head[a]] - potential[arcs.tail[a]] - arcs.offset[a]
            within = arcs.above[a] - graph.room[graph.forward[a]]
            flow[node] = slope(difference, within, arcs.below[a], arcs.above[a])
            level[node] = potential[arcs.head[a]] - potential[0]
