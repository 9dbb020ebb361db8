"""Data that mislead are named with numbers and a remedy; data that do not are left in peace."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import pytest

import retrodict as rd
from retrodict.datasets import flights_sample
from retrodict.datasets.synthetic import synthetic_set
from retrodict.events.suspicion import beyond_edges, edge_events
from retrodict.events.time_axis import TimeAxis
from retrodict.models import surprise

MODEL = rd.Hawkes([0.4, 0.3], [[0.3, 0.4], [0.2, 0.2]], 2.0)
STREAMS = rd.simulate(MODEL, 60, end=20.0, seed=1)


def kinds(streams: rd.StreamSet) -> list[str]:
    return [found.kind for found in rd.suspicions(streams)]


def cut(streams: rd.StreamSet, events: int) -> rd.StreamSet:
    """The first few events of each stream, which ends with the last of them."""
    return rd.StreamSet(
        [rd.EventStream(s.times[:events], s.types[:events], 0.0, s.times[events - 1], s.id) for s in streams],
        types=streams.types,
    )


def test_streams_cut_after_16_events_are_told_from_streams_cut_by_the_clock():
    whole = rd.simulate(MODEL, 60, end=60.0, seed=2)
    found = {s.kind: str(s) for s in rd.suspicions(cut(whole, 16))}
    assert set(found) == {"same number", "ends"}
    assert "all 60 streams have exactly 16 events" in found["same number"]
    assert "all 60 streams end exactly at an event" in found["ends"]
    assert "or pass end= with when watching stopped" in found["ends"]
    assert kinds(whole) == []


def test_some_streams_that_end_at_an_event_are_nothing_odd():
    whole = rd.simulate(MODEL, 60, end=60.0, seed=2)
    mixed = rd.StreamSet([*whole[:20], *cut(whole[20:], 16)], types=whole.types)
    assert kinds(mixed) == []


@pytest.mark.parametrize(
    ("unit", "step", "words"),
    [(None, 1.0, "multiples of 1 "), ("minute", 1.0, "multiples of one minute"), ("hour", 0.25, "quarter of an hour"),
     ("day", 1.0, "multiples of one day"), (None, 0.1, "multiples of 0.1 ")],
)  # fmt: skip
def test_rounded_times_are_a_lattice(unit, step, words):
    rounded = STREAMS.replace(event_times=np.floor(STREAMS.event_times / step) * step, axis=TimeAxis(unit))
    (found,) = (s for s in rd.suspicions(rounded) if s.kind == "lattice")
    gaps = np.concatenate([np.diff(s.times) for s in rounded])
    assert words in found.what
    assert f"{(gaps == 0).mean():.1%} of the events have the time of the event before" in found.what
    assert "rd.spread" in found.remedy
    assert len(str(found)) < 260


def test_impute_is_silent_on_a_lattice_that_the_fit_has_told():
    """A model keeps that it was fitted to such times; one that was not, or was before this was kept, says it again."""
    rounded = STREAMS.replace(event_times=np.floor(STREAMS.event_times), axis=TimeAxis("minute"))

    def told(work: Callable[[], Any]) -> int:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always", rd.SuspicionNotice)
            work()
        return sum("times are multiples of one minute" in str(one.message) for one in caught)

    fitted: list[Any] = []
    assert told(lambda: fitted.append(rd.fit(rd.Poisson, rounded, epochs=1, progress=False))) == 1
    impute = lambda: rd.impute(rounded[:5], rd.Filtering(fitted[0], rd.ByType(0.5)), particles=4)  # noqa: E731
    assert told(impute) == 0
    del fitted[0].training_record["lattice"]
    assert told(impute) == 1


def test_fine_time_stamps_are_no_lattice():
    """Seconds where events come hours apart."""
    rounded = np.floor(STREAMS.event_times * 3600) / 3600
    assert kinds(STREAMS.replace(event_times=rounded, axis=TimeAxis("hour"))) == []


@pytest.mark.parametrize("zone", [None, "Europe/Paris", "-07:00"])
def test_dates_without_a_time_of_day(zone):
    """A fifth of the dates at local midnight, also across a change of the clock."""
    random = np.random.default_rng(0)
    when = pd.to_datetime("2024-03-01") + pd.to_timedelta(random.random(400) * 60, unit="D")
    when = when.where(random.random(400) < 0.8, when.normalize())
    when = when.tz_localize(zone, ambiguous=True, nonexistent="shift_forward") if zone else when
    table = pd.DataFrame({"stream": np.arange(400) % 20, "time": when, "type": "a"}).sort_values("time")
    bounds = [pd.Timestamp(day, tz=zone) for day in ("2024-02-28", "2024-05-05")]
    found = {s.kind: s.what for s in rd.suspicions(rd.read_events(table, start=bounds[0], end=bounds[1]))}
    assert set(found) == {"same number", "midnight", "duplicates"}
    assert found["midnight"].startswith("18% of the times are exactly midnight")


def test_an_event_recorded_twice():
    """Also with another event between the two."""
    some = rd.EventStream([1.0, 2.0, 2.0, 2.0, 3.0], [0, 0, 1, 0, 1], end=5.0, id="twice")
    (found,) = rd.suspicions(rd.StreamSet([rd.EventStream([1.0, 1.0], [0, 1], end=5.0, id="once"), some]))
    assert found.kind == "duplicates"
    assert (
        "1 event (14.29%) repeats another of the same stream, time and type, the first in stream 'twice'" in found.what
    )


@pytest.mark.parametrize(("unit", "seconds"), [("seconds", 1.0), ("milliseconds", 1e-3)])
def test_unix_seconds_are_refused_before_any_work(unit, seconds):
    """They took 2 minutes, and then "raise max_events"."""
    late = STREAMS.replace(event_times=STREAMS.event_times + 1.4e9 / seconds, ends=STREAMS.ends + 1.4e9 / seconds)
    proposal, fit, learn = rd.Filtering(MODEL, rd.ByType(0.5)), rd.fit, rd.learn_missing
    began = time.perf_counter()
    for work in (
        lambda: rd.impute(late, proposal),
        lambda: fit(rd.NeuralHawkes, late, progress=False),
        lambda: learn(proposal, late),
    ):
        with pytest.raises(rd.DataError, match=f"2014-05-13 in {unit} since 1970.*pass start="):
            work()
    assert time.perf_counter() - began < 5
    assert kinds(late.replace(starts=STREAMS.starts + 1.4e9 / seconds)) == []


def test_without_a_start_first_events_cannot_be_imputed_and_their_number_is_said():
    """The number is that of the missing events before the first and after the last observed event, up to chance."""
    complete = rd.simulate(MODEL, 200, end=30.0, seed=4)
    missing = rd.ByType([0.5, 0.5])
    observed, hidden = missing.censor(complete, seed=5)
    observed = rd.StreamSet([s for s in observed if len(s) > 1], types=complete.types)
    whole = {s.id: s for s in hidden}
    lost = [sum((whole[s.id].times < s.times[0]).sum() for s in observed),
            sum((whole[s.id].times > s.times[-1]).sum() for s in observed)]  # fmt: skip
    inside = rd.StreamSet([rd.EventStream(s.times, s.types, s.times[0], s.times[-1], s.id) for s in observed])
    with pytest.warns(rd.SuspicionNotice) as caught:
        rd.impute(inside, rd.Filtering(MODEL, missing), particles=20)
    texts = [str(w.message) for w in caught if "left out" in str(w.message)]
    assert "pass start=" in texts[0]
    assert "pass end=" in texts[1]
    for text, true in zip(texts, lost, strict=True):
        said = float(text.partition("about ")[2].partition(" missing")[0].replace(",", ""))
        assert 0.7 < said / true < 1.4, (said, true)
    with warnings.catch_warnings():
        warnings.simplefilter("error", rd.SuspicionNotice)
        rd.impute(observed, rd.Filtering(MODEL, missing), particles=5)


def test_a_type_that_surprises_the_model_is_named():
    """The model was fitted when type 1 was rare and type 0 as now."""
    other = rd.Hawkes([0.4, 0.003], [[0.3, 0.0], [0.0, 0.0]], 2.0)
    with pytest.warns(rd.SuspicionNotice, match="events of type '1' surprise the model"):
        rd.impute(STREAMS, rd.Filtering(other, rd.ByType([0.3, 0.0])), particles=10)


def test_of_a_long_stream_the_first_events_are_looked_at(monkeypatch):
    """Type 1, which the model takes for rare, happens in the second half alone."""
    monkeypatch.setattr(surprise, "_MOST", 200)
    times, model = np.arange(1.0, 401.0), rd.Poisson([1.0, 1e-4])
    late = rd.StreamSet([rd.EventStream(times, np.repeat([0, 1], 200), end=401.0)], types=["0", "1"])
    early = rd.StreamSet([rd.EventStream(times, np.repeat([1, 0], 200), end=401.0)], types=["0", "1"])
    assert surprise.surprises(model, late) == []
    assert "at 200 of them" in surprise.surprises(model, early)[0].what


def test_a_fit_warns_of_streams_that_a_cut_has_chosen_unless_it_learns_that():
    whole = cut(rd.simulate(MODEL, 60, end=60.0, seed=2), 16)
    with warnings.catch_warnings():
        warnings.simplefilter("error", rd.SuspicionNotice)
        assert rd.fit(rd.Poisson, whole, epochs=1, progress=False).end_atom is not None
    with pytest.warns(rd.SuspicionNotice, match="all 60 streams have exactly 16 events"):
        rd.fit(rd.Poisson, whole.replace(ends=whole.ends + 1.0), epochs=1, progress=False)


def test_the_package_own_streams_are_not_under_suspicion():
    """Flights end with an arrival, which is true and said; nothing else is."""
    assert kinds(flights_sample()) == ["ends"]
    assert all(edge.all() for edge in edge_events(flights_sample()))
    assert kinds(STREAMS) == []
    assert beyond_edges(STREAMS) == []
    assert kinds(synthetic_set(0, (60, 10, 10)).train) == ["ends"]  # drawn until a number of events, as in the paper


def test_a_million_events_take_a_moment():
    random, L = np.random.default_rng(0), 20
    N = 1_000_000 // L
    times = np.floor(np.sort(random.random((N, L)) * 100, axis=1)).reshape(-1)
    large = rd.StreamSet.trusted(
        times,
        random.integers(0, 5, N * L),
        np.arange(0, N * L + 1, L),
        np.zeros(N),
        np.full(N, 100.0),
        range(N),
        "abcde",
    )
    seconds = []
    for _ in range(3):
        began = time.perf_counter()
        assert kinds(large) == ["same number", "lattice", "duplicates"]
        seconds.append(time.perf_counter() - began)
    assert min(seconds) < 0.3
