"""The evidence is unbiased for every proposal, scheme and sampler; streams do not depend on their batch."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from retrodict.events.stream import EventStream
from retrodict.events.stream_set import StreamSet
from retrodict.missingness import ByType
from retrodict.models import Hawkes
from retrodict.models.quadrature import MonteCarlo
from retrodict.models.simulate import simulate
from retrodict.proposals import Filtering, Smoothing
from retrodict.smc.impute import impute
from tests.conftest import each_engine, random_neural_hawkes
from tests.smc.hawkes_as_neural import hawkes_as_neural
from tests.smc.hawkes_as_state_space import hawkes_as_state_space

MODEL = Hawkes([0.3, 0.2], [[0.2, 0.9], [0.1, 0.2]], 3.0)
MISSING = ByType([0.9, 0.1])


def copies(stream: EventStream, count: int) -> StreamSet:
    return StreamSet(
        [EventStream(stream.times, stream.types, end=stream.end, id=i) for i in range(count)], types=["0", "1"]
    )


@pytest.fixture(scope="module")
def stream() -> EventStream:
    return MISSING.censor(simulate(MODEL, 1, end=8.0, seed=4), seed=1)[0][0]


@pytest.fixture(scope="module")
def reference(stream) -> tuple[float, float]:
    """The evidence and its standard error from 100,000 particles."""
    many = impute(copies(stream, 20), Filtering(MODEL, MISSING), particles=5000, seed=77, engine="torch")
    values = np.exp(many.log_evidence)
    return values.mean(), values.std() / np.sqrt(20)


def proposals(model=MODEL) -> dict:
    torch.manual_seed(3)
    smoothing = Smoothing(model, MISSING, 5, mixing=0)
    torch.nn.init.normal_(smoothing.readout, std=0.4)
    return {"filtering": Filtering(model, MISSING), "smoothing": smoothing}


@each_engine
@pytest.mark.parametrize("sampler", ["thinning", "inversion"])
@pytest.mark.parametrize("resample", [None, "multinomial", "stratified", "systematic", "residual"])
@pytest.mark.parametrize("kind", ["filtering", "smoothing"])
def test_the_evidence_of_400_small_runs_averages_to_the_truth(kind, resample, sampler, engine, stream, reference):
    model = MODEL if engine == "torch" else hawkes_as_neural(MODEL)
    options = {"particles": 10, "seed": 6, "resample": resample, "sampler": sampler, "engine": engine, "islands": 1}
    runs = impute(copies(stream, 400), proposals(model)[kind], **options)
    values = np.exp(runs.log_evidence)
    error = np.hypot(values.std() / 20, reference[1])
    assert abs(values.mean() - reference[0]) < 3 * error
    if resample is not None:
        assert runs.diagnostics.resamplings.sum() > 0


@each_engine
@pytest.mark.parametrize("sampler", ["thinning", "inversion"])
@pytest.mark.parametrize("kind", ["filtering", "smoothing"])
def test_a_state_space_that_says_the_same_has_the_same_evidence(kind, sampler, engine, stream, reference):
    options = {"particles": 10, "seed": 6, "sampler": sampler, "engine": engine, "islands": 1}
    runs = impute(copies(stream, 400), proposals(hawkes_as_state_space(MODEL))[kind], **options)
    values = np.exp(runs.log_evidence)
    assert abs(values.mean() - reference[0]) < 3 * np.hypot(values.std() / 20, reference[1])


def test_leaving_rho_out_of_the_weight_is_noticed(stream, reference, monkeypatch):
    """The test above can fail: weigh observed events without their factor 1 - rho."""
    monkeypatch.setattr(torch, "log1p", torch.zeros_like)
    runs = impute(copies(stream, 400), proposals()["filtering"], particles=10, seed=6, engine="torch", islands=1)
    values = np.exp(runs.log_evidence)
    assert abs(values.mean() - reference[0]) > 5 * values.std() / 20


def test_monte_carlo_integrals_are_noisy_but_near():
    """The paper's Monte Carlo integrals: log weights scatter, more so with fewer points."""
    model, mechanism = random_neural_hawkes(), ByType(0.5)
    observed, _ = mechanism.censor(simulate(model, 10, end=4.0, seed=1), seed=1)
    proposal = Filtering(model, mechanism)
    exact = impute(observed, proposal, particles=300, seed=1).log_evidence
    errors = [
        np.abs(impute(observed, proposal, particles=300, seed=1, integral=MonteCarlo(n)).log_evidence - exact).mean()
        for n in (1, 20)
    ]
    assert errors[1] < errors[0]
    assert errors[1] < 0.5


@each_engine
@pytest.mark.parametrize("kind", ["filtering", "smoothing"])
def test_a_streams_particles_do_not_depend_on_its_batch(kind, engine):
    torch.manual_seed(1)
    model, mechanism = random_neural_hawkes(), ByType([0.5, 0.2, 1.0])
    if engine == "native":
        model = model.float()
    observed, _ = mechanism.censor(simulate(model, 64, end=3.0, seed=1), seed=1)
    proposal = Filtering(model, mechanism)
    if kind == "smoothing":
        proposal = Smoothing(model, mechanism, 6, mixing=0)
        torch.nn.init.normal_(proposal.readout)
    whole = impute(observed, proposal, particles=8, seed=2, engine=engine)
    for rows in (8, 56):
        other = impute(observed, proposal, particles=8, seed=2, rows=rows, engine=engine)
        np.testing.assert_array_equal(other.event_types, whole.event_types)
        np.testing.assert_allclose(other.event_times, whole.event_times, rtol=0, atol=1e-9)
        np.testing.assert_allclose(other.all_weights, whole.all_weights, rtol=0, atol=1e-9)
    backwards = impute(observed[::-1], proposal, particles=8, seed=2, engine=engine)
    for i in (0, 17, 63):
        for ours, theirs in zip(whole.particles(i), backwards.particles(63 - i), strict=True):
            np.testing.assert_allclose(ours.times, theirs.times, rtol=0, atol=1e-9)
    again = impute(observed, proposal, particles=8, seed=2, engine=engine)
    assert again.event_times.tobytes() == whole.event_times.tobytes()
    assert again.all_weights.tobytes() == whole.all_weights.tobytes()
