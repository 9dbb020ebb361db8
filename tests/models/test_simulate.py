"""Simulation: reproducible stream by stream, stopped where asked, continued from a history."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from scipy import stats

from retrodict.errors import DataError, ModelError, RunawayError
from retrodict.events.stream import EventStream
from retrodict.events.stream_set import StreamSet
from retrodict.models import Hawkes, Poisson
from retrodict.models.simulate import simulate
from retrodict.models.start import StartAtom
from tests.conftest import KINDS, example_model


@pytest.mark.parametrize("kind", KINDS)
def test_a_stream_does_not_depend_on_its_batch(kind):
    model = example_model(kind)
    whole = simulate(model, 20, end=10.0, seed=1)
    for size in (1, 7):
        parts = simulate(model, 20, end=10.0, seed=1, batch_size=size)
        np.testing.assert_array_equal(parts.event_types, whole.event_types)
        np.testing.assert_allclose(parts.event_times, whole.event_times, rtol=0, atol=1e-9)
    assert simulate(model, 20, end=10.0, seed=1) == whole
    assert simulate(model, 20, end=10.0, seed=2) != whole
    third = simulate(model, 3, end=10.0, seed=1)[2]
    np.testing.assert_array_equal(third.types, whole[2].types)
    # Matrix products of other numbers of rows may differ in their last bits.
    np.testing.assert_allclose(third.times, whole[2].times, rtol=0, atol=1e-12 if "state_space" in kind else 0)


def test_poisson_counts_are_poisson():
    streams = simulate(Poisson([0.8, 1.7]), 3000, end=2.0, seed=4)
    counts = np.zeros((3000, 2), dtype=int)
    np.add.at(counts, (streams.stream_of_event, streams.event_types), 1)
    for k, rate in enumerate((1.6, 3.4)):
        observed = np.bincount(np.minimum(counts[:, k], 9), minlength=10)
        expected = stats.poisson.pmf(np.arange(9), rate)
        expected = np.append(expected, 1 - expected.sum()) * 3000
        assert stats.chisquare(observed, expected).pvalue > 1e-3
    assert abs(np.corrcoef(counts.T)[0, 1]) < 3.3 / np.sqrt(3000)
    assert stats.kstest(streams.event_times, stats.uniform(0, 2).cdf).pvalue > 1e-3


@pytest.mark.parametrize("kind", KINDS)
def test_a_number_of_events_can_be_asked_for(kind):
    model = example_model(kind)
    streams = simulate(model, 4, num_events=[0, 1, 5, 30], seed=2)
    assert streams.lengths.tolist() == [0, 1, 5, 30]
    for stream in streams:
        assert stream.end == (stream.times[-1] if len(stream) else 0.0)
    both = simulate(model, 50, end=2.0, num_events=5, seed=2)
    assert both.lengths.max() == 5
    short = both.lengths < 5
    assert short.any()
    assert (both.ends[short] == 2.0).all()
    assert (both.ends[~short] < 2.0).all()


def test_continuing_a_history_follows_the_conditional_law():
    """Mean counts after a long-remembered burst agree with the exact conditional mean of the process."""
    model = Hawkes([0.2], [[0.5]], 1.0).double()
    burst = EventStream([1.0, 2.0, 2.5, 2.9], [0] * 4, start=1.0, end=3.0)
    copies = StreamSet([EventStream(burst.times, burst.types, 1.0, 3.0, id=i) for i in range(4000)], types=["a"])
    after = simulate(model, history=copies, end=5.0, seed=3)
    assert (after.starts == 3.0).all()
    assert after.ids == copies.ids
    assert after.event_times.min() > 3.0
    # dm/dt = base·decay - (1 - excitation)·decay·(m - ...) has the solution below for the mean intensity.
    excited = sum(0.5 * np.exp(-(3.0 - t)) for t in burst.times)
    stationary = 0.2 / (1 - 0.5)
    mean = stationary * 2 + (0.2 + excited - stationary) * (1 - np.exp(-0.5 * 2)) / 0.5
    counts = after.lengths
    assert abs(counts.mean() - mean) < 3.3 * counts.std() / np.sqrt(len(counts))
    fresh = simulate(model, 4000, end=2.0, seed=3).lengths
    assert counts.mean() > 1.5 * fresh.mean()


def test_the_start_atom_is_drawn():
    model = Poisson([1.0, 1.0])
    model.start_atom = StartAtom(torch.tensor([0.25, 0.1, 0.65]).log())
    streams = simulate(model, 4000, end=1.0, seed=9)
    first = np.array([s.types[0] if len(s) and s.times[0] == 0 else -1 for s in streams])
    observed = np.bincount(first + 1, minlength=3)
    assert stats.chisquare(observed, [1000, 400, 2600]).pvalue > 1e-3
    estimated = StartAtom.from_streams(streams)
    np.testing.assert_allclose(estimated.log_probs.exp(), observed / 4000, atol=1e-3)
    assert StartAtom.from_streams(simulate(Poisson([1.0]), 5, end=1.0)) is None


def test_the_start_atom_scores_the_first_event():
    model = Poisson([2.0, 1.0]).double()
    streams = StreamSet(
        [
            EventStream([0.0, 0.5], [1, 0], end=1.0),
            EventStream([0.5], [0], end=1.0),
            EventStream([], [], end=1.0),
            EventStream([0.0, 0.0], [1, 1], end=1.0),
        ],
        types=["a", "b"],
    )
    plain = model.log_likelihood(streams)
    model.start_atom = StartAtom(torch.tensor([0.2, 0.3, 0.5], dtype=torch.float64).log())
    change = model.log_likelihood(streams) - plain
    expected = torch.tensor([0.5, 0.2, 0.2, 0.5], dtype=torch.float64).log()
    torch.testing.assert_close(change, expected)
    without = model.log_likelihood(streams, score_first=False)
    torch.testing.assert_close(without, torch.tensor([np.log(2) - 3, -3, -3, -3], dtype=torch.float64))


def test_runaway_and_impossible_requests_are_reported():
    with pytest.raises(RunawayError, match="exceeded 2,000 events"):
        simulate(Hawkes([1.0], [[1.5]], 5.0), 1, end=1e3, max_events=2000)
    with pytest.raises(ModelError, match="needs end="):
        simulate(Poisson([1.0]), 3)
    with pytest.raises(ModelError, match="needs num_streams"):
        simulate(Poisson([1.0]), end=1.0)
    with pytest.raises(ModelError, match="end must be one number or 3 numbers"):
        simulate(Poisson([1.0]), 3, end=[1.0, 2.0])
    with pytest.raises(ModelError, match="never reach num_events"):
        simulate(Poisson([0.0]), 1, num_events=3)
    history = StreamSet([EventStream([1.0], [0], end=2.0, id="x")], types=["a"])
    with pytest.raises(DataError, match="stream 'x': end 1 lies before 2"):
        simulate(Poisson([1.0]), history=history, end=1.0)
    assert len(simulate(Poisson([1.0]), 0, end=1.0)) == 0
