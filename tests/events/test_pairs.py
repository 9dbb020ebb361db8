"""Batches padded from flat tensors: the same events as in the streams, with observed ones first where times tie."""

from __future__ import annotations

import numpy as np
import torch

import retrodict as rd
from retrodict.events.batch import Packed, make_batch
from retrodict.events.combine import combine, observed_first
from retrodict.events.pairs import PackedPairs, make_pairs


def _streams() -> rd.StreamSet:
    return rd.StreamSet(
        [
            rd.EventStream([1.0, 1.0, 1.0, 2.5], [0, 1, 2, 0], start=0.5, end=3.0, id="ties"),
            rd.EventStream([], [], end=2.0, id="empty"),
            rd.EventStream([0.25, 1.75], [2, 1], end=2.0, id="plain"),
        ],
        types=("a", "b", "c"),
    )


def test_a_packed_batch_holds_the_streams():
    streams = _streams()
    batch = Packed(streams).batch(np.array([2, 0]), torch.float64)
    assert batch.mask.sum(1).tolist() == [2, 4]
    assert batch.index.tolist() == [2, 0]
    assert batch.times[0, :2].tolist() == [0.25, 1.75]
    assert batch.times[1].tolist() == [0.5, 0.5, 0.5, 2.0]
    assert batch.types[1].tolist() == [0, 1, 2, 0]
    assert batch.starts.tolist() == [0.0, 0.5]
    assert batch.gaps[0].tolist() == [0.25, 1.5, 0.25, 0.0, 0.0]
    for row, other in zip(batch.ids, make_batch(streams).ids[[2, 0]], strict=True):
        assert row == other


def test_a_stream_may_be_taken_twice():
    batch = make_batch(_streams(), np.array([2, 2, 0]))
    assert batch.mask.sum(1).tolist() == [2, 2, 4]
    assert batch.index.tolist() == [2, 2, 0]


def test_streams_without_events_make_a_batch_too():
    batch = make_batch(_streams(), np.array([1]))
    assert batch.times.shape == (1, 0)
    assert batch.gaps.tolist() == [[2.0]]


def test_ids_keep_their_numbers_whatever_is_taken_or_hidden():
    streams = _streams()
    numbers = streams.id_keys
    assert np.array_equal(streams[[2, 0]].id_keys, numbers[[2, 0]])
    assert np.array_equal(streams.keep(np.zeros(6, dtype=bool)).id_keys, numbers)
    assert len(set(numbers.tolist())) == 3


def test_hiding_and_combining_is_the_same_as_ordering():
    streams = _streams()
    for bits in range(1 << streams.num_events):
        hidden = np.array([bits >> i & 1 for i in range(streams.num_events)], dtype=bool)
        complete, missing = observed_first(streams, hidden)
        expected, expected_missing = combine(streams.keep(~hidden), streams.keep(hidden))
        assert complete == expected
        assert np.array_equal(missing, expected_missing)
        batch = PackedPairs(complete, missing).batch(np.arange(3), torch.float64)
        other = make_pairs(streams.keep(~hidden), streams.keep(hidden), dtype=torch.float64)
        assert torch.equal(batch.missing, other.missing)
        assert torch.equal(batch.complete.types, other.complete.types)
        assert batch.num_events == hidden.sum()
        assert batch.observed.num_events == (~hidden).sum()
