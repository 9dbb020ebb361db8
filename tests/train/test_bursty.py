"""Neural models of bursty streams start from the scales of the gaps, and take steps that suit them."""

import math

import numpy as np
import pytest
import torch

import retrodict as rd
from retrodict.models.first_decays import first_decays
from retrodict.train.asked import streams_a_step

BURSTY = rd.Hawkes([0.3, 0.3], [[[0.3, 0.1], [0.1, 0.3]], [[0.1, 0.1], [0.1, 0.1]]], [300.0, 1.0])


def test_decays_cover_the_gaps_of_bursty_streams_alone():
    bursty = rd.simulate(BURSTY, 20, end=40.0, seed=0)
    decays = first_decays(bursty, 16)
    assert decays[0] < 1
    assert decays[-1] > 30
    assert np.allclose(np.diff(np.log(decays)), np.log(decays[1] / decays[0]))
    even = rd.StreamSet([rd.EventStream(np.arange(1.0, 20.0), np.zeros(19, int), end=20.0)], types=["a"])
    assert np.allclose(first_decays(even, 4), math.log(2))
    model = rd.NeuralHawkes.from_streams(bursty, 16)
    state = model.speeds(model.initial((1,)))
    assert float(state.rates.max() / state.rates.min()) > 30


def test_fast_cells_take_larger_steps_and_a_resumed_fit_is_the_same(tmp_path):
    streams = rd.simulate(BURSTY, 24, end=30.0, seed=0)

    def fit(epochs, folder):
        make = lambda train: rd.NeuralHawkes.from_streams(train, 8)  # noqa: E731
        options = {"epochs": epochs, "progress": False, "device": "cpu", "directory": tmp_path / folder}
        return rd.fit(make, streams[:20], streams[20:], **options)

    whole = fit(3, "whole")
    assert type(whole) is rd.NeuralHawkes
    assert "readout" in dict(whole.named_parameters())
    assert whole.digest() == rd.load_model(tmp_path / "whole").digest()
    fit(2, "parts")
    parts = fit(3, "parts")
    assert all(torch.equal(value, parts.state_dict()[name]) for name, value in whole.state_dict().items())
    with whole.in_training(streams):
        counted = whole.parametrizations.readout.original
        share = (whole.readout / counted)[0]
        assert float(share[-1]) > 3
        assert float(share[0]) == pytest.approx(1.0)


def test_long_and_few_streams_make_smaller_steps():
    long = rd.StreamSet(
        [rd.EventStream(np.linspace(1, 9, 200), np.zeros(200, int), end=10.0, id=i) for i in range(160)], ["a"]
    )
    short = rd.StreamSet(
        [rd.EventStream(np.linspace(1, 9, 5), np.zeros(5, int), end=10.0, id=i) for i in range(160)], ["a"]
    )
    assert (streams_a_step(long), streams_a_step(short), streams_a_step(short[:3])) == (8, 50, 50)
