"""Shared pieces of the tests: where golden numbers and real streams may lie, and small random models."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
import torch

from retrodict.models import Hawkes, Model, NeuralHawkes, Poisson
from retrodict.smc.engines import ENGINES

# Small models gain nothing from more threads, and waiting threads are very slow on a busy machine.
torch.set_num_threads(1)
os.environ["OMP_NUM_THREADS"] = "1"

SHARED = Path(__file__).resolve().parents[1].parent / "shared"


def shared(path: str) -> Path:
    """A file of the shared folder beside the checkout; skips the test where it is absent."""
    found = SHARED / path
    if not found.exists():
        pytest.skip(f"no {path} beside the checkout")
    return found


def random_neural_hawkes(num_types: int = 3, hidden_size: int = 8, seed: int = 0, spread: float = 1.0) -> Model:
    """The paper's synthetic recipe: all parameters uniform in [-spread, spread], scales 1, float64."""
    generator = torch.Generator().manual_seed(seed)
    model = NeuralHawkes(num_types, hidden_size, time_scale=1.0).double()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.uniform_(-spread, spread, generator=generator)
        model.log_scale.zero_()
    return model


def example_model(kind: str) -> Model:
    """A small float64 model of each kind."""
    if kind == "poisson":
        return Poisson([0.7, 1.5, 0.3]).double()
    if kind == "hawkes":
        excitation = [[0.3, 0.2, 0.0], [0.1, 0.2, 0.3], [0.4, 0.0, 0.1]]
        return Hawkes([0.5, 0.3, 0.2], excitation, [1.5, 0.8, 3.0]).double()
    return random_neural_hawkes()


KINDS = ("poisson", "hawkes", "neural_hawkes")

_not_compiled = pytest.mark.skipif(
    ENGINES["native"].unavailable() is not None, reason="the native engine was not compiled"
)
CPU_ENGINES = ("torch", pytest.param("native", marks=_not_compiled))
each_engine = pytest.mark.parametrize("engine", CPU_ENGINES)
