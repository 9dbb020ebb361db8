"""Minimum-cost flow by a primal-dual method, for any network (docs/consensus.md, section 3).

Every node v has an integer height h[v], and every arc a convex, piecewise linear term of the difference of its two
heights; wanted are heights of the least total. Its dual is a flow: the flow on an arc is a subgradient of its term,
and heights are optimal once some such flow is conserved at every node. From the heights and the flow at hand,
flow is sent from nodes of excess to nodes of deficit along arcs whose term is at its kink (shortest augmenting
paths); when no deficit can be reached, all reached nodes are lowered by one. Capacities are integers, so the result
is exact.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit

from retrodict.decode.kernels import Indices, Ints, Shorts
from retrodict.errors import RetrodictError


class Arcs(NamedTuple):
    """A convex terms of h[head] - h[tail], arrays [A]: slope ``-below`` before ``offset``, ``above`` after.

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
def make_arcs(size: int) -> Arcs:
    """Room for ``size`` arcs, all of them zero."""
    tail, head = np.zeros(size, np.uint32), np.zeros(size, np.uint32)
    offset, below = np.zeros(size, np.int64), np.zeros(size, np.int64)
    return Arcs(tail, head, offset, below, np.zeros(size, np.int64), np.zeros(size, np.int64))


@njit
def set_arc(arcs: Arcs, a: int, tail: int, head: int, offset: int, below: int, above: int) -> None:
    """Fill in arc ``a``, all but its flow."""
    arcs.tail[a], arcs.head[a] = tail, head
    arcs.offset[a], arcs.below[a], arcs.above[a] = offset, below, above


@njit
def _build_residual(arcs: Arcs, height: Ints) -> tuple[Residual, Ints]:
    """The residual graph and the excess [V] of every node."""
    size = len(arcs.tail)
    first = np.zeros(len(height) + 1, np.uint32)
    excess = np.zeros(len(height), np.int64)
    for a in range(size):
        first[arcs.tail[a] + 1] += 1
        first[arcs.head[a] + 1] += 1
        excess[arcs.head[a]] += arcs.flow[a]
        excess[arcs.tail[a]] -= arcs.flow[a]
    for v in range(len(height)):
        first[v + 1] += first[v]
    slot = first[:-1].copy()
    to, back, arc = np.empty(2 * size, np.uint32), np.empty(2 * size, np.uint32), np.empty(2 * size, np.uint32)
    forward, room = np.empty(size, np.uint32), np.zeros(2 * size, np.int64)
    for a in range(size):
        tail, head = arcs.tail[a], arcs.head[a]
        out = slot[tail]
        slot[tail] += 1
        into = slot[head]
        slot[head] += 1
        to[out], back[out], arc[out] = head, into, a
        to[into], back[into], arc[into] = tail, out, a
        forward[a] = out
        if height[head] - height[tail] == arcs.offset[a]:
            room[out] = arcs.above[a] - arcs.flow[a]
            room[into] = arcs.flow[a] + arcs.below[a]
    return Residual(first, to, back, arc, room, forward), excess


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
    graph: Residual, excess: Ints, distance: Shorts, sources: Indices, tally: Shorts, current: Indices, path: Indices
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
def _lower_reached(graph: Residual, arcs: Arcs, height: Ints, excess: Ints, reached: Shorts, queue: Indices) -> None:
    """Lower by one the heights of all nodes in reach of an excess, none of which is a deficit."""
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
        height[queue[i]] -= 1
    for i in range(tail):
        v = queue[i]
        for e in range(first[v], first[v + 1]):
            if reached[to[e]]:
                continue
            a = arc[e]
            at_kink = height[arcs.head[a]] - height[arcs.tail[a]] == arcs.offset[a]
            # An arc that left its kink is at a bound for good; one that came to it can only turn back.
            room[e] = arcs.above[a] + arcs.below[a] if at_kink else 0
            room[back[e]] = 0


@njit
def minimise(arcs: Arcs, height: Ints, patience: int) -> None:
    """Improve ``height`` [V] and ``arcs.flow`` in place to an optimum.

    More than ``patience`` passes over the network are taken for an endless loop, which is an error.
    """
    graph, excess = _build_residual(arcs, height)
    V = len(height)
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
            _lower_reached(graph, arcs, height, excess, distance, queue)
    for a in range(len(arcs.flow)):
        difference = height[arcs.head[a]] - height[arcs.tail[a]] - arcs.offset[a]
        within = arcs.above[a] - graph.room[graph.forward[a]]
        arcs.flow[a] = slope(difference, within, arcs.below[a], arcs.above[a])
