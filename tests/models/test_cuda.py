"""On a GPU the models compute the same numbers; these tests run where there is one."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from retrodict.events.batch import make_batch
from retrodict.models import NeuralHawkes
from retrodict.models.simulate import simulate
from retrodict.train.fitting import fit
from tests.conftest import KINDS, example_model

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="no GPU here")


@pytest.mark.parametrize("kind", KINDS)
def test_likelihood_and_gradients_agree_with_the_cpu(kind):
    model = example_model(kind)
    streams = simulate(model, 30, end=9.0, seed=1)
    batch = make_batch(streams, dtype=torch.float64)
    here = model.batch_log_likelihood(batch)
    gradients = torch.autograd.grad(here.sum(), list(model.parameters()))
    model.cuda()
    there = model.batch_log_likelihood(make_batch(streams, dtype=torch.float64, device="cuda"))
    torch.testing.assert_close(there.cpu(), here, rtol=0, atol=1e-9)
    for a, b in zip(torch.autograd.grad(there.sum(), list(model.parameters())), gradients, strict=True):
        torch.testing.assert_close(a.cpu(), b, rtol=1e-8, atol=1e-9)


@pytest.mark.parametrize("kind", KINDS)
def test_a_seed_gives_the_same_streams_as_on_the_cpu(kind):
    model = example_model(kind)
    here = simulate(model, 40, end=10.0, seed=3)
    there = simulate(model.cuda(), 40, end=10.0, seed=3)
    np.testing.assert_array_equal(there.event_types, here.event_types)
    np.testing.assert_allclose(there.event_times, here.event_times, rtol=0, atol=1e-9)


def test_fitting_on_the_gpu_ends_with_the_model_back_home():
    truth = example_model("hawkes").float()
    train, dev = simulate(truth, 100, end=10.0, seed=1), simulate(truth, 50, end=10.0, seed=2)
    model = fit(NeuralHawkes(3, 16), train, dev, epochs=10, learning_rate=0.01, device="cuda", progress=False)
    assert model.device.type == "cpu"
    here = float(model.log_likelihood(dev).sum().detach()) / dev.num_events
    assert here == pytest.approx(model.training_record["dev_log_likelihood_per_event"], abs=1e-3)
    assert torch.isfinite(model.cuda().log_likelihood(dev)).all()
