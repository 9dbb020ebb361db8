"""Minimum Bayes risk decoding: the one stream with the least expected distance to the truth (section 4.2).

``sets.py`` decodes any number of streams; here is the same for one list of particles, and a certificate for any answer.

>>> from retrodict.events.stream import EventStream
>>> particles = [EventStream([t], [0], end=10.0) for t in (4.0, 5.0, 5.5)] + [EventStream([], [], end=10.0)]
>>> decode = consensus(particles, [0.25, 0.25, 0.25, 0.25], cost=2.0)
>>> decode.stream.times, decode.probability, decode.gap < 1e-9
(array([5.]), array([0.75]), True)
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from retrodict.decode.ensemble import check_particles, flatten, own_particles
from retrodict.decode.flat import Ensembles, check_charges
from retrodict.decode.kernels import Floats
from retrodict.decode.sets import Decodes, Method, check_options, decode_checked
from retrodict.decode.transport import Cost, CostLike, as_cost, distances
from retrodict.events.stream import EventStream


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
    options = check_options(method, level, tolerance, rounds, starts)
    streams, w = own_particles(particles, weights)
    prices = [as_cost(cost) for cost in costs]
    ensemble = Ensembles(*flatten(streams), w[None])
    decodes = decode_checked(ensemble, prices, check_charges(None, 1), options, threads=1)
    return [_assemble(streams, *pair) for pair in zip(prices, decodes, strict=True)]


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


def _assemble(streams: list[EventStream], cost: Cost, found: Decodes) -> Consensus:
    """The decode of one stream, with its risk and its bound."""
    columns = {"probability": found.probability, "earliest": found.earliest, "latest": found.latest}
    start, end = min([s.start for s in streams]), max([s.end for s in streams])
    stream = EventStream.trusted(found.times, found.types, start, end, streams[0].id, columns)
    interval = np.stack([found.earliest, found.latest], axis=1)
    risk, lower, moved, inserted, deleted = (
        float(of[0]) for of in (found.risk, found.lower_bound, found.moved, found.inserted, found.deleted)
    )
    return Consensus(stream, cost, risk, lower, moved, inserted, deleted, found.probability, interval)
