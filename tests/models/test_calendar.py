"""A model's calendar: what clocks show, bounds, likelihood and simulation against other code, saving, and fitting."""

from __future__ import annotations

import copy
import warnings

import numpy as np
import pandas as pd
import pytest
import torch
from scipy import stats

import retrodict as rd
from retrodict.evaluate.goodness import goodness
from retrodict.events.batch import make_batch
from retrodict.events.time_axis import TimeAxis
from retrodict.models.calendar import Calendar
from retrodict.models.calendar_first import first_calendar
from retrodict.models.calendar_fit import improve_calendar
from retrodict.models.covariates import Covariates
from retrodict.models.hawkes_season import seasonal_areas
from tests.calendars import NIGHT, a_calendar, a_seasonal_model, some_covariates
from tests.conftest import KINDS, example_model


def at(*dates: str, zone: str = "America/New_York") -> torch.Tensor:
    """Hours since 1970."""
    moments = pd.DatetimeIndex(dates).tz_localize(zone).tz_convert("UTC").tz_localize(None)
    return torch.as_tensor(moments.to_numpy("datetime64[s]").astype(np.int64) / 3600)


def test_hours_are_those_that_clocks_show():
    """Noon is noon before and after clocks are changed, and 24 hours later it is one o'clock on that day."""
    calendar = a_calendar(3, week=0)
    noons = calendar.factor(torch.zeros(2, dtype=torch.float64), at("2024-03-09T12:00", "2024-03-10T12:00"))
    torch.testing.assert_close(noons[0], noons[1], rtol=0, atol=1e-9)
    later = calendar.factor(torch.full((1,), 24.0, dtype=torch.float64), at("2024-03-09T12:00"))
    one = calendar.factor(torch.zeros(1, dtype=torch.float64), at("2024-03-12T13:00"))
    torch.testing.assert_close(later, one, rtol=0, atol=1e-9)
    assert (later - noons[:1]).abs().max() > 1e-3


def test_weeks_recur():
    calendar = a_calendar(2)
    first, next_one = at("2024-04-03T08:15", "2024-04-10T08:15")
    zero = torch.zeros(1, dtype=torch.float64)
    torch.testing.assert_close(calendar.factor(zero, first[None]), calendar.factor(zero, next_one[None]))


@pytest.mark.parametrize("covariates", [False, True])
def test_bounds_hold_over_any_interval(covariates):
    calendar = a_calendar(3, size=0.8, covariates=some_covariates() if covariates else None)
    generator = torch.Generator().manual_seed(0)
    N = 3000
    origin = at("2024-01-01")[0] + 8000 * torch.rand(N, generator=generator, dtype=torch.float64)
    start = 50 * torch.rand(N, generator=generator, dtype=torch.float64)
    length = 10 ** (4 * torch.rand(N, generator=generator, dtype=torch.float64) - 2)
    bound = calendar.bound(start, start + length, origin)
    times = start[:, None] + length[:, None] * torch.linspace(0, 1, 101, dtype=torch.float64)
    found = calendar.factor(times, origin[:, None]).detach()
    assert (found <= bound[:, None]).all()
    assert (found.amax(1) / bound).median() > 0.9  # and are of use


@pytest.mark.parametrize(("nodes", "error"), [(4, 2e-3), (8, 1e-6)])
def test_nodes_follow_the_calendar(nodes, error):
    """Integrals over gaps of up to five days, also where clocks are changed, against many nodes."""
    from retrodict.models.quadrature import GaussLegendre, cut_at

    calendar = a_calendar(3, day=3, size=0.6)
    start = torch.zeros(200, dtype=torch.float64)
    stop = torch.linspace(0.1, 120, 200, dtype=torch.float64)
    origin = at("2024-03-07T09:00").expand(200)
    found = []
    for count in (nodes, 60):
        points, weights = cut_at(
            GaussLegendre(count).nodes((), start), start, stop, calendar.breaks(start, stop, origin)
        )
        rates = calendar.factor(stop[:, None] * points, origin[:, None]).detach()
        found.append((rates * (stop[:, None] * weights)[..., None]).sum(1))
    assert ((found[0] - found[1]).abs() / found[1]).max() < error


@pytest.mark.parametrize("kind", KINDS)
def test_states_in_gaps_are_those_event_by_event(kind):
    model = example_model(kind)
    batch = make_batch(rd.simulate(model, 6, end=5.0, seed=1), dtype=torch.float64)
    real = (torch.cat([torch.ones_like(batch.mask[:, :1]), batch.mask], 1)).flatten()
    for fast, plain in zip(model.gap_states(batch), rd.Model.gap_states(model, batch), strict=True):
        torch.testing.assert_close(fast[real], plain[real], rtol=0, atol=1e-10)


@pytest.mark.parametrize("kind", KINDS)
def test_the_likelihood_is_that_of_intensities_times_factors(kind):
    model = a_seasonal_model(kind)
    streams = rd.simulate(model, 5, end=6.0, seed=2, start=NIGHT)
    batch = make_batch(streams, dtype=torch.float64)
    expected = torch.zeros(5, dtype=torch.float64)
    nodes, weights = rd.GaussLegendre(60).nodes((), batch.durations)
    for i, (state, start, end) in enumerate(model.gaps(batch)):
        change = torch.full_like(start, 4.0).clamp(start, end)  # of the clocks
        for left, right in ((start, change), (change, end)):
            times = left[:, None] + (right - left)[:, None] * nodes
            rates = model.intensity(state, times) * model.calendar.factor(times, batch.starts[:, None])
            expected -= (rates.sum(-1) * weights).sum(1) * (right - left)
        if i < batch.types.shape[1]:
            own = model.intensity(state, end) * model.calendar.factor(end, batch.starts)
            own = own.gather(1, batch.types[:, i, None])[:, 0].log()
            expected += torch.where(batch.mask[:, i], own, 0.0)
    found = model.log_likelihood(streams)
    torch.testing.assert_close(found, expected, rtol=0, atol=2e-6)
    found.sum().backward()
    assert model.calendar.weights.grad.abs().sum() > 0


@pytest.mark.parametrize("kind", KINDS)
def test_simulated_events_are_exponential_on_the_model_s_own_scale(kind):
    model = a_seasonal_model(kind)
    streams = rd.simulate(model, 300, end=20.0, seed=3, start=NIGHT)
    found = goodness(model, streams)
    assert len(found.gaps) > 6000
    assert stats.kstest(found.gaps, "expon").pvalue > 1e-3
    flat = copy.deepcopy(model)
    flat.calendar = None
    assert stats.kstest(goodness(flat, streams).gaps, "expon").pvalue < 1e-3
    assert not any(finding.alarm for finding in found.findings())


def test_a_model_is_saved_with_its_calendar(tmp_path):
    model = a_seasonal_model("hawkes", covariates=some_covariates())
    streams = rd.simulate(model, 4, end=5.0, seed=0, start=NIGHT)
    model.save(tmp_path)
    loaded = rd.load_model(tmp_path)
    torch.testing.assert_close(loaded.log_likelihood(streams), model.log_likelihood(streams))
    assert loaded.calendar.config() == model.calendar.config()
    assert loaded.digest() == model.digest()
    other = copy.deepcopy(model)
    other.calendar.zone = "Europe/Berlin"
    assert other.digest() != model.digest()
    other.calendar.weights.data *= 1000
    other.save(tmp_path)
    with pytest.raises(rd.ModelError, match="calendar's weights"):
        rd.load_model(tmp_path)


def test_dates_are_asked_for():
    model = a_seasonal_model("poisson")
    with pytest.raises(rd.ModelError, match="start="):
        rd.simulate(model, 2, end=3.0)
    with pytest.raises(rd.ModelError, match="no dates"):
        model.log_likelihood(rd.StreamSet([rd.EventStream([1.0], [0], end=2.0)], types=["0", "1", "2"]))
    with pytest.raises(rd.DataError, match="needs streams with dates"):
        rd.fit(rd.Poisson, rd.simulate(rd.Poisson([1.0]), 5, end=3.0), calendar=True)
    with pytest.raises(rd.ModelError, match="axis="):
        rd.Online(rd.Filtering(model, rd.ByType(0.5)), lag=3.0)


def test_dates_without_a_zone_were_taken_for_others_than_the_models_clocks():
    model = a_seasonal_model("poisson")
    table = pd.DataFrame({"id": "a", "when": pd.to_datetime(["2024-03-01 08:00", "2024-03-01 09:00"]), "what": "0"})
    naive = rd.read_events(table, stream="id", time="when", type="what", start="2024-03-01", end="2024-03-02")
    with pytest.raises(rd.ModelError, match=r"by the clocks of America/New_York, and these dates have no time zone"):
        rd.impute(naive, rd.Filtering(model, rd.ByType(0.5)))


def written_by(offset: str, month: int) -> rd.StreamSet:
    """Twenty mornings of a month, dates written with an offset."""
    rows = [(day, f"2024-{month:02}-{day:02}T{hour:02}:00:00{offset}") for day in range(1, 21) for hour in (8, 9, 9)]
    frame = pd.DataFrame(rows, columns=["id", "when"]).assign(what="0")
    frame["begin"], frame["stop"] = (
        frame["when"].str.replace(r"T\d\d", f"T{hour}", regex=True) for hour in ("06", "22")
    )
    return rd.read_events(
        frame, stream="id", time="when", type="what", start="begin", end="stop", types=["0", "1", "2"]
    )


@pytest.mark.parametrize(
    ("clocks", "offset", "month", "is_said"),
    [
        ("America/New_York", "-05:00", 7, True),
        ("America/New_York", "-04:00", 7, False),
        ("America/New_York", "-05:00", 1, False),
        ("America/New_York", "Z", 7, False),
        ("+01:00", "+02:00", 7, True),
        ("+01:00", "+01:00", 7, False),
        ("+01:00", "Z", 7, True),
    ],
)
def test_dates_by_other_clocks_than_the_models_are_said(clocks, offset, month, is_said):
    model = a_seasonal_model("poisson")
    model.calendar = Calendar(3, 2, 1, unit="hour", zone=clocks).double()
    streams, filtering = written_by(offset, month), rd.Filtering(model, rd.ByType(0.5))
    for work in (lambda: rd.impute(streams, filtering, particles=4), lambda: rd.check(model, streams)):
        with warnings.catch_warnings(record=True) as said:
            warnings.simplefilter("always")
            work()
        assert (len([each for each in said if "these dates are by clocks of" in str(each.message)]) == 1) == is_said


def test_a_calendar_learned_by_an_offset_says_so_and_one_by_the_place_does_not():
    """The same dates with +01:00 in winter, read as they are and with the zone of the place."""
    winter = written_by("+01:00", 1)
    place = winter.with_axis(TimeAxis(winter.axis.unit, winter.axis.origin, "Europe/Berlin"))
    for streams, zone in ((winter, "+01:00"), (place, "Europe/Berlin")):
        with warnings.catch_warnings(record=True) as said:
            warnings.simplefilter("always")
            model = rd.fit(rd.Poisson, streams[:15], streams[15:], calendar=True)
        assert model.calendar.zone == zone
        assert any("know no summer time" in str(each.message) for each in said) == (zone == "+01:00")


def test_the_zone_of_a_place_is_what_dates_with_offsets_are_converted_to():
    """Winter was written with +01:00, summer with +02:00: by Berlin's clocks both are 8 in the morning."""
    both = [("a", "2024-01-05T08:00:00+01:00"), ("b", "2024-07-05T08:00:00+02:00")]
    model = a_seasonal_model("poisson")
    model.calendar = Calendar(3, 2, 0, unit="hour", zone="Europe/Berlin").double()
    model.calendar.weights.data.normal_(generator=torch.Generator().manual_seed(0))
    factors = []
    for row in both:
        frame = pd.DataFrame([row], columns=["id", "when"]).assign(what="0")
        streams = rd.read_events(
            frame, stream="id", time="when", type="what", start=row[1][:10] + "T00:00:00" + row[1][-6:],
            end=row[1][:10] + "T22:00:00" + row[1][-6:], unit="hour", timezone="Europe/Berlin",
        )  # fmt: skip
        assert streams.axis.timezone == "Europe/Berlin"
        start = torch.as_tensor(streams.axis.since_1970 + streams.starts)
        factors.append(model.calendar.factor(torch.as_tensor(streams.event_times - streams.starts), start))
    torch.testing.assert_close(factors[0], factors[1])


def dated(model: rd.Model, count: int, seed: int, length: float = 48.0) -> rd.StreamSet:
    starts = pd.date_range("2024-02-26T05:00", periods=count, freq="11h", tz="America/New_York").to_list()
    return rd.simulate(model, count, end=length, seed=seed, start=starts)


def test_a_fit_finds_the_calendar_and_none_where_there_is_none():
    true = a_seasonal_model("poisson", rate=0.3)
    train, dev, test = (dated(true, n, seed) for n, seed in ((90, 1), (30, 2), (60, 3)))
    model = rd.fit(rd.Poisson, train, dev, calendar=True)
    flat = rd.fit(rd.Poisson, train, dev, calendar=False, epochs=1)
    best, found, without = (float(m.log_likelihood(test).sum()) / test.num_events for m in (true, model, flat))
    assert best - 0.01 < found < best + 0.01
    assert without < best - 0.1
    assert model.calendar.zone == "America/New_York"
    nothing = rd.Poisson([0.5, 0.4])
    nothing.time_unit = "hour"
    calendar, record = first_calendar(nothing, dated(nothing, 40, 4), dated(nothing, 20, 5))
    assert calendar is None or record["calendar"]["poisson_dev_gain_per_event"] < 0.01


def test_covariates_are_learned():
    hours = pd.date_range("2024-02-01", periods=24 * 90, freq="h", tz="America/New_York")
    warm = np.random.default_rng(0).normal(size=len(hours)).repeat(4)[: len(hours)]
    table = pd.DataFrame({"when": hours, "warm": warm})
    true = rd.Poisson([0.4])
    true.time_unit, true.types = "hour", ("a",)
    known = Covariates.from_table(table, "America/New_York")
    true.calendar = Calendar(1, 0, 0, unit="hour", zone="America/New_York", covariates=known).double()
    true.calendar.weights.data[:] = torch.tensor([0.0, 0.7])
    train, dev = dated(true, 60, 1), dated(true, 30, 2)
    model = rd.fit(rd.Poisson, train, dev, covariates=table)
    assert abs(float(model.calendar.weights[0, -1]) - 0.7) < 0.1


def test_a_hawkes_process_is_fitted_in_turn_with_its_calendar():
    true = a_seasonal_model("hawkes_scales", rate=0.3)
    train, dev = dated(true, 60, 1), dated(true, 30, 2)
    decays = np.array([3.0, 0.3])
    make = lambda streams: rd.Hawkes.from_streams(streams, scales=decays.tolist())  # noqa: E731
    plain, model = (rd.fit(make, train, dev, calendar=c) for c in (False, True))
    scores = [float(m.log_likelihood(dev).sum()) / dev.num_events for m in (plain, model, true)]
    assert scores[0] + 0.03 < scores[1]
    assert abs(scores[2] - scores[1]) < 0.03
    # What parameters add to expected counts, against the model's own integrals.
    areas = seasonal_areas(train, np.zeros((train.num_events, 2, 3)), decays, model.calendar)
    flat = rd.Poisson(torch.ones(3, dtype=torch.float64))
    flat.calendar, flat.time_unit, flat.types = model.calendar, "hour", train.types
    found = goodness(flat, train).expected.sum(0)
    np.testing.assert_allclose(areas[0], found, rtol=1e-5)
    gain = improve_calendar(model, train, dev)
    assert gain > 0.03


def test_gradient_steps_train_both_and_resume(tmp_path):
    true = a_seasonal_model("poisson", rate=0.3)
    train, dev = dated(true, 24, 1), dated(true, 12, 2)
    make = lambda streams: rd.NeuralHawkes.from_streams(streams, hidden_size=4)  # noqa: E731
    whole = rd.fit(make, train, dev, calendar=True, epochs=3, progress=False)
    begun = rd.fit(make, train, dev, calendar=True, epochs=1, progress=False, directory=tmp_path)
    gone_on = rd.fit(make, train, dev, calendar=True, epochs=3, progress=False, directory=tmp_path)
    assert torch.equal(whole.calendar.weights, gone_on.calendar.weights)
    assert not torch.equal(begun.calendar.weights, gone_on.calendar.weights)
    assert whole.training_record["calendar"]["poisson_dev_gain_per_event"] > 0.1
