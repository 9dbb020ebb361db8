"""Resampling schemes: M w children on average, whole shares kept where promised."""

from __future__ import annotations

import pytest
import torch

from retrodict.errors import ModelError
from retrodict.smc.resampling import SCHEMES, effective_size, find_scheme


@pytest.mark.parametrize("name", SCHEMES)
def test_children_are_proportional_to_weight(name):
    weights = torch.tensor([0.05, 0.0, 0.5, 0.2, 0.25, 0.0], dtype=torch.float64)
    u = torch.rand(20_000, 6, dtype=torch.float64, generator=torch.Generator().manual_seed(1))
    parents = SCHEMES[name](weights.expand(20_000, 6), u)
    counts = torch.stack([(parents == m).sum(1) for m in range(6)], 1).double()
    error = (counts.mean(0) - 6 * weights).abs()
    assert (error <= 4 * counts.std(0) / 20_000**0.5 + 1e-12).all()
    assert counts[:, weights == 0].sum() == 0
    if name != "multinomial":
        assert (counts[:, 2] >= 2).all()
    if name in ("systematic", "residual"):
        assert counts.std(0)[2] < 0.4


@pytest.mark.parametrize("name", SCHEMES)
def test_equal_weights_survive(name):
    weights = torch.full((50, 8), 1 / 8, dtype=torch.float64)
    u = torch.rand(50, 8, dtype=torch.float64, generator=torch.Generator().manual_seed(2))
    parents = SCHEMES[name](weights, u).sort(1).values
    if name != "multinomial":
        assert (parents == torch.arange(8)).all()


def test_effective_size():
    logs = torch.tensor([[0.0, 0.0, 0.0, 0.0], [0.0, -1e9, -1e9, -1e9], [-torch.inf] * 4], dtype=torch.float64)
    assert effective_size(logs).tolist() == [4.0, 1.0, 0.0]


def test_unknown_schemes_are_refused():
    assert find_scheme(None) is None
    with pytest.raises(ModelError, match="unknown resampling scheme"):
        find_scheme("bootstrap")
