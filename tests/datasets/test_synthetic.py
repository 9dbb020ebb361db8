"""The paper's synthetic recipe."""

from __future__ import annotations

import numpy as np
import torch

from retrodict.datasets.synthetic import DETERMINISTIC, synthetic


def test_streams_follow_the_recipe():
    model, (train, dev, test) = synthetic(seed=3, hidden_size=8, sizes=(60, 20, 20))
    assert (len(train), len(dev), len(test)) == (60, 20, 20)
    assert set(train.lengths) <= set(range(11, 21))
    assert len(set(train.lengths)) > 5
    last = train.event_times[train.offsets[1:] - 1]
    np.testing.assert_array_equal(train.ends, last)  # a stream ends with its last event
    assert max(float(p.detach().abs().max()) for p in model.parameters()) <= 1
    assert model.num_types == 4
    again = synthetic(seed=3, hidden_size=8, sizes=(60, 20, 20))
    np.testing.assert_array_equal(again.streams.test.event_times, test.event_times)
    for ours, theirs in zip(model.parameters(), again.model.parameters(), strict=True):
        assert torch.equal(ours, theirs)
    observed, missing = DETERMINISTIC.censor(dev, seed=0)
    assert set(observed.event_types) == {0, 1}
    assert set(missing.event_types) == {2, 3}
