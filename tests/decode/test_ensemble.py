"""Particles are cut into stretches that do not interact, and equal particles merged."""

from __future__ import annotations

import numpy as np
import pytest

from retrodict.decode.ensemble import check_particles, next_cut, restrict
from tests.decode.examples import candidates_of, of_one_type, stream


def test_stretches_are_cut_at_long_gaps_and_merge_equal_particles() -> None:
    particles = [of_one_type(p) for p in ([0.0, 9.0], [1.0, 9.0], [1.0], [1.0, 9.5])]
    streams, weights = check_particles(particles, [0.1, 0.2, 0.3, 0.4])
    candidates = candidates_of(streams)
    begin, free = candidates.offsets[:-1].copy(), np.zeros(4)
    assert next_cut(candidates, 0, 2.0) == 2
    assert next_cut(candidates, 2, 2.0) == 4
    early = restrict(candidates, weights, free, begin, 0, 2)
    assert sorted(early.weights.tolist()) == pytest.approx([0.1, 0.9])
    late = restrict(candidates, weights, free, begin, 2, 4)
    assert sorted(late.weights.tolist()) == pytest.approx([0.3, 0.3, 0.4])
    assert next_cut(candidates, 0, 8.0) == 4


def test_candidates_are_distinct_and_sorted_by_type_and_time() -> None:
    particles = [stream([(1, 2.0), (0, 3.0)]), stream([]), stream([(0, 3.0), (0, 3.0), (1, 1.0)])]
    found = candidates_of(particles)
    assert found.types.tolist() == [0, 1, 1]
    assert found.times.tolist() == [3.0, 1.0, 2.0]
    assert found.offsets.tolist() == [0, 2, 2, 5]
    assert found.position.tolist() == [0, 2, 0, 0, 1]
    assert len(candidates_of([stream([])]).times) == 0
    assert next_cut(found, 0, 1e9) == 1
