"""Proposals and EM train on a GPU as they do on a CPU: batches are made there, and losses read a few steps late."""

from __future__ import annotations

import math

import pytest
import torch

import retrodict as rd
from tests.conftest import random_neural_hawkes

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="no GPU here")


@pytest.mark.parametrize(("missing", "mixing"), [(rd.ByType(0.5), 0), (rd.ByType(0.5), 5), (None, 5)])
def test_a_smoother_trains_to_about_the_same(tmp_path, missing, mixing):
    """For one mechanism, and for all."""
    model = random_neural_hawkes(seed=2).float()
    streams = rd.simulate(model, 60, end=3.0, seed=1)
    records = {}
    for device in ("cpu", "cuda"):
        torch.manual_seed(0)
        proposal = rd.Smoothing(model, missing, 8, mixing)
        rd.fit(
            proposal,
            streams[:50],
            streams[50:],
            epochs=2,
            batch_size=10,
            device=device,
            learn_from="data",
            progress=False,
        )
        records[device] = proposal.training_record
    for name in ("train_log_likelihood_per_event", "dev_log_likelihood_per_event"):
        assert records["cpu"][name] == pytest.approx(records["cuda"][name], abs=1e-2)


def test_em_trains(tmp_path):
    model = random_neural_hawkes(seed=2).float()
    seen, _ = rd.ByType(0.5).censor(rd.simulate(model, 40, end=3.0, seed=1))
    fitted = rd.fit_incomplete(
        rd.NeuralHawkes, seen[:30], rd.ByType(0.5), seen[30:], epochs=2, particles=8, device="cuda", progress=False
    )
    for row in fitted.history:
        assert row["train_loss"] != 0
        assert math.isfinite(row["train_loss"])
