"""One protocol for integrals: a rule that a likelihood takes is one that the sampler takes."""

from itertools import pairwise

import numpy as np
import pytest
import torch

import retrodict as rd
from retrodict.models.quadrature import MonteCarlo, Pieces, Stratified, place_nodes
from tests.conftest import each_engine

MODEL = rd.Hawkes([0.4, 0.2], [[0.3, 0.5], [0.1, 0.2]], 1.5)
MISSING = rd.ByType([0.5, 0.2])
RULES = [rd.GaussLegendre(4), rd.GaussLegendre(8), rd.MonteCarlo(4), Stratified(4)]


def observed_streams(count=20):
    return MISSING.censor(rd.simulate(MODEL, count, end=6.0, seed=1), seed=1)[0]


@pytest.mark.parametrize("rule", RULES, ids=str)
def test_one_rule_serves_likelihood_proposal_training_and_sampler(rule):
    complete = rd.simulate(MODEL, 20, end=6.0, seed=1)
    observed, missing = MISSING.censor(complete, seed=1)
    proposal = rd.Smoothing(MODEL, MISSING, hidden_size=4)
    neural = rd.NeuralHawkes(2, hidden_size=4)
    assert torch.isfinite(neural.log_likelihood(complete, integral=rule)).all()
    assert torch.isfinite(proposal.log_prob(missing, observed, integral=rule)).all()
    rd.fit(neural, complete, integral=rule, epochs=1, progress=False, device="cpu")
    assert np.isfinite(rd.impute(observed, proposal, particles=5, integral=rule).log_evidence).all()
    steps = list(rd.sweep(observed, proposal, particles=5, integral=rule))
    assert torch.isfinite(steps[-1].particles.log_weights).all()


@each_engine
def test_the_number_of_nodes_that_was_asked_for_is_used(engine):
    """Filtering draws the same particles whatever the rule: only the integrals in their weights may differ."""
    same = {"particles": 50, "resample": None, "sampler": "thinning"}
    torch.manual_seed(1)
    observed, proposal = observed_streams(), rd.Filtering(rd.NeuralHawkes(2, hidden_size=8), MISSING)
    proposal.model.readout.data.mul_(10)
    one, eight, many = (
        rd.impute(observed, proposal, engine=engine, integral=rd.GaussLegendre(n), **same).log_evidence
        for n in (1, 8, 32)
    )
    usual = rd.impute(observed, proposal, engine=engine, **same).log_evidence
    assert np.array_equal(eight, usual)
    assert np.abs(eight - many).max() < 1e-4
    assert np.abs(one - many).max() > 1e-3


def test_random_points_follow_the_seed_and_not_the_batch():
    observed, proposal = observed_streams(), rd.Filtering(MODEL, MISSING)
    options = {"particles": 20, "integral": rd.MonteCarlo(3)}
    once = rd.impute(observed, proposal, seed=5, **options)
    again = rd.impute(observed, proposal, seed=5, rows=20, **options)
    assert np.array_equal(once.log_evidence, again.log_evidence)
    assert not np.array_equal(once.log_evidence, rd.impute(observed, proposal, seed=6, **options).log_evidence)


@pytest.mark.parametrize("rule", [MonteCarlo(3), Stratified(3)], ids=str)
def test_points_of_a_segment_are_unbiased_on_its_pieces_and_shared_by_particles(rule):
    """∫ t² over pieces of a segment, averaged over 4,000 streams: within 5 standard errors (false alarms: 1e-6)."""
    keys = torch.arange(4000)
    zeros = torch.zeros(4000, dtype=torch.float64)
    ends = [zeros, zeros + 0.7, zeros + 2.0]
    times = []
    for start, stop in pairwise(ends):
        pieces = Pieces(start, stop, torch.zeros_like(keys), zeros, ends[-1], keys)
        nodes, weights = place_nodes(rule, pieces)
        areas = (nodes.square() * weights).sum(1)
        exact = float(stop[0] ** 3 - start[0] ** 3) / 3
        assert abs(float(areas.mean()) - exact) < 5 * float(areas.std()) / 4000**0.5
        times.append(torch.where(weights > 0, nodes, torch.nan))
        assert torch.isnan(place_nodes(rule, Pieces(start, start, pieces.number, zeros, stop, keys))[0]).sum() == 0
    assert ((~torch.isnan(times[0])).sum(1) + (~torch.isnan(times[1])).sum(1) == 3).all()


@pytest.mark.parametrize("wrong", [8, "quadrature", rd.GaussLegendre])
def test_what_is_no_rule_is_refused_in_words(wrong):
    with pytest.raises(rd.ModelError, match="integral must be a rule such as"):
        rd.impute(observed_streams(1), rd.Filtering(MODEL, MISSING), particles=2, integral=wrong)
