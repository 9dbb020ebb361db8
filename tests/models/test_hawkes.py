"""The Hawkes process against its definition, and fitting against the theory of maximum likelihood."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch

from retrodict.errors import ModelError
from retrodict.events.batch import make_batch
from retrodict.events.stream import EventStream
from retrodict.events.stream_set import StreamSet
from retrodict.models import Hawkes
from retrodict.models.simulate import simulate
from retrodict.train.fitting import fit
from tests.conftest import example_model


def double_sum(base, excitation, decay, stream) -> float:
    """log p by the textbook double sum over pairs of events, with no recursion."""
    decays = np.broadcast_to(decay, len(base))
    total = -sum(base) * stream.duration
    for i, (t, k) in enumerate(stream):
        t -= stream.start
        rate = base[k]
        for s, j in list(stream)[:i]:
            rate += excitation[j][k] * decays[k] * math.exp(-decays[k] * (t - (s - stream.start)))
        total += math.log(rate)
        for k2 in range(len(base)):
            total -= excitation[k][k2] * (1 - math.exp(-decays[k2] * (stream.duration - t)))
    return total


@pytest.mark.parametrize("decay", [1.3, [1.5, 0.8, 3.0]])
@pytest.mark.parametrize("length", [0, 1, 63, 64, 65, 200])
def test_log_likelihood_equals_the_double_sum(decay, length):
    generator = np.random.default_rng(length)
    base, excitation = [0.5, 0.0, 0.2], generator.uniform(0, 0.5, (3, 3)).tolist()
    times = np.sort(generator.uniform(0, 30, length))
    types = generator.integers(0, 3, length)
    types[:1] = 0  # base rates are zero for type 1: the first event must be possible
    stream = EventStream(times, types, end=31.0)
    model = Hawkes(base, excitation, decay).double()
    # The parameters as the model holds them: logarithms round a little.
    held = (model.base.tolist(), model.excitation.tolist(), model.decay.tolist())
    expected = double_sum(*held, stream)
    assert model.log_likelihood(stream).item() == pytest.approx(expected, rel=0, abs=1e-10 * max(1, abs(expected)))


def test_a_batch_of_unequal_lengths_is_the_streams_one_by_one():
    model = example_model("hawkes")
    streams = simulate(model, 20, end=[20.0] * 10 + [60.0] * 10, seed=3)
    assert streams.lengths.max() > 64 > streams.lengths.min()
    together = model.log_likelihood(streams)
    apart = torch.cat([model.log_likelihood(streams[i : i + 1]) for i in range(20)])
    torch.testing.assert_close(together, apart, rtol=0, atol=1e-9)


def test_an_event_that_cannot_happen_has_probability_zero():
    model = Hawkes([0.5, 0.0], [[0.2, 0.0], [0.0, 0.0]], 1.0)
    stream = EventStream([1.0], [1], end=2.0)
    assert model.log_likelihood(StreamSet([stream], types=["a", "b"])).item() == -math.inf


def test_fitting_recovers_parameters_within_three_standard_errors():
    """Standard errors from the observed information; all 7 parameters within 3, false alarm below 2 %."""
    truth = Hawkes([0.4, 0.2], [[0.35, 0.25], [0.15, 0.3]], 1.8).double()
    streams = simulate(truth, 500, end=40.0, seed=21)
    model = fit(
        Hawkes.from_streams(streams).double(),
        streams,
        streams,
        batch_size=500,
        epochs=400,
        patience=30,
        progress=False,
    )
    names = [name for name, _ in model.named_parameters()]
    point = torch.cat([p.detach().reshape(-1) for p in model.parameters()])
    batch = make_batch(streams, dtype=torch.float64)

    def negative_log_likelihood(flat: torch.Tensor) -> torch.Tensor:
        shapes = [p.shape for p in model.parameters()]
        parts = flat.split([s.numel() for s in shapes])
        held = {n: p.reshape(s) for n, p, s in zip(names, parts, shapes, strict=True)}
        terms = torch.func.functional_call(_Terms(model), {f"model.{n}": v for n, v in held.items()}, (batch,))
        return terms

    information = torch.autograd.functional.hessian(negative_log_likelihood, point)
    errors = torch.linalg.inv(information).diagonal().sqrt()
    target = torch.cat([p.detach().reshape(-1) for p in truth.parameters()])
    z = (point - target) / errors
    assert z.abs().max() < 3, z
    assert errors.max() < 0.2  # informative enough for the test to be able to fail
    # And it is the maximum: the gradient is small against the curvature.
    gradient = torch.autograd.functional.jacobian(negative_log_likelihood, point)
    assert (gradient @ torch.linalg.inv(information) @ gradient).sqrt() < 0.2


class _Terms(torch.nn.Module):
    def __init__(self, model):
        super().__init__()
        self.model = model

    def forward(self, batch):
        return -self.model.batch_log_likelihood(batch).sum()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (([0.1], [[0.1, 0.2]], 1.0), "excitation must have shape 1 x 1, but have shape (1, 2)"),
        (([-0.1], [[0.1]], 1.0), "base must be finite and not negative"),
        (([0.1], [[float("nan")]], 1.0), "excitation must be finite and not negative"),
        (([0.1], [[0.1]], 0.0), "decay must be positive"),
        (([0.1, 0.2], [[0.1, 0.1], [0.1, 0.1]], [1.0, 2.0, 3.0]), "decay must have shape 2"),
    ],
)
def test_impossible_parameters_are_refused(arguments, message):
    with pytest.raises(ModelError, match=message.replace("(", r"\(").replace(")", r"\)")):
        Hawkes(*arguments)
