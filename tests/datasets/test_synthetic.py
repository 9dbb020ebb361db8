"""The paper's synthetic recipe."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from retrodict.datasets.synthetic import DETERMINISTIC, synthetic, synthetic_set
from retrodict.errors import DataError


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


def test_the_ten_sets_are_one_call_each():
    sizes = (40, 5, 5)
    sets = [synthetic_set(number, sizes) for number in range(10)]
    assert all(tuple(map(len, parts)) == sizes for parts in sets)
    assert sets[4] == synthetic(4, sizes=sizes).streams
    assert len({parts.train.event_times[0] for parts in sets}) == 10  # ten processes, not one
    for number in (-1, 10):
        with pytest.raises(DataError, match=f"no synthetic set {number}.*from 0 to 9"):
            synthetic_set(number)
