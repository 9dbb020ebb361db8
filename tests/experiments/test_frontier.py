"""Pareto frontiers: the lower left hull, and who lies to the left."""

from __future__ import annotations

import numpy as np

from experiments.frontier import dominates, frontier

COSTS = np.array([0.1, 10.0])


def test_points_inside_are_left_out():
    edge = frontier(np.array([0.0, 1.0, 2.0, 1.5, 3.0]), np.array([4.0, 1.0, 0.5, 3.0, 0.6]))
    assert edge.x.tolist() == [0.0, 1.0, 2.0]
    assert edge.y.tolist() == [4.0, 1.0, 0.5]


def test_a_bulge_is_cut_off():
    edge = frontier(np.array([0.0, 1.0, 2.0]), np.array([2.0, 1.5, 0.0]))
    assert edge.x.tolist() == [0.0, 2.0]


def test_the_least_distance_at_each_price():
    edge = frontier(np.array([0.0, 1.0, 2.0]), np.array([4.0, 1.0, 0.0]))
    np.testing.assert_allclose(edge.best(np.array([0.5, 2.0, 4.0])), [1.0, 3.0, 4.0])


def test_one_dominates_the_other_or_they_cross():
    x, y = np.array([0.0, 1.0, 2.0]), np.array([4.0, 1.0, 0.0])
    better, same = frontier(0.9 * x, 0.9 * y), frontier(x, y)
    assert dominates(better, same, COSTS)
    assert dominates(same, same, COSTS)
    assert not dominates(same, better, COSTS)
    crossing = frontier(0.5 * x, 2 * y)
    assert not dominates(crossing, same, COSTS)
    assert not dominates(same, crossing, COSTS)
