"""Kernels that are sums of exponentials against their definition, and the fit of their weights against theory."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import nnls

import retrodict as rd
from retrodict.errors import DataError, ModelError
from retrodict.events.batch import make_batch
from retrodict.models.hawkes_fit import TOLERANCE, History, fit_excitation, maximise
from retrodict.models.hawkes_grid import decay_grid
from tests.conftest import example_model


def double_sum(model: rd.Hawkes, stream: rd.EventStream) -> float:
    """log p by the textbook double sum over pairs of events, with no recursion."""
    base, caused, decays = (x.tolist() for x in (model.base, model.excitation, model.decay))
    times, types = stream.times - stream.start, stream.types
    total = -sum(base) * stream.duration
    for i, (t, k) in enumerate(zip(times, types, strict=True)):
        rate = base[k]
        for s, j in zip(times[:i], types[:i], strict=True):
            rate += sum(caused[r][j][k] * d * math.exp(-d * (t - s)) for r, d in enumerate(decays))
        total += math.log(rate)
        total -= sum(sum(caused[r][k]) * -math.expm1(-d * (stream.duration - t)) for r, d in enumerate(decays))
    return total


@pytest.mark.parametrize("length", [0, 1, 64, 65, 150])
def test_log_likelihood_equals_the_double_sum(length):
    generator = np.random.default_rng(length)
    times = np.cumsum(np.exp(generator.uniform(-12, 0, length)))  # gaps over five orders of magnitude
    stream = rd.EventStream(times, generator.integers(0, 3, length), end=40.0)
    model = rd.Hawkes([0.5, 0.1, 0.2], generator.uniform(0, 0.2, (3, 3, 3)), [1e4, 1e2, 1.0])
    expected = double_sum(model, stream)
    assert model.log_likelihood(stream).item() == pytest.approx(expected, rel=0, abs=1e-10 * max(1, abs(expected)))


def test_one_scale_is_the_process_of_one_exponential():
    one = rd.Hawkes([0.5, 0.2], [[0.3, 0.2], [0.1, 0.4]], 1.7)
    many = rd.Hawkes([0.5, 0.2], [[[0.3, 0.2], [0.1, 0.4]]], [1.7])
    streams = rd.simulate(one, 10, end=20.0, seed=1)
    torch.testing.assert_close(many.log_likelihood(streams), one.log_likelihood(streams), rtol=0, atol=1e-12)
    again = rd.simulate(many, 10, end=20.0, seed=1)
    assert np.array_equal(streams.event_types, again.event_types)
    np.testing.assert_allclose(streams.event_times, again.event_times, rtol=0, atol=1e-12)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (([0.1], [[[0.1, 0.2]]], [1.0]), "excitation must have shape any x 1 x 1"),
        (([0.1], [[[0.1]], [[0.2]]], [1.0]), "decay must have shape 2"),
        (([0.1], [[[0.1]], [[0.2]]], 1.0), "decay must have shape 2"),
        (([0.1], [[[0.1]], [[0.2]]], [1.0, 0.0]), "decay must be positive"),
    ],
)
def test_impossible_parameters_are_refused(arguments, message):
    with pytest.raises(ModelError, match=message):
        rd.Hawkes(*arguments)


def test_the_fits_own_likelihood_is_the_models():
    """Σ log X a - c · a over types, without what is held back, is log p: start atom, ties and empty streams too."""
    streams = rd.StreamSet(
        [
            rd.EventStream([0.0, 1.0, 1.0, 2.5], [0, 1, 1, 0], end=4.0),
            rd.EventStream([], [], end=3.0),
            rd.EventStream([0.5, 2.0], [1, 0], end=2.0),
        ],
        types=["a", "b"],
    )
    model = rd.Hawkes([0.5, 0.2], [[[0.3, 0.2], [0.1, 0.4]], [[0.1, 0.3], [0.2, 0.0]]], [8.0, 0.5])
    for atom in (False, True):
        model.start_atom = rd.Hawkes.from_streams(streams).start_atom if atom else None
        history = History(streams, model.decay.detach().numpy(), atom)
        own = 0.0
        for k in range(2):
            a = torch.cat([model.base[k : k + 1], model.excitation[:, :, k].reshape(-1)]).detach().numpy()
            own += np.log(history.rows(k) @ a).sum() - history.areas(k) @ a
        atoms = 0.0 if not atom else float(model.start_atom.log_type(torch.tensor(0)) + 2 * model.start_atom.log_none())
        assert float(model.log_likelihood(streams).sum().detach()) == pytest.approx(own + atoms, abs=1e-12)


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 10_000), st.integers(1, 60), st.integers(1, 12))
def test_nothing_is_better_than_the_maximum(seed, rows, columns):
    """The certificate holds against the answer of many small steps (expectation maximisation), and against guesses."""
    generator = np.random.default_rng(seed)
    X = np.exp(generator.normal(0, 3, (rows, columns + 1))) * (generator.random((rows, columns + 1)) < 0.6)
    X[:, 0], X[-1, 1:] = 1.0, 0.0
    w, c = generator.uniform(0.5, 2, rows), np.exp(generator.normal(0, 2, columns + 1))
    found = maximise(X, w, c)
    value = lambda a: w @ np.log(X @ a) - c @ a  # noqa: E731
    assert (found.at >= 0).all()
    assert 0 <= found.gap <= TOLERANCE * w.sum()
    other = np.full(columns + 1, 1 / (columns + 1)) * w.sum() / c
    for _ in range(2000):
        other = other * (X.T @ (w / (X @ other))) / c
    assert value(other) <= value(found.at) + found.gap + 1e-9 * w.sum()
    guess = found.at * generator.uniform(0, 2, columns + 1) + generator.uniform(0, 0.01, columns + 1)
    assert value(guess) <= value(found.at) + found.gap + 1e-9 * w.sum()


def test_the_gradient_is_zero_where_a_weight_is_not_held_at_zero():
    """By other code: the model's own likelihood, with what is held back."""
    truth = example_model("hawkes_scales")
    train, dev = rd.simulate(truth, 100, end=6.0, seed=1), rd.simulate(truth, 30, end=6.0, seed=2)
    model = rd.fit(rd.Hawkes.from_streams(train, [3.0, 1.0, 0.3]), train, dev, progress=False)
    record = model.training_record
    assert record["ended"] == "converged"
    assert record["nats_below_maximum"] < TOLERANCE
    base, caused = (x.detach().clone().requires_grad_() for x in (model.base, model.excitation))
    held = torch.func.functional_call(
        _Likelihood(model),
        {"model.log_base": base.log(), "model.log_excitation": caused.log()},
        (make_batch(train, dtype=torch.float64),),
    )
    held = held + 0.5 * base.log().sum() - (torch.tensor(record["idle_events"]) * caused).sum()
    slopes = torch.autograd.grad(held, (base, caused))
    gain = [slope * value for slope, value in zip(slopes, (base, caused), strict=True)]  # of a change by a factor e
    assert max(float(g.detach().abs().max()) for g in gain) < 1.0
    assert float(slopes[1][model.excitation < 1e-8].max()) < 1.0  # what is at zero would only lose


class _Likelihood(torch.nn.Module):
    def __init__(self, model):
        super().__init__()
        self.model = model

    def forward(self, batch):
        return self.model.batch_log_likelihood(batch).sum()


def test_a_bursty_process_is_learned_in_all_its_scales():
    """Kernels a hundred and ten thousand times shorter than the mean gap: near the truth on new streams."""
    truth = rd.Hawkes([0.25], [[[0.3]], [[0.2]], [[0.25]]], [1e4, 1e2, 1.0])
    train, dev, test = (rd.simulate(truth, n, end=100.0, seed=s) for s, n in enumerate((100, 30, 60)))
    model = rd.fit(rd.Hawkes.from_streams(train, "auto"), train, dev, progress=False)
    short = model.log_likelihood(test) - truth.log_likelihood(test)
    assert float(short.sum().detach()) / test.num_events > -0.02
    caused, decays = model.excitation[:, 0, 0], model.decay
    for low, high, share in ((1e3, 1e6, 0.3), (10.0, 1e3, 0.2), (0.05, 10.0, 0.25)):
        found = float(caused[(decays >= low) & (decays < high)].sum().detach())
        assert found == pytest.approx(share, abs=0.08)


def test_a_power_law_is_a_sum_of_exponentials():
    """Omori's law falls like 1 / t^1.2 over four orders of magnitude: the grid follows it to a few percent."""
    decays = np.geomspace(1e3, 1e-2, 12)
    t = np.geomspace(1e-2, 30, 400)
    law = (t + 1e-2) ** -1.2
    parts = decays[None] * np.exp(-decays * t[:, None])
    weights, _ = nnls(parts / law[:, None], np.ones(len(t)))
    assert np.abs(parts @ weights / law - 1).max() < 0.05


def test_the_grid_covers_the_gaps():
    streams = rd.StreamSet(
        [
            rd.EventStream(np.cumsum(np.full(200, 0.01)), [0] * 200, start=0.0, end=100.0),
            rd.EventStream([], [], end=1.0),
        ],
        types=["a"],
    )
    decays = decay_grid(streams, "auto")
    np.testing.assert_allclose(decays[[0, -1]], [100.0, 0.01], rtol=1e-6)
    assert (decays[:-1] / decays[1:]).max() <= 4 + 1e-9
    assert len(decay_grid(streams, 3)) == 3
    assert decay_grid(streams, [3.0, 1.0]).tolist() == [3.0, 1.0]
    for wrong in ("all", 0, True, [], [1.0, -1.0], [[1.0]]):
        with pytest.raises(ModelError, match="scales must be"):
            decay_grid(streams, wrong)
    with pytest.raises(DataError, match="length zero"):
        decay_grid(rd.StreamSet([rd.EventStream([], [], end=0.0)], types=["a"]), "auto")
    lonely = rd.StreamSet([rd.EventStream([1.0], [0], end=4.0)] * 2, types=["a"])
    assert decay_grid(lonely, "auto").tolist() == [0.25]


def test_types_never_seen_and_events_at_the_end_do_no_harm():
    """Half an event keeps unseen types possible; tied events at the very end cannot make a weight infinite."""
    streams = rd.StreamSet(
        [rd.EventStream([1.0, 2.0, 2.0], [0, 0, 0], end=2.0), rd.EventStream([0.5], [0], end=2.0)], types=["a", "b"]
    )
    fit = fit_excitation(streams, streams, np.array([1e6, 1.0]), False)
    assert fit.base[1] == pytest.approx(0.5 / 4)
    assert np.isfinite(fit.excitation).all()
    assert (fit.excitation[:, :, 1] == 0).all()


def test_a_fit_is_kept_and_found_again(tmp_path):
    truth = example_model("hawkes_scales")
    train, dev = rd.simulate(truth, 20, end=5.0, seed=1), rd.simulate(truth, 10, end=5.0, seed=2)
    make = lambda streams: rd.Hawkes.from_streams(streams, 4)  # noqa: E731
    first = rd.fit(make, train, dev, directory=tmp_path, progress=False)
    with pytest.warns(rd.DataNotice, match="had finished"):
        second = rd.fit(make, train, dev, directory=tmp_path, progress=False)
    loaded = rd.load_model(tmp_path)
    for other in (second, loaded):
        torch.testing.assert_close(other.log_likelihood(dev), first.log_likelihood(dev), rtol=0, atol=0)
    assert loaded.training_record == first.training_record
    with pytest.raises(rd.TrainingError, match="holds a run with another config, data"):
        rd.fit(make, train[:10], dev, directory=tmp_path, progress=False)


def test_gradient_steps_go_on_from_the_fit():
    truth = example_model("hawkes_scales")
    train = rd.simulate(truth, 30, end=5.0, seed=1)
    model = rd.Hawkes.from_streams(train, 5)
    model.solve(train, train)
    value = model.log_likelihood(train).sum()
    value.backward()
    assert all(torch.isfinite(p.grad).all() and torch.isfinite(p).all() for p in model.parameters())
