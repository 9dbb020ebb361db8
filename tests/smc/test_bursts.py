"""Streams whose kernels decay 10,000 times faster than the mean gap: integrals, log weights and evidence are right."""

import numpy as np
import pytest
import torch

import retrodict as rd
from retrodict.events.batch import iterate_batches
from retrodict.models.quadrature import GaussLegendre, Speeds, count_panels, grade
from tests.conftest import each_engine
from tests.smc.hawkes_as_neural import hawkes_as_neural
from tests.smc.hawkes_as_state_space import hawkes_as_state_space

FAST = rd.Hawkes([0.1, 0.15], [[[0.1, 0.2], [0.1, 0.1]], [[0.2, 0.1], [0.1, 0.2]]], [1e4, 1.0])
MISSING = rd.ByType([0.5, 0.3])
PLAIN = GaussLegendre(8, graded=False)


def observed_streams(count, end, seed=0):
    return MISSING.censor(rd.simulate(FAST, count, end=end, seed=seed), seed=seed)[0]


def log_weights(observed, proposal, **options):
    """Unnormalised log weights of the same particles whatever the rule: without resampling thinning draws no others."""
    posterior = rd.impute(observed, proposal, particles=10, resample=None, sampler="thinning", **options)
    return np.log(posterior.all_weights) + posterior.log_evidence[:, None]


def far_future(model, missing):
    """A smoother that sees the next observed event come, on many scales."""
    torch.manual_seed(0)
    smoother = rd.Smoothing(model, missing, hidden_size=8)
    with torch.no_grad():
        smoother.lstm.bias[-8:] = torch.logspace(0, 3, 8)
        smoother.readout.mul_(5)
    return smoother


@pytest.mark.parametrize("rate", [1.0, 30.0, 1e3, 1e5, 1e8])
@pytest.mark.parametrize("count", [4, 8, 16])
def test_panels_keep_the_stated_error_at_any_speed(rate, count):
    """∫ rate exp(-rate t) from 0 to 1, an event in all."""
    rule, zero, one = GaussLegendre(count), torch.zeros(1, dtype=torch.float64), torch.ones(1, dtype=torch.float64)
    speeds = Speeds(torch.tensor([[rate]]).double(), one[:, None])
    breaks = grade(rule, speeds, zero, one, None)
    nodes = torch.zeros(1, 0).double() if breaks is None else breaks
    edges = torch.cat([zero[:, None], nodes, one[:, None]], 1)[0]
    points, weights = rule.nodes((), edges)
    widths = edges.diff()[:, None]
    area = (rate * torch.exp(-rate * (edges[:-1, None] + widths * points)) * widths * weights).sum()
    assert abs(float(area) + np.expm1(-rate)) < 3 * rule.error


def test_few_panels_where_little_or_nothing_is_fast():
    length = torch.ones(3, dtype=torch.float64)
    rates = torch.tensor([[1.0], [1e6], [1e6]]).double()
    masses = torch.tensor([[1.0], [1e-9], [1.0]]).double()
    counts = count_panels(GaussLegendre(8), Speeds(rates, masses), length)
    assert counts is not None
    assert counts[:2].tolist() == [1, 1]
    assert counts[2] > 4
    assert count_panels(PLAIN, Speeds(rates, masses), length) is None
    assert count_panels(rd.MonteCarlo(4), Speeds(rates, masses), length) is None


@pytest.mark.parametrize("written_as", [hawkes_as_neural, hawkes_as_state_space])
def test_a_model_has_the_likelihood_of_the_hawkes_process_that_it_is(written_as):
    """One kernel, 10,000 times faster than the mean gap; by eight plain nodes the likelihood is off by 1 and more."""
    exact = rd.Hawkes([0.3, 0.4], [[0.3, 0.2], [0.2, 0.3]], 1e4)
    streams, model = rd.simulate(exact, 5, end=50.0, seed=3), written_as(exact, torch.float64)
    with torch.no_grad():
        best = exact.log_likelihood(streams)
        for rule in (None, GaussLegendre(8)):
            assert torch.allclose(model.log_likelihood(streams, integral=rule), best, rtol=0, atol=5e-3)
        assert (model.log_likelihood(streams, integral=PLAIN) - best).abs().max() > 1
        batch = next(iter(iterate_batches(streams, 100, dtype=model.dtype, device=model.device)))
        areas = model.terms(batch).compensators, rd.Model.terms(model, batch).compensators
        torch.testing.assert_close(*areas, rtol=1e-5, atol=1e-6)


@each_engine
def test_filtering_a_hawkes_process_integrates_exactly(engine):
    """Weights by the closed form do not depend on the nodes, and are those of very many."""
    observed, proposal = observed_streams(2, 6.0), rd.Filtering(FAST, MISSING)
    eight = log_weights(observed, proposal, engine=engine, integral=GaussLegendre(8))
    assert np.array_equal(eight, log_weights(observed, proposal, engine=engine, integral=GaussLegendre(2)))
    many = log_weights(observed, proposal, engine=engine, integral=GaussLegendre(2000, graded=False))
    assert np.abs(eight - many).max() < 1e-3
    assert np.abs(eight - log_weights(observed, proposal, engine=engine, integral=PLAIN)).max() > 0.1


@each_engine
def test_log_weights_of_a_smoother_are_those_of_many_nodes(engine):
    observed, proposal = observed_streams(3, 10.0), far_future(FAST, MISSING)
    many = log_weights(observed, proposal, engine=engine, integral=GaussLegendre(40))
    eight = log_weights(observed, proposal, engine=engine)
    assert np.sqrt(np.mean((eight - many) ** 2)) < 1e-3


@each_engine
def test_units_follow_a_burst(engine):
    """Units that mix past and future see what the burst does to the past, and nothing else."""
    model = rd.Hawkes([0.3, 0.3], [[[0.1, 0.1], [0.1, 0.1]]] * 3, [1.0, 100.0, 1e4])
    observed = MISSING.censor(rd.simulate(model, 3, end=20.0, seed=7), seed=7)[0]
    torch.manual_seed(0)
    proposal = rd.Smoothing(model, MISSING, hidden_size=8, mixing=32)
    eight, many = (log_weights(observed, proposal, engine=engine, integral=GaussLegendre(n)) for n in (8, 40))
    assert np.sqrt(np.mean((eight - many) ** 2)) < 2e-4


@each_engine
def test_log_weights_of_a_state_space_are_those_of_many_nodes(engine):
    """What fades 10,000 times within a gap; by eight nodes in one panel log weights are off by 1 and more."""
    fast = rd.Hawkes([0.3, 0.4], [[0.3, 0.2], [0.2, 0.3]], 1e4)
    observed = MISSING.censor(rd.simulate(fast, 3, end=20.0, seed=3), seed=3)[0]
    proposal = rd.Filtering(hawkes_as_state_space(fast), MISSING)
    many = log_weights(observed, proposal, engine=engine, integral=GaussLegendre(40))
    eight, plain = (log_weights(observed, proposal, engine=engine, integral=rule) for rule in (None, PLAIN))
    assert np.sqrt(np.mean((eight - many) ** 2)) < 1e-3
    assert np.abs(plain - many).max() > 1


@pytest.mark.parametrize("layers", [1, 2, 3])
def test_a_state_space_says_how_much_its_memories_can_still_add(layers):
    """Over a gap, intensities move by no more than the masses of all speeds say, in events."""
    torch.manual_seed(layers)
    model = rd.StateSpace(3, 5, layers, scales=4, time_scale=0.5).double()
    streams = rd.simulate(model, 3, end=6.0, seed=1)
    batch = next(iter(iterate_batches(streams, 3, dtype=model.dtype, device=model.device)))
    with torch.no_grad():
        found, states = model.batch_speeds(batch), model.gap_states(batch)
        one_by_one = rd.Model.batch_speeds(model, batch)
        assert one_by_one is not None
        torch.testing.assert_close(found.masses, one_by_one.masses)
        now, rest = (model.intensity(states, states.time + later).sum(-1) for later in (0.0, 1e9))
        torch.testing.assert_close(found.rates, model.speeds(states).rates.unflatten(0, found.rates.shape[:2]))
        moves = (found.rates * found.masses).sum(-1).flatten()
        assert bool(((now - rest).abs() <= moves * (1 + 1e-9)).all())


@each_engine
@pytest.mark.parametrize("sampler", ["thinning", "inversion"])
@pytest.mark.parametrize("kind", ["filtering", "smoothing"])
def test_evidence_is_unbiased(engine, sampler, kind):
    """Type 0 follows type 1 and excites nothing, so what is left of it after half went missing is a Hawkes process too.

    Its likelihood is the evidence: the mean over 24 runs is within 3.3 standard errors (false alarms: 1e-3 a case).
    """

    def process(share):
        fast, slow = [[0.0, 0.0], [0.6 * share, 0.3]], [[0.0, 0.0], [0.4 * share, 0.2]]
        return rd.Hawkes([0.2 * share, 0.5], [fast, slow], [1e4, 1.0])

    model, missing = process(1.0), rd.ByType([0.5, 0.0])
    observed = missing.censor(rd.simulate(model, 1, end=4.0, seed=2), seed=2)[0]
    copies = rd.StreamSet(
        [rd.EventStream(observed[0].times, observed[0].types, end=4.0, id=i) for i in range(24)], ["a", "b"]
    )
    proposal = rd.Filtering(model, missing) if kind == "filtering" else far_future(model, missing)
    posterior = rd.impute(copies, proposal, particles=50, engine=engine, sampler=sampler)
    exact = float(process(0.5).log_likelihood(observed).detach())
    shares = np.exp(posterior.log_evidence - exact)
    assert abs(shares.mean() - 1) < 3.3 * shares.std() / 24**0.5 + 1e-6
    if kind == "filtering" and sampler == "thinning":
        np.testing.assert_allclose(posterior.log_evidence, exact, atol=1e-6)
