"""Minimum Bayes risk decoding: the one stream with the least expected distance to the truth (section 4.2).

>>> from retrodict.events.stream import EventStream
>>> particles = [EventStream([t], [0], end=10.0) for t in (4.0, 5.0, 5.5)] + [EventStream([], [], end=10.0)]
>>> decode = consensus(particles, [0.25, 0.25, 0.25, 0.25], cost=2.0)
>>> decode.stream.times, decode.probability, decode.gap < 1e-9
(array([5.]), array([0.75]), True)
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from retrodict.decode.cost import Cost, CostLike, as_cost
from retrodict.decode.particles import Particles, prepare
from retrodict.decode.solve import solve_blocks
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
    probability: NDArray[np.float64]
    interval: NDArray[np.float64]

    @property
    def gap(self) -> float:
        """(risk - lower_bound) / risk: zero for a proven optimum."""
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
    return _decode(prepare(particles, weights), as_cost(cost), method, level, tolerance, rounds, starts)


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
    ensemble = prepare(particles, weights)
    return [_decode(ensemble, as_cost(c), method, level, tolerance, rounds, starts) for c in costs]


def _decode(
    particles: Particles, cost: Cost, method: str, level: float, tolerance: float, rounds: int, starts: int
) -> Consensus:
    _check_options(method, level, tolerance, rounds, starts)
    candidates, exact = particles.candidates, method == "exact"
    place, probability, interval, expected, lower = solve_blocks(
        candidates.times,
        candidates.types,
        candidates.position,
        particles.offsets,
        particles.weights,
        cost.insert,
        cost.delete,
        1 if exact else starts,
        float(tolerance) if exact else np.inf,
        rounds if exact else 1,
        float(level),
    )
    order = np.argsort(candidates.times[place], kind="stable")
    place, probability, interval = place[order], probability[order], interval[order]
    stream = EventStream.trusted(
        candidates.times[place],
        candidates.types[place],
        min([s.start for s in particles.streams]),
        max([s.end for s in particles.streams]),
        particles.streams[0].id,
        {"probability": probability, "earliest": interval[:, 0], "latest": interval[:, 1]},
    )
    moved, inserted, deleted = expected.tolist()
    risk = cost.insert * inserted + cost.delete * deleted + moved
    bound = min(max(lower, 0.0), risk)
    return Consensus(stream, cost, risk, bound, moved, inserted, deleted, probability, interval)


def _check_options(method: str, level: float, tolerance: float, rounds: int, starts: int) -> None:
    if method not in ("exact", "local"):
        raise DataError(f"unknown method {method!r}", remedy='pass method="exact" or method="local"')
    if not 0 < level < 1:
        raise DataError(f"level is {level}", remedy="pass the coverage of the intervals, between 0 and 1")
    if not tolerance >= 0:
        raise DataError(f"tolerance is {tolerance}", remedy="pass a relative gap of zero or more")
    if rounds < 1 or starts < 1:
        raise DataError(f"rounds={rounds}, starts={starts}", remedy="pass at least 1 of each")
