"""Smoothing that asks the model what would follow from an event."""

from __future__ import annotations

import copy

import numpy as np
import pytest
import torch

import retrodict as rd
from retrodict.events.batch import make_batch
from retrodict.models.start import StartAtom
from retrodict.proposals import lookahead
from retrodict.smc.compensator import Quadrature
from retrodict.smc.engines import ENGINES
from retrodict.smc.sampler import Options
from tests.checks import bounds_hold, gradients_are_those_of_finite_differences, weights_are_those_of_the_particles
from tests.conftest import KINDS, example_model, random_neural_hawkes
from tests.proposals.test_mixing import PlainLstm, softplus

MISSING = rd.ByType([0.5, 1.0, 0.2])


def lookahead_case(kind: str = "neural_hawkes", streams: int = 6, dtype: torch.dtype = torch.float64, **options):
    """Observed and missing streams, and a smoother with random weights of some size."""
    model, mechanism = example_model(kind).to(dtype), options.pop("missing", MISSING)
    observed, missing = mechanism.censor(rd.simulate(model, streams, end=3.0, seed=1), seed=1)
    torch.manual_seed(4)
    proposal = rd.Lookahead(model, mechanism, **{"hidden_size": 6, "units": 9, "steps": 2, **options})
    torch.nn.init.normal_(proposal.readout, std=0.5)
    for layer in (proposal.state_layer, proposal.future_layer, proposal.inner_layer, proposal.value_layer):
        torch.nn.init.normal_(layer.weight, std=0.7)
    return observed, missing, proposal


def read_all(lstm, events, boundary: int, start: float, scale: float) -> tuple[PlainLstm, float]:
    """A plain LSTM that has read events (time, type) in order, and when it read the last."""
    plain, last = PlainLstm(lstm, boundary, scale), start
    for time, kind in events:
        plain.read(kind, abs(time - last))
        last = time
    return plain, last


def plain_rates(proposal, events, future, end: float, t: float) -> np.ndarray:
    """λ^q_k(t) from the formula, for a history of ``events`` and an observed ``future`` (time, type), in NumPy."""
    model, scale = proposal.model, float(proposal.model.time_scale)
    V, s = model.readout.detach().numpy(), model.log_scale.exp().detach().numpy()
    rho = proposal.missingness.rates(torch.zeros(())).numpy()

    def intensity(state: PlainLstm, elapsed: float) -> np.ndarray:
        return s * softplus(V @ state.hidden(elapsed) / s) / scale

    back, edge = read_all(proposal.lstm, future[::-1], model.num_types, end, float(proposal.time_scale))
    back = back.hidden(edge - t)

    def value(state: PlainLstm, last: float) -> float:
        found, before, own = [state.hidden(t - last)], t, float(proposal.time_scale)
        seen = [*future, *[(end, None)] * proposal.steps][: proposal.steps]
        for i, (time, kind) in enumerate(seen):
            rates = own * intensity(state, time - last)
            expected = 0.0 if kind is None else np.clip(np.log(rates[kind]), -8, 8)
            wait = min((time - before) / own * (rates * (1 - rho)).sum(), 8)
            found += [state.hidden(time - last), [expected, wait]]
            if i < proposal.steps - 1:
                state = copy.copy(state)
                state.read(0 if kind is None else kind, time - last)
                last = time
                found.append(state.hidden(0.0) * (kind is not None))
            before = time
        P, Q, M, w = (getattr(proposal, f"{name}_layer") for name in ("state", "future", "inner", "value"))
        read = P.weight.detach().numpy() @ np.concatenate(found) + P.bias.detach().numpy()
        read = np.tanh(read + Q.weight.detach().numpy() @ back)
        inner = np.tanh(M.weight.detach().numpy() @ read + M.bias.detach().numpy())
        return float(w.weight.detach().numpy()[0] @ inner)

    now, last = read_all(model.lstm, events, model.num_types, 0.0, scale)
    here = value(now, last)
    ratio = []
    for k in range(model.num_types):
        after, _ = read_all(model.lstm, [*events, (t, k)], model.num_types, 0.0, scale)
        ratio.append(proposal.limit * np.tanh((value(after, t) - here) / proposal.limit))
    drive = V @ now.hidden(t - last) + proposal.readout.detach().numpy() @ back
    return rho * s * softplus(drive / s) / scale * np.exp(proposal.strength * np.array(ratio))


@pytest.mark.parametrize("steps", [1, 2, 3])
def test_rates_are_those_of_the_formula(steps):
    observed, _, proposal = lookahead_case(steps=steps, limit=2.0)
    with torch.no_grad():
        proposal.model.log_scale.copy_(torch.tensor([0.2, -0.3, 0.1]))
        proposal.model.time_scale.fill_(0.8)
    proposal.time_scale.fill_(1.3)
    stream = max(observed, key=len)
    events, checked = list(stream), 0
    prepared = proposal.prepare(make_batch(rd.StreamSet([stream], types=observed.types), dtype=torch.float64))
    for segment in range(len(events) + 1):
        right = events[segment][0] if segment < len(events) else stream.end
        left = events[segment - 1][0] if segment else 0.0
        past = [*events[:segment], ((2 * left + right) / 3, 1)]  # with a missing event
        state = proposal.model.initial((1,))
        for time, kind in past:
            state = proposal.model.update(state, torch.tensor([kind]), torch.tensor([time], dtype=torch.float64))
        ahead = proposal.ahead(prepared, torch.tensor([0]), torch.tensor([segment]))
        t = (left + 3 * right) / 4
        ours = proposal.rates(state, ahead, torch.tensor([[t]], dtype=torch.float64)).proposal[0, 0]
        theirs = plain_rates(proposal, past, events[segment:], stream.end, t)
        np.testing.assert_allclose(ours.detach(), theirs, rtol=1e-9)
        checked += 1
    assert checked > 3


@pytest.mark.parametrize("kind", KINDS)
def test_log_q_follows_from_the_rates(kind):
    """For every model: ``rates``, which the sampler uses, and ``log_prob`` are the same proposal."""
    observed, _, proposal = lookahead_case(kind)
    posterior = rd.impute(observed, proposal, particles=20, resample=None, seed=3, sampler="thinning")
    weights_are_those_of_the_particles(posterior, observed, proposal)


def test_weights_follow_where_rates_vary_and_streams_may_start_with_an_event():
    """Against a finer rule for integrals, so that errors of quadrature cannot cancel."""
    mechanism = rd.Windows([(0.5, 1.3), (2.0, 2.2)], inside=0.9, outside=0.1)
    observed, _, proposal = lookahead_case(missing=mechanism)
    proposal.model.start_atom = StartAtom.from_streams(
        rd.StreamSet([rd.EventStream([0.0], [i % 3], end=3.0, id=i) for i in range(4)], types=observed.types)
    ).to("cpu", torch.float64)
    finer = {"resample": None, "seed": 3, "sampler": "thinning", "integral": Quadrature(30)}
    posterior = rd.impute(observed, proposal, particles=10, **finer)
    weights_are_those_of_the_particles(posterior, observed, proposal, nodes=40, atol=1e-6)


def test_a_fit_that_was_ended_goes_on(tmp_path):
    _, _, proposal = lookahead_case(dtype=torch.float32)
    streams = rd.simulate(proposal.model, 30, end=3.0, seed=2)
    whole = rd.fit(copy.deepcopy(proposal), streams, streams, epochs=2, progress=False)
    for epochs in (1, 2):
        part = rd.fit(copy.deepcopy(proposal), streams, streams, epochs=epochs, progress=False, directory=tmp_path)
    for ours, theirs in zip(part.parameters(), whole.parameters(), strict=True):
        assert torch.equal(ours, theirs)
    with pytest.warns(UserWarning, match="had finished"):
        again = rd.fit(copy.deepcopy(proposal), streams, streams, epochs=2, progress=False, directory=tmp_path)
    assert torch.equal(again.value_layer.weight, whole.value_layer.weight)


def test_it_cannot_be_twisted():
    _, _, proposal = lookahead_case()
    with pytest.raises(rd.ModelError, match="not for Lookahead"):
        rd.Twisted.of(proposal)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_bounds_hold_for_random_states_and_segments(dtype):
    observed, _, proposal = lookahead_case(streams=50, dtype=dtype, limit=0.5)
    bounds_hold(proposal, observed, rows=2000, points=9, tightness=0.3)


def test_types_that_cannot_go_missing_are_not_asked_about():
    observed, missing, proposal = lookahead_case(missing=rd.ByType([0.0, 1.0, 0.0]))
    assert proposal.hidden_types.tolist() == [1]
    state = proposal.model.initial((2,))
    ahead = proposal.ahead(
        proposal.prepare(make_batch(observed[:2], dtype=torch.float64)), torch.arange(2), torch.zeros(2).long()
    )
    ratio = proposal.log_ratio(state, ahead, torch.full((2, 3), 0.1, dtype=torch.float64))
    assert (ratio[..., 1] != 0).all()
    assert (ratio[..., [0, 2]] == 0).all()
    assert torch.isfinite(proposal.log_prob(missing, observed)).all()


def test_damped_to_nothing_it_filters_and_in_between_it_is_in_between():
    observed, missing, proposal = lookahead_case()
    ours, plain = (
        proposal.log_prob(missing, observed),
        rd.Filtering(proposal.model, MISSING).log_prob(missing, observed),
    )
    torch.testing.assert_close(proposal.damped(0.0).log_prob(missing, observed), plain)
    torch.testing.assert_close(proposal.damped(1.0).log_prob(missing, observed), ours)
    half = proposal.damped(0.5)
    assert (half.strength, half.most_log_ratio) == (0.5, pytest.approx(2.0, abs=1e-4))
    assert half.damped(0.5).strength == 0.25
    assert proposal.strength == 1.0
    assert not torch.equal(half.log_prob(missing, observed), ours)


def test_a_saved_proposal_comes_back_the_same(tmp_path):
    observed, missing, proposal = lookahead_case()
    damped = proposal.damped(0.3)
    loaded = rd.load_proposal(damped.save(tmp_path))
    assert isinstance(loaded, rd.Lookahead)
    expected = {"hidden_size": 6, "units": 9, "steps": 2, "limit": 4.0, "strength": 0.3}
    assert loaded.config() == damped.config() == expected
    assert torch.equal(loaded.log_prob(missing, observed), damped.log_prob(missing, observed))


def test_little_memory_gives_the_same(monkeypatch):
    observed, missing, proposal = lookahead_case()
    own = [parameter for parameter in proposal.parameters() if parameter.requires_grad]
    ours = proposal.log_prob(missing, observed)
    gradients = torch.autograd.grad(ours.sum(), own, allow_unused=True)
    monkeypatch.setattr(lookahead, "_MOST", {"cpu": 1})
    monkeypatch.setattr(lookahead, "_MOST_KEPT", 20_000)
    again = proposal.log_prob(missing, observed)
    torch.testing.assert_close(again, ours)
    for before, after in zip(gradients, torch.autograd.grad(again.sum(), own, allow_unused=True), strict=True):
        torch.testing.assert_close(after, before)
    with torch.no_grad():
        torch.testing.assert_close(proposal.log_prob(missing, observed), ours)


def test_gradients_are_those_of_finite_differences():
    observed, missing, proposal = lookahead_case()
    gradients_are_those_of_finite_differences(proposal, missing, observed)


def test_it_learns_faster_than_units_that_mix():
    """A process that single events turn around: after as many epochs it has gained more than twice as much."""
    model, missing = random_neural_hawkes(3, 96, seed=1).float(), rd.ByType([1.0, 0.0, 1.0])
    streams = rd.simulate(model, 700, num_events=12, seed=1)
    train, dev = streams[:600], streams[600:]
    observed, hidden = missing.censor(dev, seed=999_999_937)
    filtering = float(rd.Filtering(model, missing).log_prob(hidden, observed).detach().sum()) / hidden.num_events
    gains = []
    for kind, units in ((rd.Smoothing, {"mixing": 32}), (rd.Lookahead, {"units": 32})):
        torch.manual_seed(0)
        smoother = rd.fit(kind(model, missing, 16, **units), train, dev, epochs=6, learn_from="data", progress=False)
        gains.append(smoother.training_record["dev_log_likelihood_per_event"] - filtering)
    assert gains[1] > 2 * gains[0] > 0


def test_other_engines_say_that_they_do_not_know_it():
    _, _, proposal = lookahead_case(dtype=torch.float32)
    assert "not Lookahead" in (ENGINES["native"].refuses(proposal, Options(5)) or "")


@pytest.mark.parametrize(
    "options", [{"units": 0}, {"steps": 0}, {"steps": 1.5}, {"limit": 0.0}, {"limit": float("inf")}, {"strength": -1.0}]
)
def test_bad_sizes_are_refused(options):
    with pytest.raises(rd.ModelError, match=next(iter(options))):
        rd.Lookahead(example_model("neural_hawkes"), MISSING, **options)
