"""Bounds are never exceeded: 100,000 random (state, interval) pairs for each model that needs one."""

from __future__ import annotations

import pytest
import torch

from retrodict.models import Model
from tests.conftest import KINDS, example_model, random_neural_hawkes, random_state_space
from tests.models.contract import random_state

PAIRS = 100_000
NEURAL = ("neural_hawkes", "state_space", "state_space_layers")
TIGHT = {**dict.fromkeys(NEURAL, 0.5), "nonlinear_hawkes": 0.9}  # where intensities may rise and fall in an interval
LARGER = {
    "neural_hawkes": lambda: random_neural_hawkes(num_types=4, hidden_size=64, seed=5, spread=0.5),
    "state_space": lambda: random_state_space(num_types=4, size=32, layers=3, seed=5),
}


def tightness(model: Model, pairs: int, seed: int) -> torch.Tensor:
    """max over the interval of λ_k divided by its bound, one per (pair, type)."""
    generator = torch.Generator().manual_seed(seed)
    state = random_state(model, pairs, 5, generator)
    start = state.time + torch.rand(pairs, generator=generator, dtype=torch.float64)
    length = 3 * torch.rand(pairs, generator=generator, dtype=torch.float64) ** 3
    grid = torch.linspace(0, 1, 17, dtype=torch.float64)
    with torch.no_grad():
        bound = model.bound(state, start, start + length)
        rates = model.intensity(state, start[:, None] + length[:, None] * grid)
    assert bound.shape == (pairs, model.num_types)
    return rates.amax(1) / bound


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("kind", KINDS)
def test_no_violation_in_100_000_pairs(kind, dtype, record_property):
    ratio = tightness(example_model(kind).to(dtype), PAIRS, seed=1)
    record_property("mean_tightness", float(ratio.mean()))
    assert (ratio <= 1).all()
    assert ratio.mean() > TIGHT.get(kind, 0.999)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("kind", LARGER)
def test_no_violation_for_a_larger_network(kind, dtype):
    model = LARGER[kind]().to(dtype)
    assert (tightness(model, 20_000, seed=2) <= 1).all()


@pytest.mark.parametrize("kind", TIGHT)
def test_an_interval_of_length_zero_has_the_intensity_as_its_bound(kind):
    model = example_model(kind)
    state = random_state(model, 100, 4, torch.Generator().manual_seed(3))
    at = state.time + 0.3
    torch.testing.assert_close(model.bound(state, at, at), model.intensity(state, at), rtol=1e-12, atol=1e-12)
