"""Any potentials whatever give a valid lower bound, and the flow's give a tight one."""

from __future__ import annotations

import numpy as np
import pytest

from retrodict.decode.aligned import align_all
from retrodict.decode.certificate import bound
from retrodict.decode.ensemble import Ensemble
from retrodict.decode.exact import exact_search, start_program
from retrodict.decode.flow import solve_flow
from retrodict.decode.local import local_search
from retrodict.errors import RetrodictError
from tests.decode.test_local import random_block


def least_risk(block: Ensemble, insert: float, delete: float, start: np.ndarray) -> float:
    decode = align_all(start, block, insert, delete)
    return exact_search(block, insert, delete, decode, 1e-12, 100)[0].risk


@pytest.mark.parametrize("seed", range(10))
def test_arbitrary_potentials_bound_the_optimum_from_below(seed: int) -> None:
    block, rng = random_block(seed), np.random.default_rng(seed)
    for insert, delete in ((0.3, 0.3), (1.0, 0.4), (0.5, 2.0)):
        best = least_risk(block, insert, delete, block.times[:0])
        for spread in (0.1, 1.0, 10.0):
            found = bound(rng.normal(0, spread, len(block.times)), block, insert, delete)
            assert found.lower <= best + 1e-12
            assert bound(found.potentials, block, insert, delete).price.min() >= -1e-12
            assert found.potentials.min() >= -insert
            assert found.potentials.max() <= delete


@pytest.mark.parametrize("seed", range(10))
def test_one_solve_on_the_times_of_a_good_decode_gives_a_useful_bound(seed: int) -> None:
    block = random_block(seed)
    decode = local_search(block, 1.0, 1.0, 3)
    best = least_risk(block, 1.0, 1.0, decode.times)
    same, lower = exact_search(block, 1.0, 1.0, decode, np.inf, 1)
    assert np.array_equal(same.times, decode.times)
    assert 0.7 * best <= lower <= best + 1e-12


def test_exact_search_finds_the_same_risk_from_any_start() -> None:
    for seed in range(10):
        block, rng = random_block(seed), np.random.default_rng(seed)
        starts = [block.times[:0], np.sort(rng.choice(block.candidates, 6)), block.candidates]
        risks = [least_risk(block, 0.7, 0.4, start) for start in starts]
        assert risks == pytest.approx([risks[0]] * 3, rel=1e-11)


def test_an_endless_solve_is_an_error() -> None:
    block = random_block(0)
    program = start_program(align_all(block.candidates, block, 0.7, 0.4), block, 0.7, 0.4, 1e15)
    state = program.number, program.level, program.flow
    with pytest.raises(RetrodictError, match="did not end"):
        solve_flow(program.chains, block, *state, 0.7, 0.4, 1e15, 0)
