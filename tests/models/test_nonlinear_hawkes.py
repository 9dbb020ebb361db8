"""Hawkes processes with negative influence: against the linear one, learned from streams, imputed with, refused."""

from __future__ import annotations

import numpy as np
import pytest
import torch

import retrodict as rd
from retrodict.smc.engines.native import NativeEngine
from retrodict.smc.options import Options

TRUTH = rd.NonlinearHawkes([0.6, 0.4], [[-0.9, 0.6], [0.7, -0.5]], 2.0, 0.1)
LINEAR = rd.Hawkes([0.3, 0.2], [[[0.2, 0.1], [0.1, 0.2]], [[0.1, 0.2], [0.2, 0.1]]], [1000.0, 1.0]).double()


def almost_linear(softness: float) -> rd.NonlinearHawkes:
    return rd.NonlinearHawkes(LINEAR.base, LINEAR.excitation, LINEAR.decay, softness).double()


def test_a_hard_softplus_of_positive_influence_is_the_linear_process_in_bursts_too():
    streams = rd.simulate(LINEAR, 20, end=50.0, seed=0)
    expected = LINEAR.log_likelihood(streams).detach()
    hard, soft = (almost_linear(s).log_likelihood(streams).detach() for s in (0.01, 0.3))
    np.testing.assert_allclose(hard, expected, rtol=0, atol=1e-4)
    assert (soft - expected).abs().max() > 0.1


def test_evidence_is_that_of_the_linear_process():
    """With the same seed particles are the same but for what the softplus bends."""
    missing = rd.ByType([0.5, 0.3])
    observed, _ = missing.censor(rd.simulate(LINEAR, 5, end=10.0, seed=1), seed=2)
    one, other = (
        rd.impute(observed, rd.Filtering(model, missing), 500, seed=3, sampler="thinning", engine="torch").log_evidence
        for model in (LINEAR, almost_linear(0.01))
    )
    np.testing.assert_allclose(one, other, rtol=0, atol=0.01)


def test_what_inhibits_is_learned(tmp_path):
    train, dev, test = (rd.simulate(TRUTH, n, end=60.0, seed=i) for i, n in enumerate((100, 30, 60)))
    model = rd.fit(rd.NonlinearHawkes, train, dev, directory=tmp_path, device="cpu", progress=False)
    linear = rd.fit(rd.Hawkes.from_streams(train, "auto"), train, dev, progress=False)

    def nats(fitted: rd.Model) -> float:
        return float(fitted.log_likelihood(test, score_end=False).double().sum().detach()) / test.num_events

    assert nats(TRUTH) - nats(model) < 0.01
    assert nats(TRUTH) - nats(linear) > 0.1
    assert torch.equal(model.influence.sum(0).sign(), TRUTH.influence.sum(0).sign())
    again = rd.load_model(tmp_path)
    assert torch.equal(again.log_likelihood(test), model.log_likelihood(test))


def test_the_native_engine_says_why_not_and_auto_goes_on_by_torch():
    missing = rd.ByType(0.5)
    proposal = rd.Filtering(TRUTH, missing)
    assert "not NonlinearHawkes" in str(NativeEngine().refuses(proposal, Options()))
    observed, _ = missing.censor(rd.simulate(TRUTH, 3, end=10.0, seed=1), seed=2)
    auto, torch_s = (rd.impute(observed, proposal, 20, seed=3, engine=engine) for engine in ("auto", "torch"))
    assert np.array_equal(auto.log_evidence, torch_s.log_evidence)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (([0.1], [[0.1, 0.2]], 1.0, 0.1), "influence must be 1 x 1"),
        (([0.1], [[0.1]], -1.0, 0.1), "decay must be positive"),
        (([0.1], [[0.1]], 1.0, 0.0), "softness must be positive"),
        (([float("nan")], [[0.1]], 1.0, 0.1), "base must be finite"),
        (([], [[0.1]], 1.0, 0.1), "num_types must be a positive"),
        (([0.1], [[[0.1]], [[0.2]]], 1.0, 0.1), "decay"),
    ],
)
def test_wrong_arguments_are_named(arguments, words):
    with pytest.raises(rd.ModelError, match=words):
        rd.NonlinearHawkes(*arguments)
