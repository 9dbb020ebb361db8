"""The local search: Algorithm 3 of the paper (section 4.2; appendix F), for one event type.

A decode and the alignments that edit it into every particle bound its risk from above. Each round finds the best
alignments (Align), then moves, deletes and inserts events of the decode under those alignments (Move, Delete,
Insert); every phase lowers the bound or keeps it, and the next round's alignments lower it again. What is lowered is
the objective: the risk and the charges of the decode's events, which the paper does not have. Where the printed
subroutines differ from the text we follow the text: Delete sums over all particles before it decides, and Insert
may use a time twice, since the union of the particles is a multiset.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit

from retrodict.decode.ensemble import Ensemble
from retrodict.decode.kernels import Bools, Floats, Ints, first_at_least, longest
from retrodict.decode.transport import Cost, align, workspace


class Decode(NamedTuple):
    """Sorted ``times`` [I], their risk plus charges, and the event of each particle aligned to each, or -1, [M, I]."""

    times: Floats
    objective: float
    match: Ints


@njit
def align_all(times: Floats, ensemble: Ensemble, cost: Cost) -> Decode:
    """Align Phase of Algorithm 3: a decode with its objective and its alignments."""
    match = np.empty((len(ensemble.weights), len(times)), np.int64)
    work = workspace(len(times), longest(ensemble.offsets))
    objective = 0.0
    for m in range(len(ensemble.weights)):
        first = ensemble.offsets[m]
        own = ensemble.times[first : ensemble.offsets[m + 1]]
        objective += ensemble.weights[m] * align(times, own, cost, match[m], work)
        for i in range(len(times)):
            if match[m, i] >= 0:
                match[m, i] += first
    for time in times:
        objective += ensemble.charge[first_at_least(ensemble.candidates, time, 0, len(ensemble.candidates))]
    return Decode(times, objective, match)


@njit
def gather(event: int, ensemble: Ensemble, match: Ints, mass: Floats) -> tuple[int, int, float]:
    """Add the weight of the events aligned to ``event`` to ``mass`` [n]; the candidates they span, and the total."""
    first, last = len(mass), -1
    total = 0.0
    for m in range(len(ensemble.weights)):
        if match[m, event] >= 0:
            place = ensemble.position[match[m, event]]
            mass[place] += ensemble.weights[m]
            total += ensemble.weights[m]
            first, last = min(first, place), max(last, place)
    return first, last, total


@njit
def quantile(mass: Floats, first: int, last: int, wanted: float) -> int:
    """The first candidate from ``first`` on up to which the mass is ``wanted`` or more, at most ``last``."""
    below = 0.0
    for place in range(first, last):
        below += mass[place]
        if below >= wanted:
            return place
    return last


@njit
def clear(mass: Floats, first: int, last: int) -> None:
    """Make ``mass`` zero again between two candidates."""
    for place in range(first, last + 1):
        mass[place] = 0.0


@njit
def _best_place(ensemble: Ensemble, mass: Floats, first: int, last: int, aligned: float) -> int:
    """Where an event moves least, the weighted median of ``mass``, or where a lower charge outweighs the way there."""
    median = best = quantile(mass, first, last, 0.5 * aligned)
    times, charge = ensemble.candidates, ensemble.charge
    least = charge[median]
    for step in (1, -1):
        behind, moved, place = 0.0, 0.0, median
        for j in range(first, median + 1) if step == 1 else range(median, last + 1):
            behind += mass[j]
        while place != (last if step == 1 else first):
            moved += abs(times[place + step] - times[place]) * (2.0 * behind - aligned)
            place += step
            behind += mass[place]
            if charge[place] < charge[median] and moved + charge[place] < least:
                best, least = place, moved + charge[place]
    return best


@njit
def _move_and_delete(decode: Decode, ensemble: Ensemble, cost: Cost, free: Bools) -> Floats:
    """Move and Delete Phases: each event goes to the best place among its aligned events, or goes.

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
        best = _best_place(ensemble, mass, first, last, aligned)
        time = ensemble.candidates[best]
        worth = cost.insert * aligned - cost.delete * (1.0 - aligned) - ensemble.charge[best]
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
def _insertion_gains(ensemble: Ensemble, free: Bools, cost: Cost) -> Floats:
    """Delta(t) [n]: by how much the bound on the objective falls if one event is inserted at each candidate."""
    reach = cost.insert + cost.delete
    gains = -cost.delete - ensemble.charge
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
def _skip_taken(free: Bools, event: int, step: int, stop: int) -> int:
    """The first free event from ``event`` on in steps of 1 or -1, or ``stop``."""
    while event != stop and not free[event]:
        event += step
    return event


@njit
def _take_nearest(gains: Floats, ensemble: Ensemble, free: Bools, m: int, time: float, reach: float) -> None:
    """Align an inserted event with the nearest free event of particle m, if in reach, which is then no gain."""
    times, begin, end = ensemble.times, ensemble.offsets[m], ensemble.offsets[m + 1]
    after = begin
    while after < end and (times[after] < time or not free[after]):
        after += 1
    before = _skip_taken(free, after - 1, -1, begin - 1)
    event, nearest = -1, reach
    if before >= begin and time - times[before] < nearest:
        event, nearest = before, time - times[before]
    if after < end and times[after] - time < nearest:
        event = after
    if event < 0:
        return
    free[event] = False
    before, after = _skip_taken(free, event - 1, -1, begin - 1), _skip_taken(free, event + 1, 1, end)
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
def _insert(decode: Floats, ensemble: Ensemble, cost: Cost, free: Bools) -> Floats:
    """Insert Phase: insert the best candidate, aligned to the nearest free events, while it pays."""
    reach = cost.insert + cost.delete
    gains = _insertion_gains(ensemble, free, cost)
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
def improve(start: Decode, ensemble: Ensemble, cost: Cost, known: Floats) -> Decode:
    """DecodeK from a given start: repeat the four phases until the decode, or its objective, no longer changes.

    A search that comes to the ``known`` decode ends there: it would repeat the search that found it.
    """
    best = start
    while True:
        free = np.ones(len(ensemble.times), np.bool_)
        kept = _move_and_delete(best, ensemble, cost, free)
        times = _insert(kept, ensemble, cost, free)
        if _equal(times, best.times) or _equal(times, known):
            return best
        decode = align_all(times, ensemble, cost)
        if decode.objective >= best.objective - 1e-12 * (cost.insert + cost.delete):
            return decode if decode.objective < best.objective else best
        best = decode


@njit
def local_search(ensemble: Ensemble, cost: Cost, starts: int) -> Decode:
    """The best of several local searches: from the empty decode, then from the heaviest particles."""
    best = align_all(ensemble.times[:0], ensemble, cost)
    heaviest = ensemble.weights.copy()
    for start in range(min(starts, len(heaviest) + 1)):
        decode = best
        if start > 0:
            m = np.argmax(heaviest)
            heaviest[m] = -1.0
            own = ensemble.times[ensemble.offsets[m] : ensemble.offsets[m + 1]]
            if _equal(own, best.times):
                continue
            decode = align_all(own, ensemble, cost)
        decode = improve(decode, ensemble, cost, best.times)
        if decode.objective < best.objective:
            best = decode
    return best
