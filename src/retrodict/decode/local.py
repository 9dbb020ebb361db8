"""Algorithm 3: consensus decoding by local search, for one event type.

Each round aligns the decode with every particle, then moves, deletes and inserts events under those
alignments; every phase lowers (or keeps) an upper bound of the risk, and the next round's alignments lower
it again. Where the printed subroutines differ from the text we follow the text: Delete sums over all
particles before it decides, and Insert may use a time twice, since the union of the particles is a multiset.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from retrodict.decode.aligned import Decode, align_all, clear, gather, quantile
from retrodict.decode.arrays import Bools, Floats
from retrodict.decode.ensemble import Ensemble
from retrodict.decode.search import first_at_least


@njit
def _move_and_delete(decode: Decode, ensemble: Ensemble, insert: float, delete: float, free: Bools) -> Floats:
    """Move and Delete Phases: each event goes to the weighted median of its aligned events, or goes.

    ``free`` [E] tells which particle events are unaligned, and is updated; returns the events kept.
    """
    match = decode.match
    moved = np.empty(len(decode.times))
    kept = 0
    mass = np.zeros(len(ensemble.candidates))
    for i in range(len(moved)):
        first, last, aligned = gather(i, ensemble, match, mass)
        if last < 0:
            continue
        time = ensemble.candidates[quantile(mass, first, last, 0.5 * aligned)]
        worth = insert * aligned - delete * (1.0 - aligned)
        for place in range(first, last + 1):
            worth -= mass[place] * abs(ensemble.candidates[place] - time)
        clear(mass, first, last)
        if worth >= 0:
            moved[kept] = time
            kept += 1
            for m in range(len(ensemble.weights)):
                if match[m, i] >= 0:
                    free[match[m, i]] = False
    return moved[:kept]


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
def _take_nearest(gains: Floats, ensemble: Ensemble, free: Bools, m: int, time: float, reach: float) -> None:
    """Align an inserted event with the nearest free event of particle m, if in reach, which is then no gain."""
    times, begin, end = ensemble.times, ensemble.offsets[m], ensemble.offsets[m + 1]
    after = begin
    while after < end and (times[after] < time or not free[after]):
        after += 1
    before = after - 1
    while before >= begin and not free[before]:
        before -= 1
    event, nearest = -1, reach
    if before >= begin and time - times[before] < nearest:
        event, nearest = before, time - times[before]
    if after < end and times[after] - time < nearest:
        event = after
    if event < 0:
        return
    free[event] = False
    before, after = event - 1, event + 1
    while before >= begin and not free[before]:
        before -= 1
    while after < end and not free[after]:
        after += 1
    left = times[before] if before >= begin else -np.inf
    right = times[after] if after < end else np.inf
    _lose(gains, ensemble, event, left, right, ensemble.weights[m], reach)


@njit
def _lose(
    gains: Floats, ensemble: Ensemble, event: int, left: float, right: float, weight: float, reach: float
) -> None:
    """Take from ``gains`` [n] what they owe to ``event`` being nearer than ``left``, ``right`` and ``reach``."""
    here, place = ensemble.times[event], ensemble.position[event]
    low = max(0.5 * (left + here), here - reach)
    high = min(0.5 * (here + right), here + reach)
    first = first_at_least(ensemble.candidates, low, 0, place)
    stop = first_at_least(ensemble.candidates, high, place, len(gains))
    less, times = gains[first:stop], ensemble.candidates[first:stop]
    for j in range(len(less)):
        other = min(reach, min(times[j] - left, right - times[j]))
        less[j] -= weight * max(other - abs(times[j] - here), 0.0)


@njit
def _insert(decode: Floats, ensemble: Ensemble, insert: float, delete: float, free: Bools) -> Floats:
    """Insert Phase: insert the best candidate, aligned to the nearest free events, while it pays."""
    reach = insert + delete
    gains = _insertion_gains(ensemble, free, insert, delete)
    count = len(decode)
    longer = np.empty(count + len(free))
    for i in range(count):
        longer[i] = decode[i]
    while count < len(longer):
        best = np.argmax(gains)
        if gains[best] <= 1e-12 * reach:
            break
        time = ensemble.candidates[best]
        longer[count] = time
        count += 1
        for m in range(len(ensemble.weights)):
            _take_nearest(gains, ensemble, free, m, time, reach)
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
def _equal(a: Floats, b: Floats) -> bool:
    if len(a) != len(b):
        return False
    for i in range(len(a)):  # noqa: SIM110 (generators do not compile)
        if a[i] != b[i]:
            return False
    return True


@njit
def improve(start: Decode, ensemble: Ensemble, insert: float, delete: float, known: Floats) -> Decode:
    """DecodeK from a given start: repeat the four phases until the decode, or its risk, no longer changes.

    A search that comes to the ``known`` decode ends there, since it would go on as that one did.
    """
    best = start
    while True:
        free = np.ones(len(ensemble.times), np.bool_)
        kept = _move_and_delete(best, ensemble, insert, delete, free)
        times = _insert(kept, ensemble, insert, delete, free)
        if _equal(times, best.times) or _equal(times, known):
            return best
        decode = align_all(times, ensemble, insert, delete)
        if decode.risk >= best.risk - 1e-12 * (insert + delete):
            return decode if decode.risk < best.risk else best
        best = decode


@njit
def local_search(ensemble: Ensemble, insert: float, delete: float, starts: int) -> Decode:
    """The best of several local searches: from the empty decode, then from the heaviest particles."""
    best = align_all(ensemble.times[:0], ensemble, insert, delete)
    heaviest = ensemble.weights.copy()
    for start in range(min(starts, len(heaviest) + 1)):
        decode = best
        if start > 0:
            m = np.argmax(heaviest)
            heaviest[m] = -1.0
            own = ensemble.times[ensemble.offsets[m] : ensemble.offsets[m + 1]]
            if _equal(own, best.times):
                continue
            decode = align_all(own, ensemble, insert, delete)
        decode = improve(decode, ensemble, insert, delete, best.times)
        if decode.risk < best.risk:
            best = decode
    return best
