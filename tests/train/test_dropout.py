"""Dropout in training: hidden units, the same ones in a run that is resumed, and what it is refused for."""

from __future__ import annotations

import pytest
import torch

import retrodict as rd
from retrodict.events.batch import make_batch
from retrodict.models.dropout import Dropout
from retrodict.models.quadrature import GaussLegendre
from retrodict.train.objective import Likelihood
from tests.conftest import random_state_space

TRUTH = rd.Hawkes([0.3, 0.2], [[0.1, 0.6], [0.5, 0.0]], 2.0)


@pytest.fixture(scope="module")
def data():
    return rd.simulate(TRUTH, 60, end=15.0, seed=1), rd.simulate(TRUTH, 30, end=15.0, seed=2)


def test_a_mask_hides_a_share_and_keeps_the_mean():
    mask = Dropout(0.2, 3, torch.device("cpu")).mask(400, 500, dtype=torch.float64)
    assert set(mask.unique().tolist()) == {0.0, 1.25}
    assert abs(float(mask.mean()) - 1) < 4 * 0.5 / 200_000**0.5


@pytest.mark.parametrize("layers", [1, 2])
def test_hidden_units_are_as_if_they_were_not_there(layers, monkeypatch):
    """Units of a mask that is the same for all streams, beside a model whose weights from these units are changed."""
    model = random_state_space(layers=layers, size=4)
    batch = make_batch(rd.simulate(model, 5, end=4.0, seed=1), dtype=torch.float64)
    shown = torch.tensor([[0.0, 2.0, 2.0, 0.0], [2.0, 0.0, 2.0, 2.0]][:layers], dtype=torch.float64)
    monkeypatch.setattr(model, "dropout", Dropout(0.5, 0, torch.device("cpu")))
    monkeypatch.setattr(Dropout, "mask", lambda self, n, B, U, dtype: shown[:, None].expand(n, B, U))
    found = model.batch_log_likelihood(batch, GaussLegendre(8))
    monkeypatch.setattr(model, "dropout", None)
    with torch.no_grad():
        model.readout *= shown.flatten()
        for layer in model.each()[1:]:
            layer.across *= shown[0]
            layer.turn *= shown[0]
        expected = model.batch_log_likelihood(batch, GaussLegendre(8))
    torch.testing.assert_close(found.detach(), expected, rtol=1e-10, atol=1e-10)


def test_only_steps_of_training_hide_units(data):
    model = rd.StateSpace.from_streams(data[0], 8, 2)
    objective = Likelihood(model, *data, dropout=0.3)
    objective.epoch_batches(20, 0, 0)
    batch = objective.batch(torch.arange(10).numpy(), 0)
    losses = [float(objective.loss(batch, training)[0].detach()) for training in (True, True, False, False)]
    assert losses[0] != losses[1] != losses[2] == losses[3]
    assert model.dropout is None


def test_a_run_that_goes_on_hides_what_it_would_have_hidden(data, tmp_path):
    how = {"dropout": 0.2, "progress": False, "patience": 50}
    make = lambda train: rd.StateSpace.from_streams(train, 8, 2)  # noqa: E731
    whole = rd.fit(make, *data, epochs=4, **how)
    rd.fit(make, *data, epochs=2, directory=tmp_path, **how)
    again = rd.fit(make, *data, epochs=4, directory=tmp_path, **how)
    other = rd.fit(make, *data, epochs=4, **{**how, "dropout": 0.0})
    states = [model.state_dict() for model in (whole, again, other)]
    assert all(torch.equal(states[0][name], states[1][name]) for name in states[0])
    assert not torch.equal(states[0]["readout"], states[2]["readout"])
    assert whole.training_record["dropout"] == 0.2
    with pytest.raises(rd.TrainingError, match="holds a run with another"):
        rd.fit(make, *data, epochs=4, directory=tmp_path, **{**how, "dropout": 0.1})


def test_it_is_refused_where_it_does_nothing(data):
    with pytest.raises(rd.ModelError, match=r"dropout is for rd\.StateSpace, not NeuralHawkes"):
        rd.fit(rd.NeuralHawkes, *data, dropout=0.1)
    for wrong in (-0.1, 1.0):
        with pytest.raises(rd.ModelError, match="at least 0 and below 1"):
            rd.fit(rd.StateSpace, *data, dropout=wrong)
