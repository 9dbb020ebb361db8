"""The neural Hawkes process: the paper's cell equations, units of time, extreme inputs."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from retrodict.errors import ModelError
from retrodict.events.stream import EventStream
from retrodict.events.stream_set import StreamSet
from retrodict.models import NeuralHawkes
from retrodict.models.ctlstm import Cells, ContinuousTimeLSTM, hidden_at
from retrodict.models.ctlstm_project import project, states
from retrodict.models.ctlstm_scan import Plain
from retrodict.models.quadrature import GaussLegendre
from retrodict.models.simulate import simulate
from tests.conftest import random_neural_hawkes


def test_the_cell_is_the_papers():
    """Appendix B.1 written out gate by gate in numpy."""
    torch.manual_seed(0)
    D, lstm = 4, ContinuousTimeLSTM(3, 4).double()
    W, U, d = (p.detach().numpy() for p in (lstm.by_type, lstm.by_hidden, lstm.bias))
    rng = np.random.default_rng(0)
    start, target, decay, output = rng.normal(size=(4, D))
    decay = np.abs(decay)
    k, elapsed = 2, 0.7
    sigmoid = lambda x: 1 / (1 + np.exp(-x))  # noqa: E731
    c_t = target + (start - target) * np.exp(-decay * elapsed)
    h_t = output * (2 * sigmoid(2 * c_t) - 1)
    gate = {
        name: W[k, g * D : (g + 1) * D] + h_t @ U[:, g * D : (g + 1) * D] + d[g * D : (g + 1) * D]
        for g, name in enumerate(["i", "f", "o", "i_bar", "f_bar", "z", "decay"])
    }
    z = 2 * sigmoid(gate["z"]) - 1
    expected = (
        sigmoid(gate["f"]) * c_t + sigmoid(gate["i"]) * z,
        sigmoid(gate["f_bar"]) * target + sigmoid(gate["i_bar"]) * z,
        np.log1p(np.exp(gate["decay"])),
        sigmoid(gate["o"]),
    )
    cells = Cells(*(torch.as_tensor(x)[None] for x in (start, target, decay, output)))
    read = lstm.read(cells, torch.tensor([k]), torch.tensor([elapsed], dtype=torch.float64))
    for ours, theirs in zip(read, expected, strict=True):
        np.testing.assert_allclose(ours[0].detach(), theirs, rtol=1e-12)


def test_scan_gradients_by_finite_differences():
    torch.manual_seed(1)
    lstm = ContinuousTimeLSTM(4, 3).double()
    types = torch.randint(4, (5, 2))
    gaps = torch.rand(5, 2, dtype=torch.float64)

    def run(by_type, by_hidden, bias):
        lstm2 = ContinuousTimeLSTM(4, 3).double()
        cells, hidden = torch.func.functional_call(
            _Scan(lstm2),
            {"lstm.by_type": by_type, "lstm.by_hidden": by_hidden, "lstm.bias": bias},
            (types, gaps),
        )
        return (*cells, hidden)

    inputs = tuple(p.detach().clone().requires_grad_() for p in lstm.parameters())
    assert torch.autograd.gradcheck(run, inputs)


@pytest.mark.parametrize("lengths", [[6, 4, 4, 1], [1, 4, 2, 3], [2, 2, 2, 2]])
def test_streams_of_several_lengths_cost_no_padding_and_are_read_the_same(lengths):
    """What follows a stream's last input is undefined, and no gradient comes from it."""
    torch.manual_seed(1)
    lstm = ContinuousTimeLSTM(4, 3).double()
    types, gaps = torch.randint(4, (6, 4)), torch.rand(6, 4, dtype=torch.float64)
    real = (torch.arange(6)[:, None] < torch.tensor(lengths))[..., None]
    found = []
    for given in (None, torch.tensor(lengths)):
        cells, hidden = lstm.scan(types, gaps, given)
        fields = [torch.where(real, field, 0.0) for field in (*cells, hidden)]
        loss = sum((field * (i + 1)).sin().sum() for i, field in enumerate(fields))
        found.append((*fields, *torch.autograd.grad(loss, list(lstm.parameters()))))
    for plain, packed in zip(*found, strict=True):
        torch.testing.assert_close(packed, plain, rtol=1e-12, atol=1e-12)
    rows = Plain(torch.tensor(lengths)).rows
    assert sum(rows) == sum(lengths) or sorted(lengths, reverse=True) != lengths
    assert len(rows) == max(lengths)


class _Scan(torch.nn.Module):
    def __init__(self, lstm):
        super().__init__()
        self.lstm = lstm

    def forward(self, types, gaps):
        return self.lstm.scan(types, gaps)


def test_projection_and_its_gradients():
    torch.manual_seed(2)
    fields = [torch.randn(5, 3, dtype=torch.float64, requires_grad=True) for _ in range(4)]
    readout = torch.randn(2, 3, dtype=torch.float64, requires_grad=True)
    elapsed = torch.rand(5, 4, dtype=torch.float64)
    cells = Cells(*fields)
    spread = Cells(*(f[:, None] for f in cells))
    torch.testing.assert_close(project(cells, elapsed, readout), hidden_at(spread, elapsed) @ readout.t())
    assert torch.autograd.gradcheck(lambda *a: project(Cells(*a[:4]), elapsed, a[4]), (*fields, readout))
    with torch.no_grad():
        torch.testing.assert_close(states(cells, elapsed), hidden_at(spread, elapsed))


def test_the_time_unit_does_not_matter():
    """In minutes instead of hours the density is 60 times smaller per event; nothing else changes."""
    model = random_neural_hawkes()
    streams = simulate(model, 10, end=5.0, seed=1)
    minutes = StreamSet(
        [EventStream(s.times * 60, s.types, end=s.end * 60, id=s.id) for s in streams], types=streams.types
    )
    values = model.log_likelihood(streams)
    model.time_scale.fill_(60.0)
    rescaled = model.log_likelihood(minutes)
    lengths = torch.as_tensor(streams.lengths, dtype=torch.float64)
    torch.testing.assert_close(rescaled, values - lengths * np.log(60.0), rtol=0, atol=1e-9)


def test_training_data_set_the_time_scale_once():
    streams = StreamSet([EventStream([100.0, 200.0, 300.0], [0, 1, 0], end=400.0)], types=["a", "b"])
    model = NeuralHawkes.from_streams(streams)
    assert float(model.time_scale) == 100.0
    assert model.hidden_size == 16
    other = StreamSet([EventStream([1.0], [0], end=2.0)], types=["a", "b"])
    model.adapt(other)
    assert float(model.time_scale) == 100.0
    assert float(NeuralHawkes(2, 8, time_scale=3.0).time_scale) == 3.0


def test_few_nodes_are_enough():
    model = random_neural_hawkes(num_types=4, hidden_size=16)
    streams = simulate(model, 20, end=10.0, seed=2)
    with torch.no_grad():
        exact = model.log_likelihood(streams, integral=GaussLegendre(40))
        errors = [
            float((model.log_likelihood(streams, integral=GaussLegendre(n)) - exact).abs().mean()) for n in (2, 4, 8)
        ]
    assert errors[0] > errors[1] > errors[2]
    assert errors[2] < 1e-4


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_extreme_gaps_and_readouts_stay_finite(dtype):
    model = NeuralHawkes(2, 4, time_scale=1.0).to(dtype)
    with torch.no_grad():
        model.readout.fill_(-1e4)
    streams = StreamSet(
        [EventStream([1e-12, 1e-12, 1e6], [0, 1, 0], end=1e9), EventStream([], [], end=0.0)], types=["a", "b"]
    )
    values = model.log_likelihood(streams)
    assert torch.isfinite(values).all()
    values.sum().backward()
    assert all(torch.isfinite(p.grad).all() for p in model.parameters())


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"num_types": 0}, "num_types must be a positive whole number, but is 0"),
        ({"num_types": 2, "hidden_size": -3}, "hidden_size must be a positive whole number"),
        ({"num_types": 2, "time_scale": 0.0}, "time_scale must be a positive number"),
    ],
)
def test_impossible_sizes_are_refused(arguments, message):
    with pytest.raises(ModelError, match=message):
        NeuralHawkes(**arguments)


def test_other_vocabularies_are_refused_or_matched_by_name():
    model = NeuralHawkes(2, 4)
    model.types = ("pick-up", "drop-off")
    swapped = StreamSet([EventStream([1.0, 2.0], [0, 1], end=3.0)], types=["drop-off", "pick-up"])
    straight = StreamSet([EventStream([1.0, 2.0], [1, 0], end=3.0)], types=["pick-up", "drop-off"])
    assert model.log_likelihood(swapped).item() == model.log_likelihood(straight).item()
    with pytest.raises(ModelError, match="the model has 2 types but the streams have 3"):
        model.log_likelihood(StreamSet([EventStream([1.0], [0], end=3.0)], types=["0", "1", "2"]))
    with pytest.raises(ValueError, match="unknown type 'PICKUP'"):
        model.log_likelihood(StreamSet([EventStream([1.0], [0], end=3.0)], types=["PICKUP", "DROPOFF"]))
    with pytest.raises(ValueError, match="unknown type 'lunch'; known types are 'pick-up', 'drop-off'"):
        model.log_likelihood(StreamSet([EventStream([1.0], [1], end=3.0)], types=["pick-up", "lunch"]))
