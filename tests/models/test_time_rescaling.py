"""Simulated events, run through the integrated intensity, are a unit-rate Poisson process.

The compensator at the events of all streams, laid end to end, has independent Exp(1) increments. A
Kolmogorov-Smirnov test on 20,000 of them has a false-alarm rate of 0.1 % here (the seeds are fixed) and
catches an intensity that is 5 % wrong.
"""

from __future__ import annotations

import numpy as np
import pytest
import torch
from scipy import stats

from retrodict.events.batch import iterate_batches, make_batch
from retrodict.events.stream_set import StreamSet
from retrodict.models import Model
from retrodict.models.quadrature import GaussLegendre
from retrodict.models.simulate import simulate
from tests.conftest import KINDS, example_model

EVENTS = 20_000


def rescaled_gaps(model: Model, streams: StreamSet) -> np.ndarray:
    """Increments of the total compensator between consecutive events, streams end to end in their order."""
    batch = make_batch(streams, dtype=torch.float64)
    with torch.no_grad():
        areas = model.terms(batch, GaussLegendre(10)).compensators.cumsum(1).numpy()
    edges, passed = [np.zeros(1)], 0.0
    for row, count in zip(areas, streams.lengths, strict=True):
        edges.append(passed + row[:count])
        passed += row[-1]
    return np.diff(np.concatenate(edges))


@pytest.mark.parametrize("kind", KINDS)
def test_rescaled_gaps_are_exponential(kind):
    model = example_model(kind)
    gaps = rescaled_gaps(model, simulate(model, 800, end=25.0, seed=11))
    assert len(gaps) >= EVENTS
    gaps = gaps[:EVENTS]
    assert stats.kstest(gaps, "expon").pvalue > 1e-3
    assert stats.kstest(gaps * 1.05, "expon").pvalue < 1e-3
    # No memory: consecutive gaps are not correlated.
    assert abs(np.corrcoef(gaps[:-1], gaps[1:])[0, 1]) < 3.3 / np.sqrt(EVENTS)


@pytest.mark.parametrize("kind", KINDS)
def test_types_follow_their_shares_of_the_intensity(kind):
    model = example_model(kind)
    streams = simulate(model, 400, end=25.0, seed=12)
    expected, variance, counts = np.zeros(3), np.zeros(3), np.bincount(streams.event_types, minlength=3)
    with torch.no_grad():
        for batch in iterate_batches(streams, 500, dtype=torch.float64):
            state = model.initial(batch.durations.shape)
            for i in range(batch.types.shape[1]):
                live = batch.mask[:, i]
                rates = model.intensity(state, batch.times[:, i])[live]
                shares = (rates / rates.sum(-1, keepdim=True)).numpy()
                expected += shares.sum(0)
                variance += (shares * (1 - shares)).sum(0)
                state = model.update(state, batch.types[:, i], batch.times[:, i])
    assert (np.abs(counts - expected) < 4 * np.sqrt(variance)).all()
