"""The exact search ends at one risk from any start, and one solve bounds the risk of a good decode."""

from __future__ import annotations

import numpy as np
import pytest

from retrodict.decode import Cost
from retrodict.decode.ensemble import Ensemble
from retrodict.decode.exact import exact_search
from retrodict.decode.local import align_all, local_search
from tests.decode.examples import random_stretch

ONE = Cost(1.0, 1.0)


def least_risk(ensemble: Ensemble, cost: Cost, start: np.ndarray) -> float:
    return exact_search(ensemble, cost, align_all(start, ensemble, cost), 1e-12, 100)[0].objective


@pytest.mark.parametrize("seed", range(10))
def test_one_solve_on_the_times_of_a_good_decode_gives_a_useful_bound(seed: int) -> None:
    ensemble = random_stretch(seed)
    decode = local_search(ensemble, ONE, 3)
    best = least_risk(ensemble, ONE, decode.times)
    same, lower = exact_search(ensemble, ONE, decode, np.inf, 1)
    assert np.array_equal(same.times, decode.times)
    assert 0.7 * best <= lower <= best + 1e-12


def test_exact_search_finds_the_same_risk_from_any_start() -> None:
    for seed in range(10):
        ensemble, rng = random_stretch(seed), np.random.default_rng(seed)
        starts = [ensemble.times[:0], np.sort(rng.choice(ensemble.candidates, 6)), ensemble.candidates]
        risks = [least_risk(ensemble, Cost(0.7, 0.4), start) for start in starts]
        assert risks == pytest.approx([risks[0]] * 3, rel=1e-11)
