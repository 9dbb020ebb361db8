"""Algorithm 3: consensus decoding by local search, for one event type.

Each round aligns the decode with every particle, then moves, deletes and inserts events under those
alignments; every phase lowers (or keeps) an upper bound of the risk, and the next round's alignments lower
it again. Where the printed subroutines differ from the text we follow the text: Delete sums over all
particles before it decides, and Insert may use a time twice, since the union of the particles is a multiset.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from retrodict.decode.align import align, workspace
from retrodict.decode.arrays import Bools, Floats, Ints
from retrodict.decode.ensemble import Ensemble


@njit
def align_all(decode: Floats, ensemble: Ensemble, insert: float, delete: float, match: Ints) -> float:
    """Align Phase: the risk of ``decode`` [I]; ``match`` [M, I] receives positions of events, or -1."""
    longest = 0
    for m in range(len(ensemble.weights)):
        longest = max(longest, ensemble.offsets[m + 1] - ensemble.offsets[m])
    work = workspace(len(decode), longest)
    risk = 0.0
    for m in range(len(ensemble.weights)):
        first = ensemble.offsets[m]
        own = ensemble.times[first : ensemble.offsets[m + 1]]
        risk += ensemble.weights[m] * align(decode, own, insert, delete, match[m], work)
        for i in range(len(decode)):
            if match[m, i] >= 0:
                match[m, i] += first
    return risk


@njit
def _median(event: int, ensemble: Ensemble, match: Ints, mass: Floats) -> tuple[int, float]:
    """The candidate that is the weighted median of the events aligned to ``event``, and their weight.

    ``mass`` [n] is scratch, zero before and after. The median is -1 if nothing is aligned.
    """
    first, last = len(mass), -1
    total = 0.0
    for m in range(len(ensemble.weights)):
        if match[m, event] >= 0:
            place = ensemble.position[match[m, event]]
            mass[place] += ensemble.weights[m]
            total += ensemble.weights[m]
            first, last = min(first, place), max(last, place)
    below = 0.0
    median = -1
    for place in range(first, last + 1):
        below += mass[place]
        mass[place] = 0.0
        if median < 0 and below >= 0.5 * total:
            median = place
    return (last if median < 0 else median), total


@njit
def _move_and_delete(
    decode: Floats, ensemble: Ensemble, insert: float, delete: float, match: Ints, free: Bools
) -> Floats:
    """Move and Delete Phases: each event goes to the weighted median of its aligned events, or goes.

    ``free`` [E] tells which particle events are unaligned, and is updated; returns the events kept.
    """
    moved = np.empty(len(decode))
    kept = 0
    mass = np.zeros(len(ensemble.candidates))
    for i in range(len(decode)):
        median, aligned = _median(i, ensemble, match, mass)
        if median < 0:
            continue
        time = ensemble.candidates[median]
        worth = insert * aligned - delete * (1.0 - aligned)
        for m in range(len(ensemble.weights)):
            if match[m, i] >= 0:
                worth -= ensemble.weights[m] * abs(ensemble.times[match[m, i]] - time)
        if worth >= 0:
            moved[kept] = time
            kept += 1
            for m in range(len(ensemble.weights)):
                if match[m, i] >= 0:
                    free[match[m, i]] = False
    return moved[:kept]


@njit
def _free_neighbours(ensemble: Ensemble, free: Bools, m: int, event: int) -> tuple[float, float]:
    """Times of the free events of particle m on either side of ``event``."""
    left, right = -np.inf, np.inf
    before, after = event - 1, event + 1
    while before >= ensemble.offsets[m] and not free[before]:
        before -= 1
    while after < ensemble.offsets[m + 1] and not free[after]:
        after += 1
    if before >= ensemble.offsets[m]:
        left = ensemble.times[before]
    if after < ensemble.offsets[m + 1]:
        right = ensemble.times[after]
    return left, right


@njit
def _spread(
    gains: Floats, ensemble: Ensemble, event: int, left: float, right: float, amount: float, reach: float
) -> None:
    """Add amount * (how much nearer than ``left``, ``right`` or ``reach`` the event is) to ``gains`` [n]."""
    here = ensemble.times[event]
    for step in (-1, 1):
        j = ensemble.position[event] + max(step, 0)
        while 0 <= j < len(gains):
            time = ensemble.candidates[j]
            other = min(reach, min(abs(time - left), abs(right - time)))
            nearer = other - abs(time - here)
            if nearer <= 0:
                break
            gains[j] += amount * nearer
            j += step


@njit
def _insertion_gains(ensemble: Ensemble, free: Bools, insert: float, delete: float) -> Floats:
    """Delta(t) [n]: by how much the risk bound falls if one event is inserted at each candidate."""
    reach = insert + delete
    gains = np.full(len(ensemble.candidates), -delete)
    for m in range(len(ensemble.weights)):
        weight, left, first = ensemble.weights[m], -np.inf, 0
        for event in range(ensemble.offsets[m], ensemble.offsets[m + 1] + 1):
            last = event == ensemble.offsets[m + 1]
            if not last and not free[event]:
                continue
            # Candidates between two free events gain from the nearer one, if it is in reach.
            right = np.inf if last else ensemble.times[event]
            stop = len(gains) if last else ensemble.position[event]
            here, times = gains[first:stop], ensemble.candidates[first:stop]
            for j in range(len(here)):
                here[j] += weight * max(reach - min(times[j] - left, right - times[j]), 0.0)
            left, first = right, stop
    return gains


@njit
def _nearest_free(ensemble: Ensemble, free: Bools, m: int, time: float, reach: float) -> int:
    """The free event of particle m that is nearest to ``time`` and nearer than ``reach``, or -1."""
    first, stop = ensemble.offsets[m], ensemble.offsets[m + 1]
    after = first + np.searchsorted(ensemble.times[first:stop], time)
    before = after - 1
    while after < stop and not free[after]:
        after += 1
    while before >= first and not free[before]:
        before -= 1
    best, nearest = reach, -1
    if before >= first and time - ensemble.times[before] < best:
        best, nearest = time - ensemble.times[before], before
    if after < stop and ensemble.times[after] - time < best:
        nearest = after
    return nearest


@njit
def _insert(decode: Floats, ensemble: Ensemble, insert: float, delete: float, free: Bools) -> Floats:
    """Insert Phase: insert the best candidate, aligned to the nearest free events, while it pays."""
    reach = insert + delete
    gains = _insertion_gains(ensemble, free, insert, delete)
    longer = np.empty(len(decode) + free.sum())
    longer[: len(decode)] = decode
    count = len(decode)
    while count < len(longer):
        best = np.argmax(gains)
        if gains[best] <= 1e-12 * reach:
            break
        longer[count] = ensemble.candidates[best]
        count += 1
        for m in range(len(ensemble.weights)):
            event = _nearest_free(ensemble, free, m, ensemble.candidates[best], reach)
            if event >= 0:
                free[event] = False
                left, right = _free_neighbours(ensemble, free, m, event)
                _spread(gains, ensemble, event, left, right, -ensemble.weights[m], reach)
    return _in_order(longer[:count])


@njit
def _in_order(times: Floats) -> Floats:
    """Sort times that are nearly in order, in place, by insertion."""
    for i in range(1, len(times)):
        time = times[i]
        j = i
        while j > 0 and times[j - 1] > time:
            times[j] = times[j - 1]
            j -= 1
        times[j] = time
    return times


@njit
def improve(decode: Floats, ensemble: Ensemble, insert: float, delete: float) -> tuple[Floats, float]:
    """DecodeK from a given start: repeat the four phases until the decode, or its risk, no longer changes."""
    best, lowest = decode, np.inf
    while True:
        match = np.empty((len(ensemble.weights), len(decode)), np.int64)
        risk = align_all(decode, ensemble, insert, delete, match)
        if risk < lowest:
            best = decode
        if risk >= lowest - 1e-12 * (insert + delete):
            return best, min(risk, lowest)
        lowest = risk
        free = np.ones(len(ensemble.times), np.bool_)
        decode = _move_and_delete(decode, ensemble, insert, delete, match, free)
        decode = _insert(decode, ensemble, insert, delete, free)
        if np.array_equal(decode, best):
            return best, lowest


@njit
def local_search(ensemble: Ensemble, insert: float, delete: float, starts: int) -> tuple[Floats, float]:
    """The best of several local searches: from the empty decode, then from the heaviest particles."""
    best, lowest = improve(ensemble.times[:0], ensemble, insert, delete)
    heaviest = ensemble.weights.copy()
    for _ in range(1, min(starts, len(heaviest) + 1)):
        m = np.argmax(heaviest)
        heaviest[m] = -1.0
        start = ensemble.times[ensemble.offsets[m] : ensemble.offsets[m + 1]]
        decode, risk = improve(start, ensemble, insert, delete)
        if risk < lowest:
            best, lowest = decode, risk
    return best, lowest
