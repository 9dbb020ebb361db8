"""Smoothers trained for mechanisms that look at dates or at the preceding events."""

from __future__ import annotations

import numpy as np
import pytest
import torch

import retrodict as rd

MODEL = rd.Hawkes([0.6, 0.05], [[0.0, 0.9], [0.0, 0.0]], 1.5)
MECHANISMS = {
    "windows": rd.Windows([(20.0, 12.0)], types="0", every=24.0),
    "after": rd.After("1", 2.0, rates={"0": 1.0}, otherwise={"0": 0.5}),
}


def streams(count: int, seed: int) -> rd.StreamSet:
    """Streams that last 12 and start at any hour."""
    starts = np.random.default_rng(seed).integers(0, 24, count).astype(float)
    drawn = rd.simulate(MODEL, count, end=12.0, seed=seed)
    return rd.StreamSet(
        [rd.EventStream(s.times + a, s.types, a, a + 12.0, s.id) for s, a in zip(drawn, starts, strict=True)],
        types=("0", "1"),
    )


@pytest.mark.parametrize("name", MECHANISMS)
def test_a_smoother_looks_ahead(name):
    """Effects tell of hidden causes: log q of what was hidden rises above filtering's by 3 standard errors."""
    mechanism = MECHANISMS[name]
    torch.manual_seed(0)
    smoother = rd.Smoothing(MODEL, mechanism, 8)
    rd.fit(smoother, streams(150, 1), streams(30, 2), epochs=8, learning_rate=0.02, progress=False)
    observed, missing = mechanism.censor(streams(200, 3), seed=4)
    with torch.no_grad():
        gain = smoother.log_prob(missing, observed) - rd.Filtering(MODEL, mechanism).log_prob(missing, observed)
    assert float(gain.mean()) > 3 * float(gain.std()) / np.sqrt(len(gain))
