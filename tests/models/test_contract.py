"""Every model keeps the contract of ``contract.py``; rules of integration are unbiased."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from retrodict.events.batch import make_batch
from retrodict.models.quadrature import GaussLegendre, MonteCarlo, Stratified
from retrodict.models.simulate import simulate
from tests.conftest import KINDS, example_model
from tests.models.contract import CHECKS, random_state


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
def test_every_model(check, kind):
    check(example_model(kind))


@pytest.mark.parametrize("kind", [kind for kind in KINDS if not kind.startswith(("state_space", "nonlinear"))])
def test_feature_ranges_are_attained(kind):
    """Features that rise or fall between events; units of a state space and sums of both signs may do both."""
    model = example_model(kind)
    state = random_state(model, 500, 4, torch.Generator().manual_seed(2))
    start, length = state.time + 0.1, torch.rand(500, dtype=torch.float64)
    times = start[:, None] + length[:, None] * torch.linspace(0, 1, 9, dtype=torch.float64)
    low, _ = model.feature_range(state, start, start + length)
    torch.testing.assert_close(model.features(state, times).amin(1), low, rtol=0, atol=1e-12)


def test_monte_carlo_integral_is_unbiased():
    model = example_model("neural_hawkes")
    batch = make_batch(simulate(model, 4, end=6.0, seed=7), dtype=torch.float64)
    generator = torch.Generator().manual_seed(0)
    with torch.no_grad():
        exact = model.batch_log_likelihood(batch, GaussLegendre(20))
        draws = torch.stack([model.batch_log_likelihood(batch, MonteCarlo(1, generator)) for _ in range(2000)])
    error = (draws.mean(0) - exact) / (draws.std(0) / 2000**0.5)
    assert error.abs().max() < 3.5
    assert draws.std(0).min() > 1e-3


def test_stratified_points_are_unbiased_with_less_noise():
    generator, like = torch.Generator().manual_seed(3), torch.zeros((), dtype=torch.float64)
    estimates = {}
    for rule in (Stratified(4, generator), MonteCarlo(4, generator)):
        points, weights = rule.nodes((20_000,), like)
        estimates[type(rule)] = (points.exp() * weights).sum(-1)
    points = Stratified(4, generator).nodes((50,), like)[0]
    assert torch.equal((points * 4).long(), torch.arange(4).expand(50, 4))
    ours, plain = estimates[Stratified], estimates[MonteCarlo]
    assert abs(ours.mean() - (np.e - 1)) < 3 * ours.std() / 20_000**0.5
    assert ours.std() < 0.3 * plain.std()
