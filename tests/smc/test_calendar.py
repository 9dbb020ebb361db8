"""Imputation with a model that has a calendar: exact posteriors, weights by other code, calibration, and Online."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from scipy import stats

import retrodict as rd
from retrodict.events.batch import make_batch
from retrodict.models.end import EndAtom
from retrodict.models.start import StartAtom
from retrodict.smc.engines import ENGINES
from retrodict.smc.options import Options
from tests.calendars import NIGHT, a_seasonal_model, some_covariates
from tests.conftest import CPU_ENGINES, REFERENCE_ONLY, each_engine

HOURS = 8.0
MECHANISMS = {
    "constant": rd.ByType([0.3, 0.0, 0.8]),
    "windows": rd.Windows([(1.0, 2.5), (5.0, 9.0)]) * rd.ByType([0.3, 0.1, 0.5]),
    "after": rd.After("1", 0.5, 0.7, 0.1) * rd.ByType([0.2, 0.1, 0.5]),
}
KINDS = ("poisson", "hawkes_scales", "neural_hawkes", "state_space")


def a_case(kind: str, mechanism: rd.Missingness, streams: int = 4, **more):
    model = a_seasonal_model(kind, rate=0.6, **more)
    model = model.float() if kind in ("neural_hawkes", "state_space") else model
    complete = rd.simulate(model, streams, end=HOURS, seed=1, start=NIGHT)
    return model, complete, mechanism.censor(complete, seed=1)[0]


def exact_poisson(model: rd.Model, mechanism: rd.Missingness, observed: rd.StreamSet):
    """log evidence [N], and expected missing events [K]: those of type k are Poisson with rate ρ_k(t) λ_k(t)."""
    batch, bound = make_batch(observed, dtype=torch.float64), mechanism.on(observed)
    context = bound.contexts(batch)
    edges = torch.tensor([0.0, 1.0, 1.5, 2.5, 4.0, 5.0, 14.0, 20.0]).double().clamp(max=HOURS).unique()
    nodes, weights = rd.GaussLegendre(40).nodes((), batch.durations)
    times = (edges[:-1, None] + edges.diff()[:, None] * nodes).flatten().expand(len(observed), -1)
    whole = rd.missingness.base.Context(context.start[:, :1], context.stream[:, :1], None, batch.durations[:, None])
    rho = bound.rates(times, whole).double()
    rates = (model.rates * model.calendar.factor(times, batch.starts[:, None])).detach()
    rates = rates * (edges.diff()[:, None] * weights).flatten()[:, None]
    seen = bound.rates(batch.times, whole).double()
    logs = ((1 - seen) * model.rates * model.calendar.factor(batch.times, batch.starts[:, None])).detach().log()
    own = torch.where(batch.mask, logs.gather(2, batch.types[..., None])[..., 0], 0.0).sum(1)
    return (own - ((1 - rho) * rates).sum((1, 2))).numpy(), (rho * rates).sum(1).mean(0).numpy()


@each_engine
@pytest.mark.parametrize("sampler", ["thinning", "inversion"])
@pytest.mark.parametrize("name", ["constant", "windows"])
def test_missing_events_of_a_poisson_process(name, sampler, engine):
    """The filter's weights are all equal, and its counts those of a Poisson process of rate ρ_k(t) λ_k(t)."""
    model, _, observed = a_case("poisson", MECHANISMS[name])
    log_evidence, counts = exact_poisson(model, MECHANISMS[name], observed)
    M = 1000 if engine == "native" else 60
    filtering = rd.Filtering(model, MECHANISMS[name])
    posterior = rd.impute(observed, filtering, particles=M, seed=0, engine=engine, sampler=sampler)
    atol = 1e-5 if sampler == "thinning" else 0.05  # an interpolant needs weights
    np.testing.assert_allclose(posterior.log_evidence, log_evidence, rtol=0, atol=atol)
    for k in range(3):
        error = 3.3 * np.sqrt(max(counts[k], 1e-12) / (M * len(observed)))
        assert abs(posterior.expected_count(k).mean() - counts[k]) <= 1.2 * error


@pytest.mark.parametrize("engine", CPU_ENGINES)
@pytest.mark.parametrize("kind", [*KINDS, *REFERENCE_ONLY])
@pytest.mark.parametrize("name", MECHANISMS)
def test_log_weights_are_those_of_the_particles(name, kind, engine):
    """log p(x, z) + log p_miss - log q(z | x), by the likelihoods of model and proposal, with covariates that jump."""
    if engine == "native" and kind in REFERENCE_ONLY:
        pytest.skip("the torch engine alone takes them")
    model, _, observed = a_case(kind, MECHANISMS[name], 1, covariates=some_covariates())
    proposal: rd.Proposal = rd.Filtering(model, MECHANISMS[name])
    if kind != "poisson":
        torch.manual_seed(5)
        proposal = rd.Smoothing(model, MECHANISMS[name], 6, 3)
        torch.nn.init.normal_(proposal.readout, std=0.3)
    M, integral = 2, rd.GaussLegendre(30)
    posterior = rd.impute(observed, proposal, particles=M, seed=0, engine=engine, resample=None, integral=integral)
    logs = np.log(posterior.all_weights * M) + posterior.log_evidence[:, None]
    for m in range(M):
        own = [posterior.particles(i)[m] for i in range(len(observed))]
        drawn = rd.StreamSet(own, types=observed.types, axis=observed.axis)
        complete, _ = rd.combine(observed, drawn)
        expected = model.log_likelihood(complete, integral=integral).double()
        expected = expected + proposal.missingness.log_prob(observed, drawn)
        expected = expected - proposal.log_prob(drawn, observed, integral=integral)
        np.testing.assert_allclose(logs[:, m], expected.detach(), rtol=0, atol=3e-3 if kind in KINDS[2:] else 3e-4)


@each_engine
def test_the_evidence_is_unbiased_and_engines_agree(engine):
    """With resampling, few particles and many runs: the mean of the evidence is that of many particles."""
    model, _, observed = a_case("hawkes_scales", MECHANISMS["windows"], 1)
    filtering = rd.Filtering(model, MECHANISMS["windows"])
    best = rd.impute(observed, filtering, particles=20_000, seed=9, engine="native").log_evidence[0]
    own = observed[0]
    runs = [rd.EventStream(own.times, own.types, start=own.start, end=own.end, id=i) for i in range(300)]
    many = rd.StreamSet(runs, types=observed.types, axis=observed.axis)
    evidence = np.exp(rd.impute(many, filtering, particles=8, seed=1, engine=engine).log_evidence - best)
    assert abs(evidence.mean() - 1) < 3.3 * evidence.std() / np.sqrt(len(runs)) + 0.01


def test_ranks_of_the_truth_are_uniform():
    """Calibration: numbers of missing events, in all and before clocks are changed, and the first one's time."""
    model, mechanism, draws = a_seasonal_model("hawkes", rate=0.6), rd.ByType(0.5), 9
    complete = rd.simulate(model, 200, end=6.0, seed=4, start=NIGHT)
    observed, truth = mechanism.censor(complete, seed=4)
    posterior = rd.impute(observed, rd.Filtering(model, mechanism), particles=200, seed=4)
    drawn = posterior.draws(draws, seed=4)
    generator = np.random.default_rng(0)

    def facts(stream: rd.EventStream) -> list[float]:
        since = stream.times - stream.start
        return [len(since), (since < 4).sum(), (stream.types == 1).sum(), since[0] if len(since) else 6.0]

    ranks = np.zeros((len(truth), 4), dtype=int)
    for i in range(len(truth)):
        actual, others = np.array(facts(truth[i])), np.array([facts(d[i]) for d in drawn])
        ranks[i] = (others < actual).sum(0) + generator.integers(0, (others == actual).sum(0) + 1)
    for own in ranks.T:
        assert stats.chisquare(np.bincount(own, minlength=draws + 1)).pvalue > 1e-3


@each_engine
def test_atoms_at_both_ends(engine):
    """A missing first or last event has no density, and a last one a type in proportion to λ_k(T) with its factor."""
    model = a_seasonal_model("poisson", rate=0.5)
    model.start_atom = StartAtom(torch.tensor([0.4, 0.2, 0.1, 0.3], dtype=torch.float64).log())
    model.end_atom = EndAtom.of_counts([0.1, 0.2, 0.3, 0.5], model)
    complete = rd.simulate(model, 120, seed=0, start=NIGHT)
    mechanism = rd.ByType(0.5)
    observed, truth = mechanism.censor(complete, seed=1)
    posterior = rd.impute(observed, rd.Filtering(model, mechanism), particles=120, seed=0, engine=engine)
    for k in range(3):
        off = posterior.expected_count(k) - np.bincount(
            truth.stream_of_event[truth.event_types == k], minlength=len(truth)
        )
        assert abs(off.mean()) < 3.3 * off.std() / np.sqrt(len(off))


@each_engine
def test_online_agrees(engine):
    """Fed event by event, a stream has the evidence that it has at once, and a forecast follows the hours."""
    model, _, observed = a_case("poisson", MECHANISMS["constant"], 2)
    online = rd.Online(
        rd.Filtering(model, MECHANISMS["constant"]), lag=3.0, particles=100, axis=observed.axis, engine=engine
    )
    own = observed[0]
    online.feed({"a": []}, until=own.start + 1.0, start=own.start)
    for time, kind in zip(own.times, own.types, strict=True):
        if time > own.start + 1.0:
            online.feed({"a": [(float(time), int(kind))]})
    online.feed({"a": []}, until=own.end)
    kept = rd.EventStream(own.times[own.times > own.start + 1.0], own.types[own.times > own.start + 1.0],
                          start=own.start, end=own.end, id="a")  # fmt: skip
    log_evidence, _ = exact_poisson(
        model, MECHANISMS["constant"], rd.StreamSet([kept], types=observed.types, axis=observed.axis)
    )
    np.testing.assert_allclose(online.posterior().log_evidence, log_evidence, rtol=0, atol=1e-4)
    since = torch.linspace(0, 4, 401, dtype=torch.float64) + HOURS
    start = torch.as_tensor(observed.starts[:1] + observed.axis.since_1970)
    rates = (model.rates * model.calendar.factor(since, start)).detach()
    wanted = float(torch.trapezoid(rates.sum(-1), since))
    found = float(online.forecast(ahead=4.0).complete.expected_count()[0])
    assert abs(found - wanted) < 3.3 * np.sqrt(wanted / 100)


def test_triton_refuses_in_words():
    model = a_seasonal_model("neural_hawkes").float()
    words = ENGINES["triton"].refuses(rd.Filtering(model, rd.ByType(0.5)), Options(10, None))
    assert "calendar" in words
