"""Where past and future interact: the evidence stays unbiased and the posterior what it is."""

from __future__ import annotations

import numpy as np
import pytest
import torch

import retrodict as rd
from retrodict.proposals.smoothing import Mixing
from retrodict.smc import sampler
from retrodict.smc.engines import ENGINES
from retrodict.smc.options import Options
from retrodict.smc.propose import Ask
from retrodict.smc.sampler import SequentialMonteCarlo
from tests.checks import posterior_is_exact
from tests.conftest import each_engine, random_neural_hawkes, random_state_space
from tests.smc.test_exact import CASES, golden_case
from tests.smc.test_unbiased import MODEL, copies

MISSING = rd.ByType([0.8, 0.3])
MODELS = {
    "hawkes": MODEL,
    "neural": random_neural_hawkes(num_types=2, hidden_size=6, seed=3, spread=0.8).float(),
    "state space": random_state_space(num_types=2, size=6, seed=3).float(),
}


def random_mixing(model, mechanism, std: float = 0.4) -> rd.Smoothing:
    torch.manual_seed(3)
    proposal = rd.Smoothing(model, mechanism, 5, mixing=6, told=False)
    torch.nn.init.normal_(proposal.readout, std=0.3)
    for weight in (proposal.mix.past.weight, proposal.mix.future.weight):
        torch.nn.init.normal_(weight, std=2.0)
    torch.nn.init.normal_(proposal.mix.readout.weight, std=std)
    return proposal


@pytest.fixture(scope="module", params=list(MODELS))
def case(request) -> tuple[rd.Model, rd.EventStream, float, float]:
    """A model, a stream of four observed events, and its evidence with its standard error from 100,000 particles."""
    model = MODELS[request.param]
    stream = next(s for s in MISSING.censor(rd.simulate(model, 20, end=6.0, seed=4), seed=1)[0] if len(s) == 4)
    many = rd.impute(copies(stream, 20), rd.Filtering(model, MISSING), particles=5000, seed=77)
    values = np.exp(many.log_evidence)
    return model, stream, values.mean(), values.std() / np.sqrt(20)


@each_engine
@pytest.mark.parametrize("sampler", ["thinning", "inversion"])
@pytest.mark.parametrize("resample", [None, "multinomial", "systematic"])
def test_the_evidence_of_400_small_runs_averages_to_the_truth(resample, sampler, engine, case):
    model, stream, truth, error = case
    options = {"particles": 10, "seed": 6, "resample": resample, "sampler": sampler, "ess_threshold": 0.9, "islands": 1}
    options["engine"] = engine
    runs = rd.impute(copies(stream, 400), random_mixing(model, MISSING), **options)
    values = np.exp(runs.log_evidence)
    assert abs(values.mean() - truth) < 3 * np.hypot(values.std() / 20, error)
    if resample is not None:
        assert runs.diagnostics.resamplings.sum() > 0


@each_engine
@pytest.mark.parametrize("sign", [-1.0, 1.0])
def test_units_that_move_after_an_event_are_bounded_at_both_ends(sign, engine, case):
    """Units that see the past alone make λ^q rise or fall between events; a bound from one end would be too low."""
    model, stream, truth, error = case
    proposal = random_mixing(model, MISSING)
    with torch.no_grad():
        for weight in (proposal.readout, proposal.mix.future.weight, proposal.mix.past.bias):
            weight.zero_()
        proposal.mix.past.weight.fill_(1.0)
        proposal.mix.readout.weight.fill_(sign * 0.25)
    runs = rd.impute(
        copies(stream, 400), proposal, particles=10, seed=6, engine=engine, sampler="thinning", islands=1, resample=None
    )
    values = np.exp(runs.log_evidence)
    assert abs(values.mean() - truth) < 3 * np.hypot(values.std() / 20, error)


def test_a_bound_that_is_too_low_is_noticed(case, monkeypatch):
    """The test above can fail: bound what mixing adds by less than it adds."""
    model, stream, truth, _ = case
    monkeypatch.setattr(Mixing, "bound", lambda self, past, future: past[0].new_tensor([-1.0, -1.0]))
    runs = rd.impute(
        copies(stream, 400), random_mixing(model, MISSING), particles=10, seed=6, engine="torch", islands=1
    )
    values = np.exp(runs.log_evidence)
    assert abs(values.mean() - truth) > 5 * values.std() / 20


@each_engine
@pytest.mark.parametrize("sampler", ["thinning", "inversion"])
@pytest.mark.parametrize("name", CASES)
def test_hawkes_posteriors_are_the_exact_ones(name, sampler, engine):
    """Evidence and expected counts by type and window, over 96 runs of 100 particles."""
    model, mechanism, observed, exact = golden_case(name, runs=96)
    proposal = random_mixing(model, mechanism, std=0.2)
    posterior = rd.impute(observed, proposal, particles=100, seed=5, sampler=sampler, engine=engine)
    posterior_is_exact(posterior, model.num_types, exact)


@pytest.mark.parametrize("fault", ["drawn", "weighed"])
def test_rates_that_are_a_tenth_too_high_are_noticed(fault, monkeypatch):
    """The test above can fail: draw from, or weigh by, 1.1 times the rates."""
    if fault == "drawn":
        monkeypatch.setattr(
            sampler,
            "Ask",
            lambda rates, bound, *more: Ask(lambda t: 1.1 * rates(t), lambda a, b: 1.1 * bound(a, b), *more),
        )
    else:
        of_p = SequentialMonteCarlo.of_p
        monkeypatch.setattr(SequentialMonteCarlo, "of_p", lambda *given: 1.1 * of_p(*given))
    with pytest.raises(AssertionError):
        test_hawkes_posteriors_are_the_exact_ones(CASES[0], "thinning", "torch")


def test_no_engine_refuses_to_mix(monkeypatch):
    monkeypatch.setenv("TRITON_INTERPRET", "1")
    proposal = random_mixing(MODELS["neural"], MISSING)
    assert [engine.refuses(proposal, Options(5)) for engine in ENGINES.values()] == [None] * len(ENGINES)
    streams = rd.StreamSet([rd.EventStream([1.0], [0], end=2.0)], types=["0", "1"])
    assert len(rd.impute(streams, proposal, particles=5)) == 1
