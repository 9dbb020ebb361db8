"""How far any decode, from wherever, is from the best one possible."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from numpy.typing import ArrayLike

from retrodict.decode.consensus import consensus
from retrodict.decode.cost import CostLike
from retrodict.decode.particles import prepare
from retrodict.decode.transport import distances
from retrodict.events.stream import EventStream


class Certificate(NamedTuple):
    """The risk of a decode, and what no decode can go below."""

    risk: float
    lower_bound: float

    @property
    def gap(self) -> float:
        """(risk - lower_bound) / risk: the decode is optimal up to this."""
        return (self.risk - self.lower_bound) / self.risk if self.risk > 0 else 0.0


def certify(
    stream: EventStream,
    particles: Sequence[EventStream],
    weights: ArrayLike | None,
    cost: CostLike,
    *,
    tolerance: float = 1e-9,
) -> Certificate:
    """The risk of ``stream`` under weighted particles, and a bound within ``tolerance`` of the least risk."""
    ensemble = prepare(particles, weights)
    risk = float(ensemble.weights @ distances([stream] * len(ensemble.streams), ensemble.streams, cost))
    best = consensus(ensemble.streams, ensemble.weights, cost, tolerance=tolerance)
    return Certificate(risk, min(best.lower_bound, risk))
