"""A trained smoothing proposal: better than filtering, the same after saving, trained the same after a restart."""

from __future__ import annotations

import numpy as np
import pytest
import torch

import retrodict as rd
from tests.conftest import random_neural_hawkes


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    """Type 1 mostly follows the always missing type 0: what comes next tells what went missing."""
    model = rd.Hawkes([0.4, 0.02], [[0.0, 0.9], [0.0, 0.0]], 4.0)
    train, dev = rd.simulate(model, 300, end=10.0, seed=1), rd.simulate(model, 100, end=10.0, seed=2)
    mechanism = rd.ByType([1.0, 0.0])
    torch.manual_seed(0)
    folder = tmp_path_factory.mktemp("smoother")
    proposal = rd.Smoothing(model, mechanism, 16)
    rd.fit(proposal, train, dev, epochs=25, learning_rate=0.02, directory=folder, progress=False)
    return model, mechanism, proposal, folder


def test_smoothing_beats_filtering(trained):
    model, mechanism, proposal, _ = trained
    observed, missing = mechanism.censor(rd.simulate(model, 150, end=10.0, seed=3))
    filtering = rd.Filtering(model, mechanism)
    with torch.no_grad():
        gain = (proposal.log_prob(missing, observed) - filtering.log_prob(missing, observed)).numpy()
    some = missing.lengths > 0
    assert np.mean(gain[some] > 0) > 0.8
    assert gain.mean() > 0.3
    sizes = [
        rd.impute(observed, q, particles=50, resample=None, seed=1).diagnostics.final_ess.mean()
        for q in (filtering, proposal)
    ]
    assert sizes[1] > 1.2 * sizes[0]


def test_the_trained_proposal_leaves_the_posterior_as_it_is(trained):
    """Another proposal, the same posterior: evidence and expected counts agree with filtering at large M."""
    model, mechanism, proposal, _ = trained
    observed, _ = mechanism.censor(rd.simulate(model, 30, end=10.0, seed=4))
    ours = rd.impute(observed, proposal, particles=1000, seed=1)
    theirs = rd.impute(observed, rd.Filtering(model, mechanism), particles=4000, seed=2)
    np.testing.assert_allclose(ours.log_evidence, theirs.log_evidence, atol=0.35)
    assert abs((ours.log_evidence - theirs.log_evidence).mean()) < 0.05
    np.testing.assert_allclose(ours.expected_count("0"), theirs.expected_count("0"), atol=0.4)


def test_a_saved_proposal_comes_back_the_same(trained):
    _, mechanism, proposal, folder = trained
    loaded = rd.load_proposal(folder)
    observed, missing = mechanism.censor(rd.simulate(loaded.model, 20, end=10.0, seed=5))
    assert torch.equal(loaded.log_prob(missing, observed), proposal.log_prob(missing, observed))
    assert loaded.training_record == proposal.training_record
    with pytest.raises(rd.ModelError, match="not a saved proposal"):
        rd.load_proposal(folder / "model")


def test_the_model_is_not_trained_along(trained):
    model, *_ = trained
    torch.testing.assert_close(model.base, torch.tensor([0.4, 0.02], dtype=torch.float64))
    assert not any(p.requires_grad for p in model.parameters())


@pytest.mark.parametrize(
    "options", [{}, {"fresh_masks": False}, {"learn_from": "data"}, {"learn_from": "both", "redraw": 1}]
)
def test_training_is_reproducible(options):
    model = random_neural_hawkes(seed=2).float()
    streams = rd.simulate(model, 40, end=3.0, seed=1)
    weights = []
    for _ in range(2):
        torch.manual_seed(1)
        proposal = rd.Smoothing(model, rd.ByType(0.5), 8)
        rd.fit(proposal, streams[:30], streams[30:], epochs=2, progress=False, **options)
        weights.append(proposal.readout.detach().clone())
    assert torch.equal(*weights)


@pytest.mark.parametrize("atom", [False, True])
def test_streams_without_any_event_have_a_log_prob(atom):
    """Nothing observed, nothing missing: what is left is q's survival (and the start atom)."""
    model = random_neural_hawkes(seed=2)
    if atom:
        model.adapt(rd.StreamSet([rd.EventStream([0.0], [1], end=2.0)], types=["0", "1", "2"]))
    proposal = rd.Smoothing(model, rd.ByType(0.5), 6)
    empty = rd.StreamSet([rd.EventStream([], [], end=2.0, id=i) for i in range(3)], types=["0", "1", "2"])
    one = rd.StreamSet([*empty, rd.EventStream([1.0], [0], end=2.0, id="x")], types=["0", "1", "2"])
    nothing = rd.StreamSet([*empty, rd.EventStream([], [], end=2.0, id="x")], types=["0", "1", "2"])
    with torch.no_grad():
        alone, together = proposal.log_prob(empty, empty), proposal.log_prob(nothing, one)
    torch.testing.assert_close(alone, together[:3], rtol=0, atol=1e-9)
    assert (alone < 0).all()


def test_gradients_reach_every_weight_of_the_proposal():
    model = random_neural_hawkes(seed=2)
    model.start_atom = None
    mechanism = rd.ByType(0.5)
    observed, missing = mechanism.censor(rd.simulate(model, 10, end=3.0, seed=1))
    proposal = rd.Smoothing(model, mechanism, 6)
    proposal.log_prob(missing, observed).sum().backward()
    for name, parameter in proposal.named_parameters():
        if parameter.requires_grad and name != "start_readout":
            assert parameter.grad is not None, name
            assert parameter.grad.abs().sum() > 0, name


def test_bounds_hold_for_random_states_and_segments():
    """λ^q never exceeds its bound: 20,000 random (state, segment, interval)."""
    torch.manual_seed(4)
    model = random_neural_hawkes(seed=6)
    mechanism = rd.ByType([0.5, 1.0, 0.2])
    proposal = rd.Smoothing(model, mechanism, 6)
    torch.nn.init.normal_(proposal.readout)
    from retrodict.events.batch import make_batch

    observed, _ = mechanism.censor(rd.simulate(model, 50, end=5.0, seed=1))
    batch = make_batch(observed, dtype=torch.float64)
    with torch.no_grad():
        prepared = proposal.prepare(batch)
        rows = 20_000
        stream = torch.randint(50, (rows,))
        segment = (torch.rand(rows) * (batch.mask.sum(1)[stream] + 1)).long()
        ahead = proposal.ahead(prepared, stream, segment)
        left = torch.where(segment > 0, prepared.right[stream, (segment - 1).clamp(min=0)], 0.0)
        a, b = (left + (ahead.time - left) * torch.rand(2, rows, dtype=torch.float64)).sort(0).values
        state = model.update(model.initial((rows,)), torch.randint(3, (rows,)), left)
        bound = proposal.bound(state, ahead, a, b)
        grid = a[:, None] + (b - a)[:, None] * torch.linspace(0, 1, 9, dtype=torch.float64)
        rates = proposal.rates(state, ahead, grid).proposal
    assert (rates.amax(1) <= bound).all()
    assert (rates.amax(1) / bound).mean() > 0.6
