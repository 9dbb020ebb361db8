"""The best of several models on dev, and what makes scores fair."""

from __future__ import annotations

import numpy as np
import pytest

import retrodict as rd
from retrodict.cli.common import in_options
from retrodict.events.time_axis import TimeAxis
from retrodict.train import auto
from tests.calendars import NIGHT, a_seasonal_model

QUICK = {"progress": False, "epochs": 2, "device": "cpu"}


@pytest.fixture
def short_trials(monkeypatch):
    monkeypatch.setattr(auto, "TRIAL", 1e-3)


def bursts(count: int, seed: int) -> rd.StreamSet:
    return rd.simulate(rd.Hawkes([0.3], [[0.7]], 5.0), count, end=30.0, seed=seed)


def test_the_best_on_dev_is_kept_and_the_same_call_goes_on(tmp_path, short_trials):
    train, dev = bursts(40, 1), bursts(20, 2)
    said: list[auto.Score] = []
    model = rd.fit_auto(train, dev, directory=tmp_path, say=said.append, **QUICK)
    record = model.training_record
    names = [row["name"] for row in record["candidates"]]
    assert names == ["poisson", "hawkes", "state-space", "neural-hawkes"]
    best = max(record["candidates"], key=lambda row: row["dev"])
    assert record["chosen"] == best["name"] == "hawkes"  # two epochs are too few for the others
    assert model.kind == "hawkes"
    assert rd.load_model(tmp_path).digest() == model.digest()
    alone = auto.folder_of_chosen(tmp_path)  # with the losses that 'retrodict plot' draws
    assert alone != tmp_path
    assert rd.load_model(alone).digest() == model.digest()
    assert auto.folder_of_chosen(alone) == alone
    assert record["all_seconds"] > 0
    assert {score.name for score in said} == set(names)
    scores = (tmp_path / auto.SCORES).read_text()
    again = rd.fit_auto(train, dev, directory=tmp_path, **QUICK)
    assert again.digest() == model.digest()
    assert (tmp_path / auto.SCORES).read_text() == scores  # nothing was trained again
    with pytest.raises(rd.ModelError, match="other streams or settings") as error:
        rd.fit_auto(train[:-1], dev, directory=tmp_path, **QUICK)
    assert in_options(str(error.value)).count("--restart") == 1


def test_a_choice_among_models_and_a_fit_of_one_replace_each_other_only_when_told_to(tmp_path, short_trials):
    train, dev = bursts(20, 1), bursts(10, 2)

    def one(**how: object) -> rd.Model:
        return rd.fit(rd.Poisson, train, dev, directory=tmp_path, **QUICK, **how)

    chosen = rd.fit_auto(train, dev, directory=tmp_path, **QUICK)
    with pytest.raises(rd.TrainingError, match="holds the best of several models"):
        one()
    assert rd.load_model(tmp_path).digest() == chosen.digest()
    alone = one(resume=False)
    with pytest.warns(rd.DataNotice, match="had finished"):
        assert one().digest() == alone.digest() == rd.load_model(tmp_path).digest()  # the same call still goes on
    with pytest.raises(rd.ModelError, match="holds a fit of one model"):
        rd.fit_auto(train, dev, directory=tmp_path, **QUICK)
    assert rd.load_model(tmp_path).digest() == alone.digest()
    rd.fit_auto(train, dev, directory=tmp_path, resume=False, **QUICK)
    with pytest.raises(rd.TrainingError, match="holds the best of several models"):
        one()
    assert rd.fit_auto(train, dev, directory=tmp_path, **QUICK).digest() == chosen.digest()


def test_an_interrupted_race_goes_on_with_what_is_left(tmp_path, short_trials):
    train, dev = bursts(20, 1), bursts(10, 2)

    def interrupt(score: auto.Score) -> None:
        if score.name == "hawkes":
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        rd.fit_auto(train, dev, directory=tmp_path, say=interrupt, **QUICK)
    assert "hawkes" in (tmp_path / auto.SCORES).read_text()
    model = rd.fit_auto(train, dev, directory=tmp_path, **QUICK)
    assert len(model.training_record["candidates"]) == 4


def test_dated_streams_have_candidates_with_a_calendar(monkeypatch):
    true = a_seasonal_model("poisson", rate=0.3)
    streams = rd.simulate(true, 40, end=96.0, seed=1, start=NIGHT)
    assert sum(one.calendar for one in auto.candidates(streams)) == 4
    assert not any(one.calendar for one in auto.candidates(streams, calendar=False))
    assert not any(one.calendar for one in auto.candidates(bursts(3, 1)))
    quick = [one for one in auto.candidates(streams) if one.name.startswith("poisson")]
    slow = [one._replace(slow=True) for one in quick]
    monkeypatch.setattr(auto, "candidates", lambda train, calendar: [*quick, *slow])
    model = rd.fit_auto(streams[:30], streams[30:], **QUICK)
    assert model.training_record["chosen"] == "poisson with calendar"
    assert model.calendar is not None


def test_a_model_that_cannot_be_fitted_is_left_out(monkeypatch, short_trials):
    def refuse(streams):
        raise rd.ModelError("too many types")

    all_of_them = auto.candidates(bursts(3, 1))
    some = [one._replace(make=refuse) if one.name == "hawkes" else one for one in all_of_them]
    monkeypatch.setattr(auto, "candidates", lambda train, calendar: some)
    model = rd.fit_auto(bursts(12, 1), bursts(6, 2), **QUICK)
    rows = {row["name"]: row for row in model.training_record["candidates"]}
    assert rows["hawkes"]["dev"] is None
    assert "too many types" in rows["hawkes"]["ended"]
    none = [one._replace(make=refuse) for one in all_of_them]
    monkeypatch.setattr(auto, "candidates", lambda train, calendar: none)
    with pytest.raises(rd.ModelError, match="too many types"):
        rd.fit_auto(bursts(12, 1), bursts(6, 2), **QUICK)


def test_times_are_spread_within_their_cells():
    fine = rd.simulate(rd.Poisson([2.0, 1.0]), 50, end=20.0, seed=0)
    minutes = fine.replace(event_times=np.round(fine.event_times * 6) / 6, axis=TimeAxis("hour"))
    spread = rd.spread(minutes, step=1 / 6)
    moved = spread.event_times - minutes.event_times
    assert np.abs(moved).max() <= 1 / 12 + 1e-12
    assert (moved == 0).mean() < 0.02  # at both ends of a stream alone
    assert np.array_equal(spread.event_types, minutes.event_types)
    assert all((np.diff(stream.times) > 0).all() for stream in spread)
    edge = rd.StreamSet([rd.EventStream([0.0, 1.0, 1.0, 5.0], [0, 1, 0, 1], end=5.0)])
    kept = rd.spread(edge, step=1.0)
    assert kept.event_times[0] == 0.0
    assert kept.event_times[-1] == 5.0
    assert rd.spread(fine) is fine  # no lattice
    rounded = fine.replace(event_times=np.round(fine.event_times * 2) / 2)
    assert np.abs(rd.spread(rounded).event_times - rounded.event_times).max() > 0.2
    # In another order the same streams are spread alike.
    assert np.array_equal(rd.spread(minutes[::-1], step=1 / 6)[::-1].event_times, spread.event_times)
