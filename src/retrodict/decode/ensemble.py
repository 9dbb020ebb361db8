"""Weighted particles as the decoders read them: candidates, and ensembles of one type on one stretch of time.

Some best decode has events only at times of particle events (Theorem 1; docs/consensus.md, Lemma 1): these, with
their types, are the candidates. No event is aligned across a gap longer than C_insert + C_delete, nor to another
type, so that the consensus (eq. decode) is found for each stretch of candidates between such gaps on its own. On
one stretch many particles are the same; an ``Ensemble`` has each of them once.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numba import njit
from numpy.typing import ArrayLike

from retrodict.decode.kernels import Floats, Ints, entry_point
from retrodict.decode.transport import check_streams
from retrodict.errors import DataError
from retrodict.events.stream import EventStream

NEGLIGIBLE = 2.0**-50


def check_particles(particles: object, weights: ArrayLike | None) -> tuple[list[EventStream], Floats]:
    """The particles that carry weight, in an order of their own, and their weights [M], which sum to one."""
    streams, w = own_particles(particles, weights)
    return streams, w / w.sum()


def own_particles(particles: object, weights: ArrayLike | None) -> tuple[list[EventStream], Floats]:
    """As ``check_particles``, but the weights [M] sum to one only together with those of the particles left out."""
    streams = check_streams(particles, "particles")
    if not streams:
        raise DataError("there are no particles", remedy="pass at least one particle (it may be empty)")
    w = check_weights(weights, len(streams))
    kept = own_order(*flatten(streams), w)
    return [streams[m] for m in kept], w[kept]


def check_weights(weights: ArrayLike | None, count: int) -> Floats:
    """Weights [M] scaled to sum to one; equal ones for None."""
    if weights is None:
        return np.full(count, 1.0 / count)
    values = np.asarray(weights, dtype=np.float64)
    if values.shape != (count,):
        raise DataError(
            f"{count} particles but weights of shape {values.shape}", remedy="give exactly one weight for each particle"
        )
    if not np.isfinite(values).all():
        place = int(np.argmin(np.isfinite(values)))
        raise DataError(f"weight {place} is {values[place]}", remedy="give finite weights; exponentiate log weights")
    if (values < 0).any():
        place = int(np.argmax(values < 0))
        raise DataError(
            f"weight {place} is negative ({values[place]:g})",
            remedy="give weights of zero or more; exponentiate log weights",
        )
    if not values.max() > 0:
        raise DataError("all weights are zero", remedy="give at least one particle a positive weight")
    values = values / values.max()
    return values / values.sum()


def flatten(streams: Sequence[EventStream]) -> tuple[Floats, Ints, Ints]:
    """Times [E] and types [E] of all events, particle by particle, and their offsets [M+1]."""
    arrays = [s.times for s in streams]
    times, types = np.concatenate(arrays), np.concatenate([s.types for s in streams])
    return times, types, np.array([0, *map(len, arrays)], dtype=np.int64).cumsum()


# --- the order of particles --------------------------------------------------------------------------------


@entry_point
def own_order(times: Floats, types: Ints, offsets: Ints, weights: Floats) -> Ints:
    """The particles that carry weight, sorted by weight, then by their events.

    A decode does not depend on the order in which particles were given, since it takes them in this one.
    """
    order, spare = np.empty(len(weights), np.int64), np.empty(len(weights), np.int64)
    count = 0
    for m in range(len(weights)):
        if weights[m] >= NEGLIGIBLE:
            order[count] = m
            count += 1
    codes = times.view(np.int64)
    width = 1
    while width < count:  # merge sort, from the bottom up
        for first in range(0, count, 2 * width):
            middle, stop = min(first + width, count), min(first + 2 * width, count)
            i, j = first, middle
            for k in range(first, stop):
                if i < middle and (j == stop or not _precedes(order[j], order[i], codes, types, offsets, weights)):
                    spare[k] = order[i]
                    i += 1
                else:
                    spare[k] = order[j]
                    j += 1
        order, spare = spare, order
        width *= 2
    return order[:count]


@njit
def _precedes(a: int, b: int, codes: Ints, types: Ints, offsets: Ints, weights: Floats) -> bool:
    """Whether particle a is heavier than b, or as heavy and has events that come first."""
    if weights[a] != weights[b]:
        return bool(weights[a] > weights[b])
    order = _compare(codes[offsets[a] : offsets[a + 1]], codes[offsets[b] : offsets[b + 1]])
    if order == 0:
        order = _compare(types[offsets[a] : offsets[a + 1]], types[offsets[b] : offsets[b + 1]])
    return order < 0


@njit
def _compare(a: Ints, b: Ints) -> int:
    """Negative, zero or positive as the bytes of a come before, equal or come after those of b."""
    for i in range(min(len(a), len(b))):
        if a[i] != b[i]:
            shift = 0
            while (a[i] >> shift) & 255 == (b[i] >> shift) & 255:
                shift += 8
            return int(((a[i] >> shift) & 255) - ((b[i] >> shift) & 255))
    return len(a) - len(b)


class Arranged(NamedTuple):
    """The particles that carry weight of n streams, each stream's in an order of its own.

    Stream i has particles ``particles[i]:particles[i + 1]``, whose ``weights`` [P] sum to one, and events
    ``events[i]:events[i + 1]`` with ``times`` [E] and ``types`` [E]. ``offsets`` [P + n] are those of the particles'
    events among the stream's own, one more for each stream than it has particles.
    """

    times: Floats
    types: Ints
    offsets: Ints
    weights: Floats
    particles: Ints
    events: Ints


@entry_point
def arrange(times: Floats, types: Ints, offsets: Ints, weights: Floats, first: int, stop: int) -> Arranged:
    """Streams ``first`` to ``stop`` of a set of ensembles with ``weights`` [N, M]."""
    n, M = stop - first, weights.shape[1]
    size = offsets[stop * M] - offsets[first * M]
    own_times, own_types, own_offsets = np.empty(size), np.empty(size, np.int64), np.zeros(n * (M + 1), np.int64)
    own_weights, particles, events = np.empty(n * M), np.zeros(n + 1, np.int64), np.zeros(n + 1, np.int64)
    p = e = particles[0]
    for i in range(n):
        begin = (first + i) * M
        kept = own_order(times, types, offsets[begin : begin + M + 1], weights[first + i])
        total = weights[first + i][kept].sum()
        for m in kept:
            own_weights[p] = weights[first + i, m] / total
            for event in range(offsets[begin + m], offsets[begin + m + 1]):
                own_times[e], own_types[e] = times[event], types[event]
                e += 1
            p += 1
            own_offsets[p + i] = e - events[i]
        particles[i + 1], events[i + 1] = p, e
    return Arranged(own_times[:e], own_types[:e], own_offsets[: p + n], own_weights[:p], particles, events)


# --- candidates --------------------------------------------------------------------------------------------


class Candidates(NamedTuple):
    """Distinct (type, time) pairs of all particles, sorted: ``times`` [n], ``types`` [n].

    Particle m has its events at candidates ``position[offsets[m]:offsets[m + 1]]``, sorted.
    """

    times: Floats
    types: Ints
    position: Ints
    offsets: Ints


@njit
def list_candidates(times: Floats, types: Ints, offsets: Ints, order: Ints) -> Candidates:
    """The candidates of particles that own events ``offsets[m]:offsets[m + 1]``; ``order`` [E] sorts ``times``."""
    size = len(times)
    owner = np.empty(size, np.int64)
    for m in range(len(offsets) - 1):
        owner[offsets[m] : offsets[m + 1]] = m
    slot = np.zeros(types.max() + 2 if size else 1, np.int64)
    for e in range(size):
        slot[types[e] + 1] += 1
    for k in range(len(slot) - 1):
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
    return Candidates(found_times[:count], found_types[:count], position, offsets)


@njit
def next_cut(candidates: Candidates, first: int, reach: float) -> int:
    """Where the stretch that begins at candidate ``first`` ends: at a gap above ``reach``, or another type."""
    times, types = candidates.times, candidates.types
    stop = first + 1
    while stop < len(times) and types[stop] == types[first] and times[stop] - times[stop - 1] <= reach:
        stop += 1
    return stop


class Ensemble(NamedTuple):
    """M distinct particles of one type: particle m owns events ``offsets[m]:offsets[m + 1]``, sorted.

    ``candidates`` [n] are the distinct times of all particles, ``position`` [E] the candidate at which each
    event is, ``times`` [E] = candidates[position], ``owner`` [E] its particle, and ``weights`` [M] sum to one.
    ``charge`` [n] is what a consensus event at each candidate costs beside its risk. The events at candidate j are
    ``events[bounds[j]:bounds[j + 1]]``, in the order of a sweep over time.
    """

    candidates: Floats
    position: Ints
    times: Floats
    owner: Ints
    offsets: Ints
    weights: Floats
    charge: Floats
    events: Ints
    bounds: Ints


@njit
def restrict(candidates: Candidates, weights: Floats, charge: Floats, begin: Ints, first: int, stop: int) -> Ensemble:
    """The ensemble between candidates ``first`` and ``stop``, identical particles merged.

    ``charge`` [n] is that of all candidates; ``begin`` [M] is where each particle's events of this stretch begin, and
    moves on to where they end.
    """
    position, offsets = candidates.position, candidates.offsets
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
    return _arrange(candidates.times[first:stop], places[:total], own[: count + 1], mass[:count], charge[first:stop])


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


@njit
def _arrange(candidates: Floats, position: Ints, offsets: Ints, weights: Floats, charge: Floats) -> Ensemble:
    """An ensemble from the particles' positions: the owner of each event, and the events at each candidate."""
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
    return Ensemble(candidates, position, times, owner, offsets, weights, charge, events, bounds[:-1])
