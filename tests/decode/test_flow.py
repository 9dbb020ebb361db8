"""The minimum-cost flow solver agrees with a general-purpose one on arbitrary networks."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import linprog

from retrodict.decode.flow import make_arcs, minimise, set_arc, slope


def least_total(tail, head, offset, below, above, nodes: int) -> float:
    """min over heights of the sum of all terms, as a linear program in heights and the two parts of each term."""
    size = len(tail)
    incidence = np.zeros((size, nodes))
    incidence[np.arange(size), head] += 1
    incidence[np.arange(size), tail] -= 1
    equal = np.hstack([incidence, -np.eye(size), np.eye(size)])
    limits = [(None, None)] * nodes + [(0, None)] * (2 * size)
    return float(linprog(np.r_[np.zeros(nodes), above, below], A_eq=equal, b_eq=offset, bounds=limits).fun)


@pytest.mark.parametrize("seed", range(20))
def test_heights_are_optimal_and_their_flow_proves_it(seed: int) -> None:
    rng = np.random.default_rng(seed)
    nodes, size = 6, 14
    tail = rng.integers(nodes, size=size)
    head = (tail + rng.integers(1, nodes, size=size)) % nodes
    offset, below, above = rng.integers(-3, 4, size=size), rng.integers(0, 9, size=size), rng.integers(0, 9, size=size)
    arcs, height = make_arcs(size), np.zeros(nodes, np.int64)
    for a in range(size):
        set_arc(arcs, a, tail[a], head[a], offset[a], below[a], above[a])
        arcs.flow[a] = slope(-offset[a], 0, below[a], above[a])
    minimise(arcs, height, 1000)
    difference = height[head] - height[tail] - offset
    total = (above * np.maximum(difference, 0) + below * np.maximum(-difference, 0)).sum()
    assert total == pytest.approx(least_total(tail, head, offset, below, above, nodes))
    assert np.array_equal(np.bincount(head, arcs.flow, nodes), np.bincount(tail, arcs.flow, nodes))
    assert (arcs.flow[difference > 0] == above[difference > 0]).all()
    assert (arcs.flow[difference < 0] == -below[difference < 0]).all()
    assert ((-below <= arcs.flow) & (arcs.flow <= above)).all()
