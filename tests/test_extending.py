"""The pieces of docs/extending.md keep the contracts, and impute as they should; test_pages.py runs the page itself."""

from __future__ import annotations

import math
import re
from typing import Any

import numpy as np
import pytest
import torch

import retrodict as rd
from retrodict.missingness import MECHANISMS
from retrodict.models import MODELS
from retrodict.proposals import PROPOSALS
from retrodict.smc.engines import ENGINES
from retrodict.smc.resampling import SCHEMES
from tests.checks import bounds_hold, gradients_are_those_of_finite_differences, weights_are_those_of_the_particles
from tests.missingness.contract import check_mechanism
from tests.missingness.examples import Example
from tests.models.contract import check_model
from tests.models.test_bounds import tightness
from tests.pages import DOCS, blocks

PAGE = DOCS / "extending.md"

pytestmark = pytest.mark.skipif(not PAGE.exists(), reason="no docs beside the tests")


def defined(name: str) -> Any:
    """A class or function that a block of the page defines."""
    code = [block.code for block in blocks(PAGE) if block.language == "python"]
    block = next(block for block in code if f"class {name}" in block or f"def {name}(" in block)
    assert len(block.splitlines()) <= 60
    scope: dict[str, Any] = {"__name__": "__main__"}
    with pytest.MonkeyPatch.context() as patch:  # what a block registers is taken out again
        patch.setattr("retrodict.smc.engines.ENGINES", dict(ENGINES))
        patch.setattr("retrodict.smc.resampling.SCHEMES", dict(SCHEMES))
        exec(block, scope)
    return scope[name]


def test_every_extension_point_of_the_table_has_a_section_with_code():
    text = PAGE.read_text(encoding="utf-8")
    points = re.findall(r"^\| \[(.*?)\]\(#", text, re.M)
    sections = dict(re.findall(r"^## (.*?)\n(.*?)(?=^## |\Z)", text, re.M | re.S))
    assert points == [heading.lower() for heading in sections if heading != "All together"]
    assert all("```python\n" in sections[point.capitalize()] for point in points)
    assert text.count("\n| ") == len(points) + 1  # no row without a section


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


def leaning(model: rd.Model, missing: rd.Missingness) -> rd.Proposal:
    torch.manual_seed(1)
    made = defined("Leaning")(model, missing, 0.7)
    with torch.no_grad():
        made.gain.normal_()
    return made


def test_the_proposal_gives_the_weights_that_it_should():
    model, missing = recovering(), rd.ByType([0.5, 0.3, 0.9])
    observed, _ = missing.censor(rd.simulate(model, 6, end=4.0, seed=1))
    made = leaning(model, missing)
    posterior = rd.impute(observed, made, particles=4, seed=2, resample=None)
    weights_are_those_of_the_particles(posterior, observed, made, nodes=8, atol=1e-6)


def test_the_bounds_and_gradients_of_the_proposal_are_right():
    model, missing = recovering(), rd.ByType(0.5)
    observed, hidden = missing.censor(rd.simulate(model, 6, end=4.0, seed=1))
    made = leaning(model, missing)
    bounds_hold(made, observed, rows=2_000, points=33, tightness=0.5)
    gradients_are_those_of_finite_differences(made, hidden, observed)


def test_training_the_proposal_brings_it_closer_and_it_is_loaded_as_it_was_saved(tmp_path, monkeypatch):
    """Events of type 0 make one of type 1 likely: before a 1 that was seen, 0s that were not are likelier."""
    model = rd.Hawkes([0.5, 0.05], [[0.0, 0.9], [0.0, 0.0]], 4.0).double()
    missing = rd.ByType([1.0, 0.0])
    streams = rd.simulate(model, 300, end=10.0, seed=0)
    monkeypatch.setitem(PROPOSALS, "leaning", defined("Leaning"))
    made = rd.fit(defined("Leaning")(model, missing), streams, epochs=5, progress=False, directory=tmp_path)
    observed, hidden = missing.censor(rd.simulate(model, 100, end=10.0, seed=1))
    gain = made.log_prob(hidden, observed) - rd.Filtering(model, missing).log_prob(hidden, observed)
    assert gain.mean() > 3 * gain.std() / 10
    assert made.gain[1, 0].item() > 0.5
    made.save(tmp_path / "saved")
    loaded = rd.load_proposal(tmp_path / "saved")
    torch.testing.assert_close(loaded.log_prob(hidden, observed), made.log_prob(hidden, observed))


def test_the_quadrature_rule_is_exact_where_it_should_be():
    """∫ x^(j/4) dx over [0, 1] with u^4 in the place of x is a polynomial of u."""
    positions, weights = defined("Graded")(8, 4.0).nodes((), torch.zeros(1, dtype=torch.float64))
    for j in range(12):
        assert float((weights * positions ** (j / 4)).sum()) == pytest.approx(4 / (j + 4), abs=1e-12)


def test_the_resampling_scheme_keeps_every_weight_on_average():
    scheme = defined("residual_systematic")
    generator = torch.Generator().manual_seed(0)
    weights = torch.rand(5, 7, generator=generator, dtype=torch.float64) ** 3
    weights = weights / weights.sum(1, keepdim=True)
    runs = 20_000
    u = torch.rand(runs, 7, generator=generator, dtype=torch.float64)
    for row in weights:
        parents = scheme(row.expand(runs, 7), u)
        children = torch.nn.functional.one_hot(parents, 7).sum(1).double()
        error = children.mean(0) - 7 * row
        assert (error.abs() <= 4 * children.std(0) / runs**0.5 + 1e-9).all()
        assert ((children - 7 * row).abs() < 2).all()


def test_the_engine_gives_what_the_reference_gives(monkeypatch):
    monkeypatch.setitem(ENGINES, "timed", defined("Timed")())
    model, missing = recovering(), rd.ByType(0.5)
    observed, _ = missing.censor(rd.simulate(model, 3, end=4.0, seed=1))
    proposal = rd.Filtering(model, missing)
    a, b = (rd.impute(observed, proposal, particles=20, engine=name) for name in ("timed", "torch"))
    np.testing.assert_array_equal(a.event_times, b.event_times)
    with pytest.raises(rd.ModelError, match="small runs"):
        rd.impute(observed, proposal, particles=40_000, engine="timed")
