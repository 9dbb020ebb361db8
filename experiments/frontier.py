"""Pareto frontiers of edits against time moved, and whether one lies to the left of the other (figure eval-5)."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray


class Frontier(NamedTuple):
    """The lower left convex hull of some points, from left to right."""

    x: NDArray[np.float64]
    y: NDArray[np.float64]

    def best(self, slope: NDArray[np.float64]) -> NDArray[np.float64]:
        """The least ``slope`` x + y, for each slope: the distance at that cost."""
        return (slope[:, None] * self.x + self.y).min(1)


def frontier(x: NDArray[np.float64], y: NDArray[np.float64]) -> Frontier:
    """The frontier of points: going right it falls, ever less steeply."""
    kept: list[int] = []
    for i in np.lexsort((y, x)).tolist():
        if kept and y[i] >= y[kept[-1]]:
            continue
        while len(kept) > 1 and _above(x, y, kept[-2], kept[-1], i):
            kept.pop()
        kept.append(i)
    return Frontier(x[kept], y[kept])


def dominates(a: Frontier, b: Frontier, costs: NDArray[np.float64]) -> bool:
    """Whether ``a`` is at least as good as ``b`` for every price of an edit between the least and the greatest cost."""
    slopes = np.geomspace(costs.min(), costs.max(), 200)
    ours, theirs = a.best(slopes), b.best(slopes)
    return bool((ours <= theirs * (1 + 1e-12)).all())


def _above(x: NDArray[np.float64], y: NDArray[np.float64], i: int, j: int, k: int) -> bool:
    """Whether point j lies on or above the line from i to k."""
    return bool((x[j] - x[i]) * (y[k] - y[i]) <= (y[j] - y[i]) * (x[k] - x[i]))
