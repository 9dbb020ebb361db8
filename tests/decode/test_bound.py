"""Any potentials whatever give a valid lower bound, and its proof can be checked by hand."""

from __future__ import annotations

import numpy as np
import pytest

from retrodict.decode import Cost
from retrodict.decode.bound import bound
from retrodict.decode.exact import exact_search
from retrodict.decode.local import align_all
from tests.decode.examples import random_stretch

COSTS = (Cost(0.3, 0.3), Cost(1.0, 0.4), Cost(0.5, 2.0))


@pytest.mark.parametrize("seed", range(10))
def test_arbitrary_potentials_bound_the_optimum_from_below(seed: int) -> None:
    ensemble, rng = random_stretch(seed), np.random.default_rng(seed)
    for cost in COSTS:
        nothing = align_all(ensemble.times[:0], ensemble, cost)
        best = exact_search(ensemble, cost, nothing, 1e-12, 100)[0].objective
        for spread in (0.1, 1.0, 10.0):
            found = bound(rng.normal(0, spread, len(ensemble.times)), ensemble, cost)
            assert found.lower <= best + 1e-12
            assert bound(found.potentials, ensemble, cost).price.min() >= -1e-12
            assert found.potentials.min() >= -cost.insert
            assert found.potentials.max() <= cost.delete


@pytest.mark.parametrize("seed", range(10))
def test_the_proof_keeps_the_rules_it_states(seed: int) -> None:
    """Each f_m is 1-Lipschitz, their weighted sum is nowhere negative at a candidate, and B is what they say."""
    ensemble, rng = random_stretch(seed), np.random.default_rng(seed)
    owner, times, weights = ensemble.owner, ensemble.times, ensemble.weights
    for cost in COSTS:
        lower, f, _ = bound(rng.normal(0, 1.0, len(times)), ensemble, cost)
        price = np.zeros(len(ensemble.candidates))
        for m, weight in enumerate(weights):
            own, at = f[owner == m], times[owner == m]
            assert (np.abs(own[:, None] - own) <= np.abs(at[:, None] - at) + 1e-12).all()
            extended = own + np.abs(ensemble.candidates[:, None] - at)
            price += weight * np.minimum(extended.min(axis=1, initial=np.inf), cost.delete)
        assert price.min() >= -1e-12
        assert lower == pytest.approx(-weights[owner] @ f)
