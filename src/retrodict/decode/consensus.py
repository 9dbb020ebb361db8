"""Minimum Bayes risk decoding: the one stream with the least expected distance to the truth (section 4.2).

The particles are cut into stretches that do not interact (``ensemble.py``). On each, the paper's local search
(``local.py``) finds a good decode, and the exact search (``exact.py``) the best one and, as a by-product, a lower
bound on the risk of every decode (``bound.py``). Stretches are put together, and what the particles aligned to each
event say about it becomes its probability and its time interval. docs/consensus.md has the proofs.

>>> from retrodict.events.stream import EventStream
>>> particles = [EventStream([t], [0], end=10.0) for t in (4.0, 5.0, 5.5)] + [EventStream([], [], end=10.0)]
>>> decode = consensus(particles, [0.25, 0.25, 0.25, 0.25], cost=2.0)
>>> decode.stream.times, decode.probability, decode.gap < 1e-9
(array([5.]), array([0.75]), True)
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import numpy as np
from numba import njit
from numpy.typing import ArrayLike

from retrodict.decode.ensemble import Ensemble, check_particles, flatten, list_candidates, next_cut, restrict
from retrodict.decode.exact import exact_search
from retrodict.decode.kernels import Floats, Ints, entry_point
from retrodict.decode.local import Decode, clear, gather, local_search, quantile
from retrodict.decode.transport import Cost, CostLike, as_cost, distances
from retrodict.errors import DataError
from retrodict.events.stream import EventStream

Method = Literal["exact", "local"]


@dataclass(frozen=True)
class Consensus:
    """A decode, what it risks, and how far from optimal it can be at most.

    ``risk`` = C_insert * inserted + C_delete * deleted + moved, each the expectation under the particles; no
    decode has a risk below ``lower_bound``. ``probability`` [N] is the weight of the particles that have an
    event aligned to each consensus event, ``interval`` [N, 2] the weighted quantiles of where they have it;
    both are also columns of ``stream`` (probability, earliest, latest).
    """

    stream: EventStream
    cost: Cost
    risk: float
    lower_bound: float
    moved: float
    inserted: float
    deleted: float
    probability: Floats
    interval: Floats

    @property
    def gap(self) -> float:
        """(risk - lower_bound) / risk: zero for a proven optimum."""
        return Certificate(self.risk, self.lower_bound).gap


class Certificate(NamedTuple):
    """The risk of a decode, and what no decode can go below."""

    risk: float
    lower_bound: float

    @property
    def gap(self) -> float:
        """(risk - lower_bound) / risk: the decode is optimal up to this."""
        return (self.risk - self.lower_bound) / self.risk if self.risk > 0 else 0.0


def consensus(
    particles: Sequence[EventStream],
    weights: ArrayLike | None,
    cost: CostLike,
    method: Method = "exact",
    *,
    level: float = 0.9,
    tolerance: float = 1e-9,
    rounds: int = 100,
    starts: int = 3,
) -> Consensus:
    """The consensus of weighted particles (eq. decode); weights are scaled to sum to one (None: equal).

    ``exact`` finds the optimum, to a relative gap of ``tolerance`` or for at most ``rounds`` rounds a
    stretch; ``local`` is the paper's local search (Algorithm 3) from several ``starts``. ``level`` is
    that of the time intervals. The decode does not depend on the order of the particles.
    """
    options: dict[str, Any] = {"level": level, "tolerance": tolerance, "rounds": rounds, "starts": starts}
    return tradeoff(particles, weights, [cost], method, **options)[0]


def tradeoff(
    particles: Sequence[EventStream],
    weights: ArrayLike | None,
    costs: Iterable[CostLike],
    method: Method = "exact",
    *,
    level: float = 0.9,
    tolerance: float = 1e-9,
    rounds: int = 100,
    starts: int = 3,
) -> list[Consensus]:
    """One consensus for each cost: the trade-off between events got wrong and time moved (fig. eval-5)."""
    _check_options(method, level, tolerance, rounds, starts)
    if method == "exact":
        starts = 1
    else:
        tolerance, rounds = np.inf, 1  # one solve, for the bound alone
    streams, w = check_particles(particles, weights)
    events = flatten(streams)
    results = []
    for each in costs:
        cost = as_cost(each)
        found, lower = _solve(*events, w, cost, starts, float(tolerance), rounds, float(level))
        results.append(_assemble(streams, cost, found, lower))
    return results


def certify(
    stream: EventStream,
    particles: Sequence[EventStream],
    weights: ArrayLike | None,
    cost: CostLike,
    *,
    tolerance: float = 1e-9,
) -> Certificate:
    """The risk of ``stream`` under weighted particles, and a bound within ``tolerance`` of the least risk."""
    streams, w = check_particles(particles, weights)
    risk = float(w @ distances([stream] * len(streams), streams, cost))
    best = consensus(streams, w, cost, tolerance=tolerance)
    return Certificate(risk, min(best.lower_bound, risk))


def _check_options(method: str, level: float, tolerance: float, rounds: int, starts: int) -> None:
    if method not in ("exact", "local"):
        raise DataError(f"unknown method {method!r}", remedy='pass method="exact" or method="local"')
    if not 0 < level < 1:
        raise DataError(f"level is {level}", remedy="pass the coverage of the intervals, between 0 and 1")
    if not tolerance >= 0:
        raise DataError(f"tolerance is {tolerance}", remedy="pass a relative gap of zero or more")
    if rounds < 1 or starts < 1:
        raise DataError(f"rounds={rounds}, starts={starts}", remedy="pass at least 1 of each")


class Summary(NamedTuple):
    """The ``times`` [N], ``types`` [N], ``probability`` [N] and ``interval`` [N, 2] of the events of a decode.

    ``expected`` [3] is the time moved and the numbers of insertions and deletions (eq. decomp), weighted over
    particles.
    """

    times: Floats
    types: Ints
    probability: Floats
    interval: Floats
    expected: Floats


def _assemble(streams: list[EventStream], cost: Cost, found: Summary, lower: float) -> Consensus:
    """The decode as a stream in time order, with its risk and its bound."""
    order = np.argsort(found.times, kind="stable")
    probability, interval = found.probability[order], found.interval[order]
    stream = EventStream.trusted(
        found.times[order],
        found.types[order],
        min([s.start for s in streams]),
        max([s.end for s in streams]),
        streams[0].id,
        {"probability": probability, "earliest": interval[:, 0], "latest": interval[:, 1]},
    )
    moved, inserted, deleted = found.expected.tolist()
    risk = cost.insert * inserted + cost.delete * deleted + moved
    bound = min(max(lower, 0.0), risk)  # rounding may lift the bound above the risk in the last digits
    return Consensus(stream, cost, risk, bound, moved, inserted, deleted, probability, interval)


@entry_point
def _solve(
    times: Floats,
    types: Ints,
    offsets: Ints,
    order: Ints,
    weights: Floats,
    cost: Cost,
    starts: int,
    tolerance: float,
    rounds: int,
    level: float,
) -> tuple[Summary, float]:
    """The consensus of all stretches, by type and time, and a lower bound on the risk of any decode.

    Exact search follows the local search from ``starts`` starts; with an infinite ``tolerance`` it only adds
    the bound.
    """
    candidates = list_candidates(times, types, offsets, order)
    size = len(times)
    found = Summary(np.empty(size), np.empty(size, np.int64), np.empty(size), np.empty((size, 2)), np.zeros(3))
    begin = offsets[:-1].copy()
    first = count = offsets[0]  # a literal 0 would have all callees compiled once more
    lower = 0.0
    while first < len(candidates.times):
        stop = next_cut(candidates, first, cost.insert + cost.delete)
        ensemble = restrict(candidates, weights, begin, first, stop)
        decode = local_search(ensemble, cost, starts)
        decode, proven = exact_search(ensemble, cost, decode, tolerance, rounds)
        lower += proven
        before, count = count, _summarise(decode, ensemble, level, count, found)
        found.types[before:count] = candidates.types[first]
        first = stop
    events = found.times[:count], found.types[:count], found.probability[:count], found.interval[:count]
    return Summary(*events, found.expected), lower


@njit
def _summarise(decode: Decode, ensemble: Ensemble, level: float, count: int, found: Summary) -> int:
    """Add the events of a decode after ``count`` others; the new count.

    Events that no particle has are left out: they are worth something only if C_delete = 0, and then nothing.
    """
    before = count
    mass = np.zeros(len(ensemble.candidates))
    for i in range(len(decode.times)):
        low, high, total = gather(i, ensemble, decode.match, mass)
        if high < 0:
            continue
        slack = 1e-12 * total  # cumulative sums of weights round
        earliest = quantile(mass, low, high, 0.5 * (1.0 - level) * total - slack)
        latest = quantile(mass, low, high, 0.5 * (1.0 + level) * total - slack)
        for j in range(low, high + 1):
            found.expected[0] += mass[j] * abs(ensemble.candidates[j] - decode.times[i])
        clear(mass, low, high)
        found.times[count], found.probability[count] = decode.times[i], min(total, 1.0)
        found.interval[count, 0] = ensemble.candidates[earliest]
        found.interval[count, 1] = ensemble.candidates[latest]
        count += 1
    for m in range(len(ensemble.weights)):
        agreed = 0
        for i in range(len(decode.times)):
            agreed += decode.match[m, i] >= 0
        size = ensemble.offsets[m + 1] - ensemble.offsets[m]
        found.expected[1] += ensemble.weights[m] * (size - agreed)
        found.expected[2] += ensemble.weights[m] * (count - before - agreed)
    return count
