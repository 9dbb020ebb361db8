"""Smoothing proposals in which past and future interact."""

from __future__ import annotations

import json

import numpy as np
import pytest
import torch
from scipy import integrate

import retrodict as rd
from retrodict.models.base import Model
from retrodict.models.quadrature import Stratified
from retrodict.proposals import base
from retrodict.proposals.mixing import mix
from tests.checks import bounds_hold, gradients_are_those_of_finite_differences, weights_are_those_of_the_particles
from tests.conftest import KINDS, example_model, random_neural_hawkes

TYPES = ["0", "1", "2"]


def mixing_case(kind: str = "neural_hawkes", streams: int = 6, dtype: torch.dtype = torch.float64, **options):
    """Observed and missing streams, and a smoother with random weights of some size."""
    model, mechanism = example_model(kind).to(dtype), rd.ByType([0.5, 1.0, 0.2])
    observed, missing = mechanism.censor(rd.simulate(model, streams, end=3.0, seed=1), seed=1)
    torch.manual_seed(4)
    proposal = rd.Smoothing(model, mechanism, **{"hidden_size": 6, "mixing": 7, **options})
    torch.nn.init.normal_(proposal.readout, std=0.5)
    for weight in (proposal.mix.past.weight, proposal.mix.future.weight, proposal.mix.readout.weight):
        torch.nn.init.normal_(weight, std=0.7)
    return observed, missing, proposal


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def softplus(x):
    return np.logaddexp(0, x)


class PlainLstm:
    """The continuous-time LSTM in NumPy, one event at a time."""

    def __init__(self, lstm, boundary: int, scale: float, by_rates=0.0) -> None:
        self.W, self.U, self.d = (x.detach().numpy() for x in (lstm.by_type, lstm.by_hidden, lstm.bias))
        self.d = self.d + by_rates
        size = len(self.U)
        self.start = self.target = self.decay = self.output = np.zeros(size)
        self.scale = scale
        self.read(boundary, 0.0)

    def cell(self, elapsed: float):
        return self.target + (self.start - self.target) * np.exp(-self.decay * elapsed / self.scale)

    def hidden(self, elapsed: float):
        return self.output * np.tanh(self.cell(elapsed))

    def read(self, kind: int, elapsed: float) -> None:
        cell, hidden = self.cell(elapsed), self.hidden(elapsed)
        i, f, o, i_bar, f_bar, z, decay = np.split(self.W[kind] + hidden @ self.U + self.d, 7)
        z = 2 * sigmoid(z) - 1
        self.start = sigmoid(f) * cell + sigmoid(i) * z
        self.target = sigmoid(f_bar) * self.target + sigmoid(i_bar) * z
        self.decay, self.output = softplus(decay), sigmoid(o)


def plain_log_prob(proposal, observed: rd.EventStream, missing: rd.EventStream) -> float:
    """log q of one stream from the formula, event by event, with adaptive quadrature."""
    model, mix = proposal.model, proposal.mix
    rho = proposal.missingness.rates(torch.zeros(())).numpy()
    V, s, U = model.readout.detach().numpy(), model.log_scale.exp().detach().numpy(), proposal.readout.detach().numpy()
    P, b, Q, w = (x.detach().numpy() for x in (mix.past.weight, mix.past.bias, mix.future.weight, mix.readout.weight))
    events = sorted([(t, 0, k) for t, k in observed] + [(t, 1, k) for t, k in missing])
    past = PlainLstm(model.lstm, model.num_types, float(model.time_scale))
    total, last = 0.0, 0.0
    for time, is_missing, kind in [*events, (observed.end, 0, -1)]:
        rates = np.concatenate([rho, rho])
        inputs = [rates, *(np.log(x + 0.02) / np.log(0.02) for x in (rates, 1 - rates))]
        told = np.concatenate(inputs) @ proposal.by_rate.detach().numpy()
        future = PlainLstm(proposal.lstm, model.num_types, float(proposal.time_scale), told)
        edge = observed.end
        for t, k in [(t, k) for t, k in observed if t >= time][::-1]:
            future.read(k, edge - t)
            edge = t

        def rates(t, last=last, edge=edge, future=future):
            h, h_bar = past.hidden(t - last), future.hidden(edge - t)
            drive = V @ h + U @ h_bar + w @ np.tanh(P @ h + Q @ h_bar + b)
            return rho * s * softplus(drive / s) / float(model.time_scale)

        total -= integrate.quad(lambda t, rates=rates: rates(t).sum(), last, time, epsabs=1e-10)[0]
        if is_missing:
            total += np.log(rates(time)[kind])
        if kind >= 0:
            past.read(kind, time - last)
        last = time
    return total


def test_log_q_is_that_of_the_formula():
    observed, missing, proposal = mixing_case()
    with torch.no_grad():
        proposal.model.log_scale.copy_(torch.tensor([0.2, -0.3, 0.1]))
        proposal.model.time_scale.fill_(0.8)
    proposal.time_scale.fill_(1.3)
    ours = proposal.log_prob(missing, observed, integral=rd.GaussLegendre(20)).detach().numpy()
    theirs = [plain_log_prob(proposal, x, z) for x, z in zip(observed, missing, strict=True)]
    assert missing.num_events > 10
    np.testing.assert_allclose(ours, theirs, rtol=0, atol=1e-7)


@pytest.mark.parametrize("kind", KINDS)
def test_log_q_follows_from_the_rates(kind):
    """For every model: ``rates``, which the sampler uses, and ``log_prob`` are the same proposal."""
    observed, _, proposal = mixing_case(kind)
    posterior = rd.impute(observed, proposal, particles=20, resample=None, seed=3, engine="torch")
    weights_are_those_of_the_particles(posterior, observed, proposal)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("kind", KINDS)
def test_bounds_hold_for_random_states_and_segments(kind, dtype):
    observed, _, proposal = mixing_case(kind, streams=50, dtype=dtype)
    bounds_hold(proposal, observed, rows=20_000, points=17, tightness=0.6)


def test_mixing_and_its_gradients():
    """As autograd has it for the plain formula, for features that ask for a gradient and for features that do not."""
    torch.manual_seed(3)
    shapes = ((2, 5, 3 + 4), (2, 5, 6), (4, 6), (4,), (3, 4))
    inputs = tuple(torch.randn(*shape, dtype=torch.float64, requires_grad=True) for shape in shapes)
    both, past, weight, bias, readout = inputs
    plain = both[..., :3] + torch.tanh(past @ weight.t() + bias + both[..., 3:]) @ readout.t()
    torch.testing.assert_close(mix(*inputs), plain)
    assert torch.autograd.gradcheck(mix, inputs)
    assert torch.autograd.gradcheck(mix, (both, past.detach(), weight, bias, readout))


def test_units_that_say_nothing_leave_the_plain_smoother():
    observed, missing, mixed = mixing_case()
    with torch.no_grad():
        mixed.mix.readout.weight.zero_()
    plain = rd.Smoothing(mixed.model, mixed.given_missingness, 6, mixing=0)
    assert not plain.load_state_dict(mixed.state_dict(), strict=False).missing_keys
    torch.testing.assert_close(mixed.log_prob(missing, observed), plain.log_prob(missing, observed))
    ours, theirs = (rd.impute(observed, q, particles=10, seed=1, sampler="inversion") for q in (mixed, plain))
    np.testing.assert_allclose(ours.event_times, theirs.event_times, rtol=0, atol=1e-9)


def test_the_papers_form_computes_no_features():
    """And has the same weights from the same seed, but for the units."""
    model, mechanism = random_neural_hawkes(), rd.ByType(0.5)
    proposals = []
    for mixing in (0, 3):
        torch.manual_seed(1)
        proposals.append(rd.Smoothing(model, mechanism, 6, mixing))
    first, mixed = proposals
    assert first.config() == {"hidden_size": 6, "mixing": 0, "told": True}
    assert mixed.config() == {"hidden_size": 6, "mixing": 3, "told": True}
    for name, weight in first.state_dict().items():
        assert torch.equal(weight, mixed.state_dict()[name])
    observed, missing = mechanism.censor(rd.simulate(model, 3, end=3.0, seed=1))
    model.features = model.drives_and_features = None
    assert torch.isfinite(first.log_prob(missing, observed)).all()
    assert len(rd.impute(observed, first, particles=3)) == 3


def test_a_saved_proposal_comes_back_the_same(tmp_path):
    observed, missing, proposal = mixing_case()
    loaded = rd.load_proposal(proposal.save(tmp_path / "mixed"))
    assert loaded.mixing == 7
    assert torch.equal(loaded.log_prob(missing, observed), proposal.log_prob(missing, observed))


@pytest.mark.parametrize("size", [4, 20, 40])
def test_by_default_there_are_32_units_or_as_many_as_the_larger_lstm_has_cells(size):
    model = random_neural_hawkes(hidden_size=8)
    assert rd.Smoothing(model, rd.ByType(0.5), size).mixing == min(max(size, 8), 32)
    assert rd.Smoothing(rd.Poisson([1.0]), rd.ByType(0.5), size).mixing == min(size, 32)
    assert rd.Smoothing(rd.Poisson([1.0]), rd.ByType(0.5)).mixing == 32


def test_folders_of_before_mixing_was_recorded_hold_the_papers_form(tmp_path):
    observed, missing, mixed = mixing_case()
    plain = rd.Smoothing(mixed.model, mixed.given_missingness, 6, mixing=0)
    file = plain.save(tmp_path) / "proposal.json"
    about = json.loads(file.read_text())
    assert about["config"].pop("mixing") == 0
    file.write_text(json.dumps(about))
    loaded = rd.load_proposal(tmp_path)
    assert loaded.mixing == 0
    assert torch.equal(loaded.log_prob(missing, observed), plain.log_prob(missing, observed))


@pytest.mark.parametrize("kind", ["hawkes", "neural_hawkes", "state_space_layers"])
def test_gradients_are_those_of_finite_differences(kind):
    observed, missing, proposal = mixing_case(kind)
    proposal.model.start_atom = None
    gradients_are_those_of_finite_differences(proposal, missing, observed)


@pytest.mark.parametrize("random_points", [False, True])
@pytest.mark.parametrize("windows", [False, True])
def test_many_streams_are_scored_part_by_part(windows, random_points, monkeypatch):
    """At the same points as all at once, also where points are random."""
    observed, missing, proposal = mixing_case(streams=20)
    if windows:
        mechanism = rd.Windows([(0.5, 1.1), (1.9, 2.2)], inside=0.8, outside=0.1)
        observed, missing = mechanism.censor(rd.simulate(proposal.model, 20, end=3.0, seed=1), seed=1)
        again = rd.Smoothing(proposal.model, mechanism, 6, 7)
        again.load_state_dict(proposal.state_dict())
        proposal = again

    def log_prob() -> torch.Tensor:
        integral = Stratified(4, torch.Generator().manual_seed(1)) if random_points else None
        return proposal.log_prob(missing, observed, integral=integral)

    whole = log_prob()
    sizes = []
    plain = proposal.model.drives_and_features
    proposal.model.drives_and_features = lambda batch, at: sizes.append(len(batch.gaps)) or plain(batch, at)
    monkeypatch.setattr(base, "_MOST_FEATURES", 25_000)
    torch.testing.assert_close(log_prob(), whole, rtol=0, atol=1e-9)
    assert len(sizes) > 2
    assert sum(sizes) == 20


def test_training_finds_what_a_sum_cannot_say():
    """Type 1 follows the always missing type 0 once: whether another 0 is needed depends on past and future."""
    model = rd.Hawkes([0.4, 0.02], [[0.0, 0.9], [0.0, 0.0]], 4.0).float()
    train, dev = rd.simulate(model, 200, end=10.0, seed=1), rd.simulate(model, 100, end=10.0, seed=2)
    mechanism, scores = rd.ByType([1.0, 0.0]), []
    for mixing in (0, 16):
        torch.manual_seed(0)
        proposal = rd.Smoothing(model, mechanism, 16, mixing)
        rd.fit(proposal, train, dev, epochs=20, learning_rate=0.02, progress=False)
        scores.append(proposal.training_record["dev_log_likelihood_per_event"])
    assert scores[1] > scores[0] + 0.05


class Unbounded(rd.Poisson):
    """Does not say within which bounds its features stay."""

    feature_range = Model.feature_range


@pytest.mark.parametrize(
    ("model", "mixing", "why"),
    [
        (rd.Poisson([1.0]), -1, "mixing must be a whole number"),
        (rd.Poisson([1.0]), 1.5, "mixing must be a whole number"),
        (Unbounded([1.0]), 4, "cannot be mixed for a Unbounded model"),
    ],
)
def test_what_cannot_be_mixed(model, mixing, why):
    with pytest.raises(rd.ModelError, match=why):
        rd.Smoothing(model, rd.ByType(0.5), 4, mixing)
    with pytest.raises(rd.ModelError, match="no feature_range"):
        Unbounded([1.0]).feature_range(None, torch.zeros(1), torch.ones(1))
    assert rd.Smoothing(Unbounded([1.0]), rd.ByType(0.5), 4).mixing == 0
