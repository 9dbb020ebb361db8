"""A weighted ensemble of particles of one event type, cut where it falls apart and merged where it repeats.

No event is aligned across a time gap longer than C_insert + C_delete, so consensus decoding (eq. decode) is
solved for each stretch between such gaps alone; within a stretch many particles are the same.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit

from retrodict.decode.arrays import Floats, Ints
from retrodict.decode.grouped import Groups


class Ensemble(NamedTuple):
    """M distinct particles of one type: particle m owns events ``offsets[m]:offsets[m + 1]``, sorted.

    ``candidates`` [n] are the distinct times of all particles, ``position`` [E] the candidate at which each
    event is, ``times`` [E] = candidates[position], and ``weights`` [M] sum to one.
    """

    candidates: Floats
    position: Ints
    times: Floats
    offsets: Ints
    weights: Floats


class Candidates(NamedTuple):
    """Distinct (type, time) pairs of all particles, sorted: ``times`` [n], ``types`` [n].

    ``position`` [E] is the candidate of each event, particle by particle and sorted within each.
    """

    times: Floats
    types: Ints
    position: Ints


def list_candidates(groups: Groups) -> Candidates:
    """The candidates of an ensemble whose events are grouped by particle and type."""
    sizes = np.diff(groups.offsets)
    types = np.repeat(np.arange(len(sizes)) % max(groups.num_types, 1), sizes)
    order = np.lexsort((groups.times, types))
    times, types = groups.times[order], types[order]
    new = np.ones(len(times), dtype=np.bool_)
    new[1:] = (np.diff(times) != 0) | (np.diff(types) != 0)
    position = np.empty(len(times), dtype=np.int64)
    position[order] = np.cumsum(new) - 1
    return Candidates(times[new], types[new], position)


def cut_blocks(candidates: Candidates, reach: float) -> Ints:
    """Bounds [B+1] of stretches of candidates of one type without a gap longer than ``reach``."""
    apart = (np.diff(candidates.times) > reach) | (np.diff(candidates.types) != 0)
    ends = np.array([0, len(candidates.times)] if len(candidates.times) else [0], dtype=np.int64)
    return np.union1d(ends, np.flatnonzero(apart) + 1)


@njit
def restrict(candidates: Floats, position: Ints, offsets: Ints, weights: Floats, first: int, stop: int) -> Ensemble:
    """The ensemble between candidates ``first`` and ``stop``, identical particles merged."""
    particles = len(weights)
    begin = np.empty(particles, np.int64)
    end = np.empty(particles, np.int64)
    size = 1
    while size < 2 * particles:
        size *= 2
    slots = np.full(size, -1, np.int64)  # open addressing: slot -> merged particle
    kept = np.empty(particles, np.int64)
    mass = np.zeros(particles)
    count = events = 0
    for m in range(particles):
        own = position[offsets[m] : offsets[m + 1]]
        begin[m] = offsets[m] + np.searchsorted(own, first)
        end[m] = offsets[m] + np.searchsorted(own, stop)
        code = np.uint64(14695981039346656037)
        for e in range(begin[m], end[m]):
            code = (code ^ np.uint64(position[e])) * np.uint64(1099511628211)
        slot = np.int64((code ^ (code >> np.uint64(32))) & np.uint64(size - 1))
        while slots[slot] >= 0 and not _same(position, begin, end, kept[slots[slot]], m):
            slot = (slot + 1) & (size - 1)
        if slots[slot] < 0:
            slots[slot] = count
            kept[count] = m
            events += end[m] - begin[m]
            count += 1
        mass[slots[slot]] += weights[m]
    places = np.empty(events, np.int64)
    bounds = np.zeros(count + 1, np.int64)
    for i in range(count):
        m = kept[i]
        bounds[i + 1] = bounds[i] + end[m] - begin[m]
        for e in range(end[m] - begin[m]):
            places[bounds[i] + e] = position[begin[m] + e] - first
    return Ensemble(candidates, places, candidates[places], bounds, mass[:count] / mass[:count].sum())


@njit
def _same(position: Ints, begin: Ints, end: Ints, a: int, b: int) -> bool:
    """Whether two particles have the same events in this stretch."""
    size = end[a] - begin[a]
    if end[b] - begin[b] != size:
        return False
    for e in range(size):  # noqa: SIM110 (generators do not compile)
        if position[begin[a] + e] != position[begin[b] + e]:
            return False
    return True
