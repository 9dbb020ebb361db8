"""State spaces: the equations one by one, scans of any length, speeds from the data, extreme inputs."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
import torch

import retrodict as rd
from retrodict.models.linear_scan import linear_scan
from tests.conftest import random_state_space
from tests.models.contract import random_state


def one_by_one(fade: torch.Tensor, jump: torch.Tensor) -> torch.Tensor:
    x = [jump[0]]
    for own, added in zip(fade[1:], jump[1:], strict=True):
        x.append(own * x[-1] + added)
    return torch.stack(x)


@pytest.mark.parametrize("length", [*range(1, 10), 33, 64, 100])
def test_a_scan_is_the_recurrence(length):
    torch.manual_seed(0)
    fade = torch.rand(length, 2, 3, dtype=torch.float64, requires_grad=True)
    jump = torch.randn(length, 2, 3, dtype=torch.float64, requires_grad=True)
    weights = torch.randn(length, 2, 3, dtype=torch.float64)
    found = []
    for scan in (linear_scan, one_by_one):
        x = scan(fade, jump)
        slopes = torch.autograd.grad((x * weights).sum(), [fade, jump], materialize_grads=True)
        found.append((x, *slopes))
    for ours, theirs in zip(*found, strict=True):
        torch.testing.assert_close(ours, theirs, rtol=1e-12, atol=1e-12)


def test_the_unit_is_what_its_equations_say():
    """Two layers of two events, written out in numpy."""
    model = random_state_space(num_types=2, size=3, layers=2)
    events, end = [(0.4, 1), (1.1, 0)], 1.7
    sigmoid = lambda x: 1 / (1 + np.exp(-x))  # noqa: E731
    weights = [{n: p.detach().numpy() for n, p in layer.named_parameters()} for layer in model.layers]
    decays = [np.append(np.exp(w["log_decay"]), 0.0)[:, None] for w in weights]
    x, last = [np.zeros((4, 3))] * 2, 0.0
    for time, kind in [(0.0, 2), *events]:
        below = None
        for i, w in enumerate(weights):
            gates, jumps = w["gates"][kind], w["jumps"][kind]
            if below is not None:
                turn = w["turn"] @ below
                gates, jumps = gates + turn[:12], jumps + turn[12:]
            x[i] = sigmoid(gates).reshape(4, 3) * np.exp(-decays[i] * (time - last)) * x[i] + jumps.reshape(4, 3)
            below = np.tanh(w["bias"] + x[i].sum(0) + (0 if below is None else w["across"] @ below))
        last = time
    first = np.tanh(weights[0]["bias"] + (x[0] * np.exp(-decays[0] * (end - last))).sum(0))
    second = weights[1]["bias"] + (x[1] * np.exp(-decays[1] * (end - last))).sum(0) + weights[1]["across"] @ first
    drive = model.readout.detach().numpy() @ np.concatenate([first, np.tanh(second)]) + model.offset.detach().numpy()
    state = model.initial((1,))
    for time, kind in events:
        state = model.update(state, torch.tensor([kind]), torch.tensor([time], dtype=torch.float64))
    at = torch.tensor([end], dtype=torch.float64)
    np.testing.assert_allclose(model.drive(state, at)[0].detach(), drive, rtol=1e-12)
    np.testing.assert_allclose(model.intensity(state, at)[0].detach(), np.log1p(np.exp(drive)), rtol=1e-12)


def test_speeds_cover_the_gaps_of_the_data_once():
    times = np.cumsum([1e-3] * 50 + [1.0] * 50)
    streams = rd.StreamSet([rd.EventStream(times, [0, 1] * 50, end=60.0)], types=["a", "b"])
    model = rd.StateSpace.from_streams(streams)
    decays = model.layers[0].decays.detach().double() / model.time_scale
    assert decays[-1] == 0
    np.testing.assert_allclose(decays[[0, -2]], [1e3, 1 / 60], rtol=1e-4)
    ratios = decays[:-2] / decays[1:-1]
    np.testing.assert_allclose(ratios, ratios[0].expand(len(ratios)), rtol=1e-4)
    before = model.state_dict()
    model.adapt(rd.StreamSet([rd.EventStream([1.0], [0], end=2.0)], types=["a", "b"]))
    assert all(torch.equal(value, before[name]) for name, value in model.state_dict().items())


@pytest.mark.parametrize("layers", [1, 2])
def test_the_time_unit_does_not_matter(layers):
    """In minutes instead of hours the density is 60 times smaller per event; nothing else changes."""
    model = random_state_space(layers=layers)
    streams = rd.simulate(model, 10, end=5.0, seed=1)
    minutes = rd.StreamSet(
        [rd.EventStream(s.times * 60, s.types, end=s.end * 60, id=s.id) for s in streams], types=streams.types
    )
    values = model.log_likelihood(streams)
    model.time_scale.fill_(60.0)
    lengths = torch.as_tensor(streams.lengths, dtype=torch.float64)
    torch.testing.assert_close(model.log_likelihood(minutes), values - lengths * np.log(60.0), rtol=0, atol=1e-9)


@torch.no_grad()
def test_ranges_grow_with_the_interval_and_close_in_on_the_value():
    model = random_state_space(layers=2)
    state = random_state(model, 50, 4, torch.Generator().manual_seed(1))
    at = state.time + 0.2
    widths = []
    for length in (0.0, 1e-3, 0.1, 1.0):
        low, high = model.feature_range(state, at, at + length)
        widths.append(high - low)
        assert (low <= model.features(state, at) + 1e-12).all()
        assert (model.features(state, at) <= high + 1e-12).all()
    assert widths[0].max() < 1e-12
    assert all((shorter <= longer).all() for shorter, longer in pairwise(widths))


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_extreme_gaps_and_readouts_stay_finite(dtype):
    model = rd.StateSpace(2, 4, layers=2, time_scale=1.0).to(dtype)
    with torch.no_grad():
        model.readout.fill_(-1e4)
    streams = rd.StreamSet(
        [rd.EventStream([1e-12, 1e-12, 1e6], [0, 1, 0], end=1e9), rd.EventStream([], [], end=0.0)], types=["a", "b"]
    )
    values = model.log_likelihood(streams)
    assert torch.isfinite(values).all()
    values.sum().backward()
    assert all(torch.isfinite(p.grad).all() for p in model.parameters())


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"num_types": 0}, "num_types must be a positive whole number, but is 0"),
        ({"num_types": 2, "size": -3}, "size must be a positive whole number"),
        ({"num_types": 2, "layers": 0}, "layers must be a positive whole number"),
        ({"num_types": 2, "scales": 1.5}, "scales must be a positive whole number"),
        ({"num_types": 2, "time_scale": 0.0}, "time_scale must be a positive number"),
    ],
)
def test_impossible_sizes_are_refused(arguments, message):
    with pytest.raises(rd.ModelError, match=message):
        rd.StateSpace(**arguments)
