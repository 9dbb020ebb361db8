"""A weighted ensemble of particles of one event type, cut where it falls apart and merged where it repeats.

No event is aligned across a time gap longer than C_insert + C_delete, so consensus decoding (eq. decode) is
solved for each stretch between such gaps alone; within a stretch many particles are the same.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit

from retrodict.decode.arrays import Floats, Ints
from retrodict.decode.compiled import entry_point


class Ensemble(NamedTuple):
    """M distinct particles of one type: particle m owns events ``offsets[m]:offsets[m + 1]``, sorted.

    ``candidates`` [n] are the distinct times of all particles, ``position`` [E] the candidate at which each
    event is, ``times`` [E] = candidates[position], ``owner`` [E] its particle, and ``weights`` [M] sum to one.
    The events at candidate j are ``events[bounds[j]:bounds[j + 1]]``, so that one can sweep over time.
    """

    candidates: Floats
    position: Ints
    times: Floats
    owner: Ints
    offsets: Ints
    weights: Floats
    events: Ints
    bounds: Ints


class Candidates(NamedTuple):
    """Distinct (type, time) pairs of all particles, sorted: ``times`` [n], ``types`` [n].

    ``position`` [E] is the candidate of each event, particle by particle and sorted within each.
    """

    times: Floats
    types: Ints
    position: Ints


@entry_point
def _list_candidates(times: Floats, types: Ints, offsets: Ints, order: Ints) -> tuple[Floats, Ints, Ints]:
    """The candidates of particles that own events ``offsets[m]:offsets[m + 1]``; ``order`` [E] sorts ``times``."""
    size = len(times)
    owner = np.empty(size, np.int64)
    for m in range(len(offsets) - 1):
        for e in range(offsets[m], offsets[m + 1]):
            owner[e] = m
    num_types = 0
    for e in range(size):
        num_types = max(num_types, types[e] + 1)
    slot = np.zeros(num_types + 1, np.int64)
    for e in range(size):
        slot[types[e] + 1] += 1
    for k in range(num_types):
        slot[k + 1] += slot[k]
    by_type = np.empty(size, np.int64)
    for i in range(size):
        e = order[i]
        by_type[slot[types[e]]] = e
        slot[types[e]] += 1
    place = offsets.copy()
    found_times, found_types, position = np.empty(size), np.empty(size, np.int64), np.empty(size, np.int64)
    count = 0
    for i in range(size):
        e = by_type[i]
        if count == 0 or times[e] != found_times[count - 1] or types[e] != found_types[count - 1]:
            found_times[count], found_types[count] = times[e], types[e]
            count += 1
        position[place[owner[e]]] = count - 1
        place[owner[e]] += 1
    return found_times[:count], found_types[:count], position


def list_candidates(times: Floats, types: Ints, offsets: Ints) -> Candidates:
    """The candidates of particles that own events ``offsets[m]:offsets[m + 1]`` of ``times``, ``types`` [E]."""
    return Candidates(*_list_candidates(times, types, offsets, np.argsort(times)))


@njit
def next_cut(times: Floats, types: Ints, first: int, reach: float) -> int:
    """Where the stretch that begins at candidate ``first`` ends: at a gap above ``reach``, or another type."""
    stop = first + 1
    while stop < len(times) and types[stop] == types[first] and times[stop] - times[stop - 1] <= reach:
        stop += 1
    return stop


@njit
def restrict(
    candidates: Floats, position: Ints, offsets: Ints, weights: Floats, begin: Ints, first: int, stop: int
) -> Ensemble:
    """The ensemble between candidates ``first`` and ``stop``, identical particles merged.

    ``begin`` [M] is where each particle's events of this stretch begin, and moves on to where they end.
    """
    particles = len(weights)
    size = 1
    while size < 2 * particles:
        size *= 2
    slots = np.full(size, -1, np.int64)  # open addressing: slot -> merged particle
    own = np.zeros(particles + 1, np.int64)
    mass = np.zeros(particles)
    places = np.empty(len(position), np.int64)
    count = total = 0
    for m in range(particles):
        event = begin[m]
        code = np.uint64(14695981039346656037)
        size_here = 0
        while event < offsets[m + 1] and position[event] < stop:
            places[total + size_here] = position[event] - first
            code = (code ^ np.uint64(position[event])) * np.uint64(1099511628211)
            size_here += 1
            event += 1
        begin[m] = event
        slot = np.int64((code ^ (code >> np.uint64(32))) & np.uint64(size - 1))
        while slots[slot] >= 0 and not _same(places, own, slots[slot], total, size_here):
            slot = (slot + 1) & (size - 1)
        if slots[slot] < 0:
            slots[slot] = count
            count += 1
            total += size_here
            own[count] = total
        mass[slots[slot]] += weights[m]
    everything = 0.0
    for i in range(count):
        everything += mass[i]
    for i in range(count):
        mass[i] /= everything
    return _arrange(candidates[first:stop], places[:total], own[: count + 1], mass[:count])


@njit
def _arrange(candidates: Floats, position: Ints, offsets: Ints, weights: Floats) -> Ensemble:
    """An ensemble from the particles' positions: whose event is whose, and which are at each candidate."""
    size = len(position)
    times, owner, events = np.empty(size), np.empty(size, np.int64), np.empty(size, np.int64)
    bounds = np.zeros(len(candidates) + 2, np.int64)
    for m in range(len(weights)):
        for e in range(offsets[m], offsets[m + 1]):
            owner[e] = m
            times[e] = candidates[position[e]]
            bounds[position[e] + 2] += 1
    for j in range(len(candidates)):
        bounds[j + 2] += bounds[j + 1]
    for e in range(size):
        events[bounds[position[e] + 1]] = e
        bounds[position[e] + 1] += 1
    return Ensemble(candidates, position, times, owner, offsets, weights, events, bounds[:-1])


@njit(fastmath={"reassoc"})
def weighted_sum(values: Floats, weights: Floats) -> float:
    """sum_m w_m v_m, in any order, so that it is vectorised."""
    total = 0.0
    for m in range(len(weights)):
        total += weights[m] * values[m]
    return total


@njit
def _same(places: Ints, bounds: Ints, particle: int, first: int, size: int) -> bool:
    """Whether a merged particle has the ``size`` events at ``places[first:]``."""
    start = bounds[particle]
    if bounds[particle + 1] - start != size:
        return False
    for e in range(size):  # noqa: SIM110 (generators do not compile)
        if places[start + e] != places[first + e]:
            return False
    return True
