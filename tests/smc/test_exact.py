"""Sequential Monte Carlo against exact answers: Poisson in closed form, Hawkes numerically exact."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest
import torch
from scipy import stats

from retrodict.events.stream import EventStream
from retrodict.events.stream_set import StreamSet
from retrodict.missingness import ByType
from retrodict.models import Hawkes, Poisson
from retrodict.models.simulate import simulate
from retrodict.models.start import StartAtom
from retrodict.proposals import Filtering, Smoothing
from retrodict.smc.impute import impute
from tests.checks import posterior_is_exact
from tests.conftest import each_engine, shared
from tests.smc.hawkes_as_neural import hawkes_as_neural
from tests.smc.hawkes_as_state_space import hawkes_as_state_space

RATES, RHO = [1.0, 0.5, 2.0], [0.5, 0.0, 1.0]


@each_engine
@pytest.mark.parametrize("sampler", ["thinning", "inversion"])
def test_poisson_weights_are_equal_and_the_evidence_is_exact(sampler, engine):
    model, mechanism = Poisson(RATES), ByType(RHO)
    observed, _ = mechanism.censor(simulate(model, 20, end=6.0, seed=1), seed=2)
    posterior = impute(observed, Filtering(model, mechanism), particles=50, sampler=sampler, engine=engine)
    np.testing.assert_allclose(posterior.all_weights, 1 / 50, rtol=0, atol=1e-6)
    expected = [
        sum(math.log(RATES[k] * (1 - RHO[k])) for _, k in stream)
        - 6.0 * sum(r * (1 - p) for r, p in zip(RATES, RHO, strict=True))
        for stream in observed
    ]
    np.testing.assert_allclose(posterior.log_evidence, expected, rtol=0, atol=1e-6)


@each_engine
@pytest.mark.parametrize("sampler", ["thinning", "inversion"])
def test_poisson_missing_events_are_poisson(sampler, engine):
    """Whatever was observed, missing events of type k are Poisson with rate rho_k lambda_k, uniform in time."""
    model, mechanism = Poisson(RATES), ByType(RHO)
    observed, _ = mechanism.censor(simulate(model, 4, end=3.0, seed=1), seed=2)
    posterior = impute(
        observed, Filtering(model, mechanism), particles=2000, resample=None, sampler=sampler, engine=engine
    )
    for k, mean in ((0, 1.5), (2, 6.0)):
        counts = posterior._counts(posterior.full, k, None, None).reshape(-1)
        top = int(mean + 4 * math.sqrt(mean))
        seen = np.bincount(np.minimum(counts, top), minlength=top + 1)
        pmf = stats.poisson.pmf(np.arange(top), mean)
        assert stats.chisquare(seen, np.append(pmf, 1 - pmf.sum()) * len(counts)).pvalue > 1e-3
    assert posterior.expected_count(1).max() == 0
    assert stats.kstest(posterior.event_times, stats.uniform(0, 3).cdf).pvalue > 1e-3


@each_engine
def test_a_missing_first_event_is_imputed_at_the_start(engine):
    """With an atom at the start: exact posterior probability of a hidden event there, and exact evidence."""
    model = Poisson([1.0, 0.5])
    model.start_atom = StartAtom(torch.tensor([0.2, 0.5, 0.3], dtype=torch.float64).log())
    mechanism = ByType([0.6, 0.9])
    observed = StreamSet(
        [EventStream([1.0], [0], end=2.0, id=i) for i in range(20)] + [EventStream([0.0], [1], end=2.0, id=99)],
        types=["a", "b"],
    )
    torch.manual_seed(0)
    smoothing = Smoothing(model, mechanism, 4, mixing=0, told=False)
    torch.nn.init.normal_(smoothing.start_readout)
    for proposal in (Filtering(model, mechanism), smoothing):
        posterior = impute(observed, proposal, particles=500, seed=3, engine=engine)
        rest = -2.0 * (1.0 * 0.4 + 0.5 * 0.1)
        total = 0.2 + 0.5 * 0.6 + 0.3 * 0.9
        evidence = np.exp(posterior.log_evidence)
        exact = math.exp(rest) * 0.4 * total
        assert abs(evidence[:20].mean() - exact) < 3.3 * evidence[:20].std() / math.sqrt(20) + 1e-9
        assert posterior.log_evidence[20] == pytest.approx(math.log(0.3 * 0.1) + rest, abs=0.05)
        at_start = posterior.probability("b", 0.0, 0.0)
        assert abs(at_start[:20].mean() - 0.27 / total) < 3.3 * at_start[:20].std() / math.sqrt(20)
        assert at_start[20] == 0


CASES = ["1_tiny1_rho_1type", "5_det_2types"]


def golden_case(name: str, runs: int = 24):
    case = json.loads(shared(f"golden/hawkes/{name}.json").read_text())
    model = Hawkes(case["model"]["mu"], case["model"]["A"], case["model"]["beta"])
    events = [(e["time"], e["type"]) for e in case["observed"]]
    times, types = (list(x) for x in zip(*events, strict=True))
    copies = StreamSet(
        [EventStream(times, types, end=case["horizon"][1], id=i) for i in range(runs)],
        types=[str(k) for k in range(case["num_types"])],
    )
    return model, ByType(case["missingness"]["rho"]), copies, case["posterior"]["exact"]


@each_engine
@pytest.mark.parametrize("form", ["hawkes", "scales", "neural", "state space"])
@pytest.mark.parametrize("sampler", ["thinning", "inversion"])
@pytest.mark.parametrize("kind", ["filtering", "smoothing"])
@pytest.mark.parametrize("name", CASES)
def test_hawkes_posteriors_are_the_exact_ones(name, kind, sampler, form, engine):
    """Evidence and expected counts by type and window, over 96 runs of 100 particles."""
    model, mechanism, observed, exact = golden_case(name, runs=96)
    if form == "neural":
        model = hawkes_as_neural(model)
    if form == "state space":
        model = hawkes_as_state_space(model)
    if form == "scales":  # the same process, and one scale that excites nothing
        parts = [share * model.excitation.detach() for share in (0.3, 0.0, 0.7)]
        decay = float(model.decay.detach().max())
        model = Hawkes(model.base.detach(), torch.stack(parts), [decay, 10 * decay, decay])
    proposal = Filtering(model, mechanism) if kind == "filtering" else _random_smoothing(model, mechanism)
    posterior = impute(observed, proposal, particles=100, seed=5, sampler=sampler, engine=engine)
    posterior_is_exact(posterior, model.num_types, exact)


def _random_smoothing(model, mechanism) -> Smoothing:
    torch.manual_seed(0)
    proposal = Smoothing(model, mechanism, 6, mixing=0, told=False)
    torch.nn.init.normal_(proposal.readout, std=0.3)
    return proposal


@each_engine
def test_a_type_that_happens_only_after_others(engine):
    """A base rate of zero, with a smoother: bounds stay numbers, and sampling ends."""
    model = Hawkes([0.4, 0.0], [[0.2, 0.6], [0.1, 0.2]], 2.0)
    torch.manual_seed(0)
    smoothing = Smoothing(model, ByType([0.0, 1.0]), 5, mixing=0, told=False)
    torch.nn.init.normal_(smoothing.readout, std=1.5)
    observed = StreamSet([EventStream([1.0, 2.0], [0, 0], end=3.0, id=i) for i in range(3)], types=["0", "1"])
    posterior = impute(observed, smoothing, particles=50, seed=1, engine=engine)
    assert np.isfinite(posterior.log_evidence).all()
    assert (posterior.event_times >= 1.0).all()
