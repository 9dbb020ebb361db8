"""Any potentials whatever give a valid lower bound, and the flow's give a tight one."""

from __future__ import annotations

import numpy as np
import pytest

from retrodict.decode.certificate import bound, prices
from retrodict.decode.exact import exact_search
from retrodict.decode.local import local_search
from tests.decode.test_local import random_block


@pytest.mark.parametrize("seed", range(10))
def test_arbitrary_potentials_bound_the_optimum_from_below(seed: int) -> None:
    block, rng = random_block(seed), np.random.default_rng(seed)
    for insert, delete in ((0.3, 0.3), (1.0, 0.4), (0.5, 2.0)):
        best = exact_search(block, insert, delete, block.times[:0], 1e-12, 100)[1]
        for spread in (0.1, 1.0, 10.0):
            lower, feasible, _ = bound(rng.normal(0, spread, len(block.times)), block, insert, delete)
            assert lower <= best + 1e-12
            assert prices(feasible, block, insert, delete).min() >= -1e-12
            assert feasible.min() >= -insert
            assert feasible.max() <= delete


@pytest.mark.parametrize("seed", range(10))
def test_one_solve_on_the_times_of_a_good_decode_gives_a_useful_bound(seed: int) -> None:
    block = random_block(seed)
    decode, _ = local_search(block, 1.0, 1.0, 3)
    best = exact_search(block, 1.0, 1.0, decode, 1e-12, 100)[1]
    lower = exact_search(block, 1.0, 1.0, decode, 1.0, 1)[2]
    assert 0.7 * best <= lower <= best + 1e-12


def test_exact_search_finds_the_same_risk_from_any_start() -> None:
    for seed in range(10):
        block, rng = random_block(seed), np.random.default_rng(seed)
        starts = [block.times[:0], np.sort(rng.choice(block.candidates, 6)), block.candidates]
        risks = [exact_search(block, 0.7, 0.4, start, 1e-12, 100)[1] for start in starts]
        assert risks == pytest.approx([risks[0]] * 3, rel=1e-11)
