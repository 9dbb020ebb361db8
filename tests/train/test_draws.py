"""Streams that a model draws in place of others, by whichever engine."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

import retrodict as rd
from retrodict.events.time_axis import TimeAxis
from retrodict.smc.engines import ENGINES
from retrodict.train import streams
from retrodict.train.streams import draw_like
from tests.conftest import example_model

WAYS = ["native", "torch"]


@pytest.fixture(params=WAYS)
def way(request, monkeypatch):
    """The compiled engine, or simulation."""
    if request.param == "native" and ENGINES["native"].unavailable():
        pytest.skip("the native engine is not here")
    monkeypatch.setattr(streams, "choose", lambda *_: ENGINES[request.param])
    return request.param


def some_streams(count: int = 300) -> rd.StreamSet:
    generator = np.random.default_rng(0)
    starts, lasting = generator.uniform(0, 1e5, count), generator.uniform(0, 6, count)
    return rd.StreamSet(
        [rd.EventStream([], [], a, a + d, id=f"s{i}") for i, (a, d) in enumerate(zip(starts, lasting, strict=True))],
        types=["0", "1", "2"],
    )


@pytest.mark.parametrize("kind", ["poisson", "hawkes", "neural_hawkes", "state_space"])
def test_they_start_and_last_as_given_and_follow_the_model(way, kind):
    """Counts by type as those of simulated streams: z-scores of the means."""
    model, given = example_model(kind), some_streams()
    drawn = draw_like(model, given, seed=3)
    assert drawn.ids == given.ids
    np.testing.assert_array_equal(drawn.starts, given.starts)
    np.testing.assert_array_equal(drawn.ends, given.ends)
    stream = drawn.stream_of_event
    assert (drawn.event_times >= drawn.starts[stream]).all()
    assert (drawn.event_times <= drawn.ends[stream]).all()
    other = rd.simulate(model, len(given), given.durations, seed=4)
    for k in range(3):
        counts = [np.bincount(s.stream_of_event[s.event_types == k], minlength=len(given)) for s in (drawn, other)]
        difference = counts[0] - counts[1]
        assert abs(difference.mean()) < 3.5 * difference.std() / np.sqrt(len(given))
        assert stats.ks_2samp(*counts).pvalue > 1e-3
    assert not np.array_equal(draw_like(model, given, seed=5).event_times[:10], drawn.event_times[:10])
    np.testing.assert_array_equal(draw_like(model, given, seed=3).event_times, drawn.event_times)


def test_an_event_at_the_very_start_is_drawn_too(way):
    model = example_model("neural_hawkes")
    starting = [rd.EventStream([0.0] if i % 4 else [], [2] if i % 4 else [], end=2.0, id=i) for i in range(80)]
    model.adapt(rd.StreamSet(starting, types=["0", "1", "2"]))
    given = some_streams(400)
    drawn = draw_like(model, given, seed=1)
    first = np.array([s.times[0] if len(s) else -1 for s in drawn])
    share = (first == given.starts).mean()
    assert share == pytest.approx(float(model.start_atom.log_probs.exp()[1:].sum()), abs=0.08)


def test_another_unit_of_time_is_the_models(way):
    model = rd.Poisson([1.0])
    model.types, model.time_unit = ("0",), "hour"
    minutes = rd.StreamSet(
        [rd.EventStream([], [], 0.0, 600.0, id=i) for i in range(50)], types=["0"], axis=TimeAxis(unit="minute")
    )
    drawn = draw_like(model, minutes, seed=1)
    assert drawn.axis.unit == "hour"
    np.testing.assert_allclose(drawn.durations, 10.0)
    assert drawn.num_events / 50 == pytest.approx(10, abs=2)


def test_no_streams_no_draws(way):
    assert len(draw_like(rd.Poisson([1.0]), rd.StreamSet([], types=["0"]))) == 0
