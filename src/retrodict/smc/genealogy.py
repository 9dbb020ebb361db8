"""Who descends from whom: effective families of each segment, and guesses that look ahead as far as families last.

Resampling copies a few particles often, so that the particles at the end share their early events. Segment i, between
observed events i - 1 and i, has as many independent guesses as its *effective families*,

    N_i(h) = 1 / Σ_a (Σ_{m : ancestor at i is a} W_h(m))²,

where a are the particles that drew segment i and W_h(m) the weights of their descendants at observed event h >= i. The
full ensemble weighs every segment at the end, h = n. The *lagged* ensemble weighs segment i at the last h with
N_i(h) >= ``FAMILIES``: what comes after h is not taken into account (a bias that fades with the lag), and in return
N_i is never small. For a given h, N_i(h) falls as i goes back, so that h does not fall as i grows; segments that share
their h are drawn together, stretches of different h independently. With more particles h moves to n.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import torch
from numba import njit
from numpy.typing import NDArray

from retrodict.smc.particles import Result
from retrodict.smc.threads import share_out

FAMILIES = 10.0  # effective families that a segment of the lagged ensemble has at least, where there are as many
Numbers = NDArray[np.float64]
Indices = NDArray[np.int64]


class Paths(NamedTuple):
    """M guesses of the missing events of each of B streams, E events in all."""

    times: Numbers  # [E]: guess by guess
    types: Indices  # [E]
    counts: Indices  # [B, M]: how many events each guess has
    offsets: Indices  # [B M + 1]: where those of each guess begin
    families: Numbers  # [B, S]: effective families N_i of each segment; NaN beyond a stream's end


class Record(NamedTuple):
    """A run of B streams as the kernels read it; see ``smc/particles.py``."""

    times: Numbers
    types: NDArray[np.int32]
    before: NDArray[np.int32]
    parents: NDArray[np.int32]
    resampled: NDArray[np.bool_]
    log_weights: Numbers
    heads: NDArray[np.int32]
    steps: Indices  # [B]: the number of segments of each stream


def trace_back(
    run: Result, keys: torch.Tensor, starts: Numbers | None = None, order: Indices | None = None
) -> tuple[Paths, Paths, Indices]:
    """The full and the lagged ensemble of a run, and the h of each segment [B, S]; ``keys`` [B] pick lagged guesses.

    Stream ``order[b]`` of the run comes at place b of all that is given back, with times on the axis on which it
    starts at ``starts[b]``; by default in the order of the run, with times since the start.
    """
    record = _record(run)
    B, S, M = record.heads.shape
    families, lagged_families = np.full((B, S), np.nan), np.full((B, S), np.nan)
    reach, slots = np.zeros((B, S), np.int64), np.empty((B, S, M), np.int32)
    counts, lagged_counts = np.zeros((B, M), np.int64), np.zeros((B, M), np.int64)
    seeds = keys.numpy().view(np.uint64)
    order = np.arange(B) if order is None else order
    starts = np.zeros(B) if starts is None else starts
    sizes = families, lagged_families, reach

    def look(first: int, stop: int) -> None:
        _look(record, order[first:stop], first, FAMILIES, seeds, *sizes, slots, counts, lagged_counts)

    share_out(look, B, B * S * M)
    places, lagged_places = _offsets(counts), _offsets(lagged_counts)
    full = np.empty(places[-1]), np.empty(places[-1], np.int64)
    lagged = np.empty(lagged_places[-1]), np.empty(lagged_places[-1], np.int64)

    def write(first: int, stop: int) -> None:
        _write(record, order[first:stop], first, starts, slots, places, *full, lagged_places, *lagged)

    share_out(write, B, B * S * M)
    whole = Paths(*full, counts, places, families)
    return whole, Paths(*lagged, lagged_counts, lagged_places, lagged_families), reach


def _record(run: Result) -> Record:
    t = run.trace
    parts = (*run.forest, t.parents, t.resampled, t.log_weights, t.heads, run.steps)
    return Record(*(x.contiguous().numpy() for x in parts))


def _offsets(counts: Indices) -> Indices:
    return np.concatenate([[0], np.cumsum(counts.reshape(-1))])


@njit(cache=True, nogil=True)
def _look(
    record: Record,
    runs: Indices,
    first: int,
    wanted: float,
    seeds: Any,
    families: Numbers,
    lagged_families: Numbers,
    reach: Indices,
    slots: Any,
    counts: Indices,
    lagged_counts: Indices,
) -> None:
    """Families, reach and the particles whose segments make up each lagged guess, ``slots`` [B, S, M].

    ``runs`` are the streams of the record that come at place ``first`` and at those after it.
    """
    M = counts.shape[1]
    drawn, so_far = np.empty(M, np.int64), np.empty(M, np.int64)
    for at in range(len(runs)):
        b, place = runs[at], first + at
        _count_families(record, b, wanted, families[place], lagged_families[place], reach[place])
        _pick_slots(record, b, reach[place], seeds[b], slots[place])
        own, lagged_own = counts[place], lagged_counts[place]
        for s in range(record.steps[b]):
            for m in range(M):
                head, end = _ends(record, b, s, m)
                drawn[m] = _length(record.before, head, end)
                so_far[m] = own[record.parents[b, s - 1, m]] if s > 0 else 0
            for m in range(M):
                own[m] = so_far[m] + drawn[m]
                lagged_own[m] += drawn[slots[place, s, m]]


@njit(nogil=True)
def _count_families(record: Record, b: int, wanted: float, families: Any, lagged: Any, reach: Any) -> None:
    """N_i at the end, at the last h where it is ``wanted`` or more, and that h, for every segment [S].

    From every h, the last one first, the particles with weight are followed back; fewer and fewer are distinct, so that
    this takes about M log S steps for each h. Where families last to the end, that is the only h looked at.
    """
    M = record.heads.shape[2]
    who, mass, sums = np.empty(M, np.int64), np.empty(M), np.zeros(M)
    left = steps = record.steps[b]  # segments whose h is still to be found
    reach[:steps] = -1
    for h in range(steps - 1, -1, -1):
        if left == 0:
            break
        size = _normalise(record.log_weights[b, h], who, mass)
        N = _effective(mass, size)
        for i in range(h, -1, -1):
            if i < h and record.resampled[b, i]:
                size = _merge(record.parents[b, i], who, mass, sums, size)
                N = _effective(mass, size)
            if h == steps - 1:
                families[i] = N
            if wanted <= N or i == h:
                if reach[i] < 0:
                    lagged[i], reach[i] = N, h
                    left -= 1
            elif h < steps - 1:
                break


@njit(nogil=True)
def _normalise(log_weights: Any, who: Any, mass: Any) -> int:
    """The particles with weight and their shares of it; all alike where there is none. Returns how many there are."""
    top = log_weights.max()
    size = 0
    total = 0.0
    for m in range(len(log_weights)):
        weight = np.exp(log_weights[m] - top) if top > -np.inf else 1.0
        if weight > 0:
            who[size], mass[size] = m, weight
            total += weight
            size += 1
    for j in range(size):
        mass[j] /= total
    return size


@njit(nogil=True)
def _effective(mass: Any, size: int) -> float:
    """One over the sum of squares."""
    squares = 0.0
    for j in range(size):
        squares += mass[j] * mass[j]
    return 1.0 / squares


@njit(nogil=True)
def _merge(parents: Any, who: Any, mass: Any, sums: Any, size: int) -> int:
    """From particles after a resampling to their parents before it: theirs is the weight of all of their children."""
    distinct = 0
    for j in range(size):
        parent = parents[who[j]]
        if sums[parent] == 0.0:
            who[distinct] = parent  # distinct <= j: what is overwritten has been read
            distinct += 1
        sums[parent] += mass[j]
    for j in range(distinct):
        mass[j] = sums[who[j]]
        sums[who[j]] = 0.0
    return distinct


@njit(nogil=True)
def _random(state: Any) -> float:
    """The next number of SplitMix64 (``retrodict/random.py``) in (0, 1)."""
    state[0] += np.uint64(0x9E3779B97F4A7C15)
    x = state[0]
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    x = x ^ (x >> np.uint64(31))
    return ((x >> np.uint64(12)) + 0.5) * 2.0**-52


@njit(nogil=True)
def _pick_slots(record: Record, b: int, reach: Any, seed: Any, slots: Any) -> None:
    """For every lagged guess and segment the particle that drew it, ``slots`` [S, M].

    Each stretch of segments with the same h is picked systematically by W_h, in a random order, and followed back.
    """
    M = slots.shape[1]
    state = np.array([seed])
    who, mass, picks = np.empty(M, np.int64), np.empty(M), np.empty(M, np.int32)
    i = record.steps[b] - 1
    while i >= 0:
        h = reach[i]
        _pick(record.log_weights[b, h], who, mass, picks, state)
        for s in range(h, -1, -1):
            if s <= i and reach[s] != h:
                break
            if s < h and record.resampled[b, s]:
                for j in range(M):
                    picks[j] = record.parents[b, s, picks[j]]
            if s <= i:
                slots[s] = picks
        while i >= 0 and reach[i] == h:
            i -= 1


@njit(nogil=True)
def _pick(log_weights: Any, who: Any, mass: Any, picks: Any, state: Any) -> None:
    """M particles picked systematically by weight, in a random order."""
    M = len(picks)
    size = _normalise(log_weights, who, mass)
    point, edge, j = _random(state) / M, mass[0], 0
    for m in range(M):
        while edge < point and j < size - 1:
            j += 1
            edge += mass[j]
        picks[m] = who[j]
        point += 1.0 / M
    for m in range(M - 1, 0, -1):
        other = int(_random(state) * (m + 1))
        picks[m], picks[other] = picks[other], picks[m]


@njit(nogil=True)
def _ends(record: Record, b: int, s: int, slot: int) -> tuple[int, int]:
    """The last event that particle ``slot`` had drawn by the end of segment s, and by its start."""
    end = -1
    if s > 0:
        end = record.heads[b, s - 1, record.parents[b, s - 1, slot]]
    return record.heads[b, s, slot], end


@njit(nogil=True)
def _length(before: Any, head: int, end: int) -> int:
    """How many events lie on the path back from ``head`` to ``end``, which is not counted."""
    count = 0
    while head != end:
        head = before[head]
        count += 1
    return count


@njit(cache=True, nogil=True)
def _write(
    record: Record,
    runs: Indices,
    first: int,
    starts: Numbers,
    slots: Any,
    places: Indices,
    times: Numbers,
    types: Indices,
    lagged_places: Indices,
    lagged_times: Numbers,
    lagged_types: Indices,
) -> None:
    """The events of both ensembles, guess m's of the stream at place a from places[a M + m] on."""
    M = record.heads.shape[2]
    for at in range(len(runs)):
        b, a = runs[at], first + at
        last = record.steps[b] - 1
        for m in range(M):
            _copy(record, record.heads[b, last, m], -1, starts[a], places[a * M + m + 1], times, types)
            place = lagged_places[a * M + m + 1]
            for s in range(last, -1, -1):
                head, end = _ends(record, b, s, slots[a, s, m])
                place = _copy(record, head, end, starts[a], place, lagged_times, lagged_types)


@njit(nogil=True)
def _copy(record: Record, head: int, end: int, start: float, place: int, times: Any, types: Any) -> int:
    """Events on the path back from ``head`` to ``end``, written so that they end before ``place``; where they start."""
    while head != end:
        place -= 1
        times[place], types[place] = start + record.times[head], record.types[head]
        head = record.before[head]
    return place
