"""All streams of a set decoded in one call, by compiled code that runs in threads.

The particles of each stream are put into an order of their own and cut into stretches that do not interact
(``ensemble.py``). On each, the paper's local search (``local.py``) finds a good decode, and the exact search
(``exact.py``) the best one and, as a by-product, a lower bound on what every decode costs (``bound.py``). Stretches are
put together, and what the particles aligned to each event say about it becomes its probability and its time interval.
docs/consensus.md has the proofs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Literal, NamedTuple

import numpy as np
from numba import njit

from retrodict.decode.ensemble import Arranged, Ensemble, arrange, list_candidates, next_cut, restrict
from retrodict.decode.exact import exact_search
from retrodict.decode.flat import Charges, Ensembles, check_charges, check_ensembles
from retrodict.decode.kernels import Floats, Ints, blocks_of, entry_point, first_at_least, in_threads
from retrodict.decode.local import Decode, clear, gather, local_search, quantile
from retrodict.decode.transport import Cost, CostLike, as_cost
from retrodict.errors import DataError

Method = Literal["exact", "local"]


class Decodes(NamedTuple):
    """One decode for each of N streams at one cost, with D events in all, and what they risk.

    Stream i owns events ``offsets[i]:offsets[i + 1]``, sorted by time. ``risk`` is the plain expected distance,
    C_insert * inserted + C_delete * deleted + moved; ``charged`` is the sum of the charges of the events. What is
    minimised is ``objective`` = risk + charged, and no decode with events at particle times has one below
    ``lower_bound``.
    """

    times: Floats  # [D]
    types: Ints  # [D]
    probability: Floats  # [D]: the weight of the particles with an event aligned to this one, nearer 1/2 if few
    earliest: Floats  # [D]: weighted quantiles of where they have it, further out where charges say that they are few
    latest: Floats  # [D]
    offsets: Ints  # [N + 1]
    risk: Floats  # [N]
    charged: Floats  # [N]
    lower_bound: Floats  # [N]
    moved: Floats  # [N]
    inserted: Floats  # [N]
    deleted: Floats  # [N]

    @property
    def objective(self) -> Floats:
        """What is minimised [N]: the risk, and the charges of the events."""
        return self.risk + self.charged

    @property
    def gap(self) -> Floats:
        """(objective - lower_bound) / objective [N]: zero for a proven optimum."""
        return (self.objective - self.lower_bound) / np.where(self.objective > 0, self.objective, 1.0)


class Options(NamedTuple):
    """How to search; with an infinite ``tolerance`` the exact search only adds a bound to the local one."""

    starts: int
    tolerance: float
    rounds: int
    level: float


def decode_set(
    ensembles: Ensembles,
    costs: Iterable[CostLike],
    charges: Charges | None = None,
    method: Method = "exact",
    *,
    level: float = 0.9,
    tolerance: float = 1e-9,
    rounds: int = 100,
    starts: int = 3,
    threads: int | None = None,
    progress: Callable[[], None] | None = None,
) -> list[Decodes]:
    """The consensus of every stream of a set (eq. decode), for each cost, whatever the number of threads the same.

    ``progress`` is called after each stream. Options are those of ``consensus``; ``charges`` make each event of a
    decode cost more than its risk, where the particles are too few to be trusted.
    """
    options = check_options(method, level, tolerance, rounds, starts)
    checked = check_ensembles(ensembles)
    prices = [as_cost(cost) for cost in costs]
    return decode_checked(checked, prices, check_charges(charges, len(checked.weights)), options, threads, progress)


def check_options(method: str, level: float, tolerance: float, rounds: int, starts: int) -> Options:
    """The options of a search, or an error that says which is wrong."""
    if method not in ("exact", "local"):
        raise DataError(f"unknown method {method!r}", remedy='pass method="exact" or method="local"')
    if not 0 < level < 1:
        raise DataError(f"level is {level}", remedy="pass the coverage of the intervals, between 0 and 1")
    if not tolerance >= 0:
        raise DataError(f"tolerance is {tolerance}", remedy="pass a relative gap of zero or more")
    if rounds < 1 or starts < 1:
        raise DataError(f"rounds={rounds}, starts={starts}", remedy="pass at least 1 of each")
    if method == "exact":
        return Options(1, float(tolerance), rounds, float(level))
    return Options(starts, np.inf, 1, float(level))  # one solve, for the bound alone


def decode_checked(
    ensembles: Ensembles,
    costs: Sequence[Cost],
    charges: Charges,
    options: Options,
    threads: int | None,
    progress: Callable[[], None] | None = None,
) -> list[Decodes]:
    """The decodes for each cost of ensembles that were checked."""

    def decode_streams(first: int, stop: int) -> list[Found]:
        own = arrange(*ensembles, first, stop)
        order = _sort_by_time(own)
        return [_solve_streams(own, order, charges, first, cost, options) for cost in costs]

    blocks = blocks_of(ensembles.offsets[:: ensembles.weights.shape[1]])
    found = in_threads(decode_streams, blocks, threads, progress)
    return [_join([of_block[c] for of_block in found], cost) for c, cost in enumerate(costs)]


def _sort_by_time(own: Arranged) -> Ints:
    """What sorts the particle events of each stream by time, [E]."""
    sizes = np.diff(own.events)
    order = np.lexsort((own.times, np.repeat(np.arange(len(sizes)), sizes)))
    return order - np.repeat(own.events[:-1], sizes)


def _join(found: Sequence[Found], cost: Cost) -> Decodes:
    """The decodes of all streams in flat arrays, the events of each sorted by time."""
    sizes = np.concatenate([np.empty(0, np.int64), *(f.sizes for f in found)])
    times = np.concatenate([np.empty(0), *(f.times for f in found)])
    types = np.concatenate([np.empty(0, np.int64), *(f.types for f in found)])
    order = np.lexsort((times, np.repeat(np.arange(len(sizes)), sizes)))
    probability = np.concatenate([np.empty(0), *(f.probability for f in found)])[order]
    earliest, latest = np.concatenate([np.empty((0, 2)), *(f.interval for f in found)])[order].T
    moved, inserted, deleted = np.concatenate([np.empty((0, 3)), *(f.expected for f in found)]).T
    charged, lower = np.concatenate([np.empty((0, 2)), *(f.totals for f in found)]).T
    risk = cost.insert * inserted + cost.delete * deleted + moved
    lower = np.clip(lower, 0.0, risk + charged)  # rounding may lift the bound above the objective in the last digits
    events = times[order], types[order], probability, earliest, latest
    offsets = np.concatenate([[0], np.cumsum(sizes)])
    return Decodes(*events, offsets, risk, charged, lower, moved, inserted, deleted)


# --- a block of streams ------------------------------------------------------------------------------------


class Found(NamedTuple):
    """The decodes of n streams, with D events in all.

    ``times`` [D], ``types`` [D], ``probability`` [D] and ``interval`` [D, 2] of the events, stream by stream, of which
    each has ``sizes`` [n]. ``expected`` [n, 3] is the time moved and the numbers of insertions and deletions
    (eq. decomp), weighted over particles; ``totals`` [n, 2] are the charges of the events and the lower bound on risk
    plus charges.
    """

    times: Floats
    types: Ints
    probability: Floats
    interval: Floats
    expected: Floats
    totals: Floats
    sizes: Ints


@entry_point
def _solve_streams(own: Arranged, order: Ints, charges: Charges, first: int, cost: Cost, options: Options) -> Found:
    """The consensus of streams that are arranged, of which the first has the charges of stream ``first``."""
    n, size = len(own.events) - 1, len(own.times)
    expected, totals, sizes = np.zeros((n, 3)), np.zeros((n, 2)), np.zeros(n, np.int64)
    found = Found(
        np.empty(size), np.empty(size, np.int64), np.empty(size), np.empty((size, 2)), expected, totals, sizes
    )
    count = own.events[0]
    for i in range(n):
        before = count
        count = _solve(own, order, charges, first, i, cost, options, found, count)
        sizes[i] = count - before
    events = found.times[:count].copy(), found.types[:count].copy(), found.probability[:count].copy()
    return Found(*events, found.interval[:count].copy(), expected, totals, sizes)


@njit
def _solve(
    own: Arranged,
    order: Ints,
    charges: Charges,
    first_stream: int,
    i: int,
    cost: Cost,
    options: Options,
    found: Found,
    count: int,
) -> int:
    """Add the consensus of all stretches of stream i, by type and time, after ``count`` events; the new count.

    ``order`` sorts the times of each stream. Consensus events are charged by the segment they are in.
    """
    events, particles = slice(own.events[i], own.events[i + 1]), slice(own.particles[i], own.particles[i + 1])
    offsets = own.offsets[own.particles[i] + i : own.particles[i + 1] + i + 1]
    segments = slice(charges.offsets[first_stream + i], charges.offsets[first_stream + i + 1])
    weights = own.weights[particles]
    candidates = list_candidates(own.times[events], own.types[events], offsets, order[events])
    begin = offsets[:-1].copy()
    charge = _charge_candidates(candidates.times, charges.starts[segments], charges.values[segments], cost)
    first = offsets[0]  # a literal 0 would have all callees compiled once more
    while first < len(candidates.times):
        stop = next_cut(candidates, first, cost.insert + cost.delete)
        ensemble = restrict(candidates, weights, charge, begin, first, stop)
        decode = local_search(ensemble, cost, options.starts)
        decode, proven = exact_search(ensemble, cost, decode, options.tolerance, options.rounds)
        found.totals[i, 1] += proven
        before, count = count, _summarise(decode, ensemble, options.level, cost.delete, i, count, found)
        found.types[before:count] = candidates.types[first]
        first = stop
    return count


@njit
def _charge_candidates(times: Floats, segments: Floats, charges: Floats, cost: Cost) -> Floats:
    """The charge of a consensus event at each time [n], at most what makes sure that it never pays."""
    charge = np.zeros(len(times))
    if len(segments) == 0:
        return charge
    for j in range(len(times)):
        after = first_at_least(segments, times[j], 0, len(segments))
        while after < len(segments) and segments[after] == times[j]:
            after += 1
        charge[j] = min(charges[max(after - 1, 0)] * cost.delete, 2.0 * (cost.insert + cost.delete))
    return charge


@njit
def _tail(wanted: float, mass: float, charge: float) -> float:
    """The share to leave out at each end so that one more guess lies there with probability ``wanted``.

    The k-th of n independent guesses has k / (n + 1) of the next ones below it, and a share p of them ends at the
    (p n + 1/2)-th on average, so that p = wanted - (1/2 - wanted) / n. Here n = mass / charge, as a charge is C_delete
    over the number of guesses, and ``mass`` the share of them that have the event, times C_delete.
    """
    return max(wanted - (0.5 - wanted) * charge / mass, 0.0) if charge > 0.0 else wanted


@njit
def _believe(share: float, charge: float, delete: float) -> float:
    """The probability that one more guess has an event that a ``share`` of n = C_delete / charge guesses have.

    (share n + 1/2) / (n + 1), by Jeffreys' prior; the share itself where guesses are not said to be few.
    """
    few = charge / delete if charge > 0.0 else 0.0
    return (share + 0.5 * few) / (1.0 + few)


@njit
def _summarise(
    decode: Decode, ensemble: Ensemble, level: float, delete: float, stream: int, count: int, found: Found
) -> int:
    """Add the events of a decode of a stream after ``count`` others; the new count.

    Events that no particle has are left out: they are worth something only if C_delete = 0, and then nothing.
    """
    before = count
    mass = np.zeros(len(ensemble.candidates))
    for i in range(len(decode.times)):
        low, high, total = gather(i, ensemble, decode.match, mass)
        if high < 0:
            continue
        slack = 1e-12 * total  # cumulative sums of weights round
        charge = ensemble.charge[first_at_least(ensemble.candidates, decode.times[i], 0, len(mass))]
        tail = _tail(0.5 * (1.0 - level), total * delete, charge)
        earliest = quantile(mass, low, high, tail * total - slack)
        latest = quantile(mass, low, high, (1.0 - tail) * total - slack)
        for j in range(low, high + 1):
            found.expected[stream, 0] += mass[j] * abs(ensemble.candidates[j] - decode.times[i])
        clear(mass, low, high)
        found.totals[stream, 0] += charge
        found.times[count], found.probability[count] = decode.times[i], _believe(min(total, 1.0), charge, delete)
        found.interval[count, 0] = ensemble.candidates[earliest]
        found.interval[count, 1] = ensemble.candidates[latest]
        count += 1
    for m in range(len(ensemble.weights)):
        agreed = 0
        for i in range(len(decode.times)):
            agreed += decode.match[m, i] >= 0
        size = ensemble.offsets[m + 1] - ensemble.offsets[m]
        found.expected[stream, 1] += ensemble.weights[m] * (size - agreed)
        found.expected[stream, 2] += ensemble.weights[m] * (count - before - agreed)
    return count
