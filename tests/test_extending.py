"""The mechanism and the model of docs/extending.md keep the contracts, and impute as they should."""

from __future__ import annotations

import math
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import retrodict as rd
from retrodict.missingness import MECHANISMS
from retrodict.models import MODELS
from tests.checks import weights_are_those_of_the_particles
from tests.missingness.contract import check_mechanism
from tests.missingness.examples import Example
from tests.models.contract import check_model
from tests.models.test_bounds import tightness

PAGE = Path(__file__).resolve().parents[1] / "docs" / "extending.md"

pytestmark = pytest.mark.skipif(not PAGE.exists(), reason="no docs beside the tests")


def defined(name: str) -> Any:
    """A class that a block of the page defines."""
    blocks = re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    block = next(block for block in blocks if f"class {name}(" in block)
    assert len(block.splitlines()) <= 60
    scope: dict[str, Any] = {"__name__": "extending"}
    exec(block, scope)
    return scope[name]


def recovering() -> rd.Model:
    return defined("Recovering")([0.7, 1.5, 0.4], [0.9, 0.5, 0.2], 0.8)


def first_of_each_period(k: int, t: np.ndarray, stream: rd.EventStream) -> np.ndarray:
    """ρ of RateLimit(2, 1.0)."""
    times = stream.times - stream.start
    before = [np.sum((times < x) & (np.floor(times) == np.floor(x))) for x in t]
    return (np.array(before) >= 2).astype(float)


def test_the_mechanism_keeps_the_contract(monkeypatch):
    made = defined("RateLimit")
    monkeypatch.setitem(MECHANISMS, made.kind, made)
    check_mechanism(Example(made(2, 1.0), first_of_each_period, looks_back=True))


def test_the_mechanism_has_the_exact_evidence():
    """One event a period is kept: nothing is known of a period after it, and all of a period without one."""
    stream = rd.EventStream([0.3, 2.5], [0, 0], end=3.0)
    posterior = rd.impute(stream, rd.Filtering(rd.Poisson([0.5]), defined("RateLimit")(1, 1.0)), particles=300)
    exact = 2 * math.log(0.5) - 0.5 * (0.3 + 1.0 + 0.5)
    np.testing.assert_allclose(posterior.log_evidence, exact, rtol=0, atol=1e-9)
    times = posterior.event_times
    assert len(times) > 50
    assert (((times > 0.3) & (times < 1.0)) | (times > 2.5)).all()


def test_the_model_keeps_the_contract():
    check_model(recovering())


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_the_bounds_of_the_model_hold(dtype):
    assert (tightness(recovering().to(dtype), 20_000, seed=1) <= 1).all()


def test_the_model_is_fitted_saved_and_loaded(tmp_path, monkeypatch):
    made = recovering()
    monkeypatch.setitem(MODELS, made.kind, type(made))
    streams = rd.simulate(made, 200, end=20.0, seed=0)
    fitted = rd.fit(type(made), streams, epochs=30, directory=tmp_path, progress=False)
    assert fitted.log_likelihood(streams).sum() > made.log_likelihood(streams).sum() - 10
    loaded = rd.load_model(tmp_path)
    torch.testing.assert_close(loaded.log_likelihood(streams), fitted.log_likelihood(streams), rtol=1e-5, atol=1e-4)


@pytest.mark.parametrize("proposal", [rd.Filtering, rd.Smoothing])
def test_both_together_give_the_weights_that_they_should(proposal):
    torch.manual_seed(0)
    model, missing = recovering(), defined("RateLimit")(2, 1.0)
    observed, _ = missing.censor(rd.simulate(model, 6, end=4.0, seed=1))
    made = proposal(model, missing)
    posterior = rd.impute(observed, made, particles=4, seed=2, resample=None)
    assert len(posterior.event_times) > 0
    weights_are_those_of_the_particles(posterior, observed, made, nodes=8, atol=1e-6)
