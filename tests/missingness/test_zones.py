"""Dates and times of day that are written without a zone are those of the table's clocks."""

import numpy as np
import pandas as pd
import pytest
import torch

import retrodict as rd
from retrodict.errors import ModelError
from retrodict.missingness import Context
from retrodict.missingness.spec import parse_missing

OUTAGE = [("2025-05-26T10:00", "2025-05-26T16:00")]


def hourly(zone: str | None, day: str = "2025-05-26", hours: int = 24, unit: str = "hour") -> rd.StreamSet:
    """An event at half past every hour of a day, in a table of this zone."""
    first = pd.Timestamp(day, tz=zone) + pd.Timedelta(minutes=30)
    times = pd.date_range(first, periods=hours, freq="h")
    half = pd.Timedelta(minutes=30)
    table = pd.DataFrame({"stream": "s", "time": times, "type": "a", "start": first - half, "end": times[-1] + half})
    return rd.read_events(table, unit=unit)


def hidden_hours(mechanism: rd.Missingness, streams: rd.StreamSet) -> list[int]:
    axis = streams.axis
    gone = streams.event_times[mechanism.hide(streams)]
    return [int(axis.label(float(time))[11:13]) for time in gone]


@pytest.mark.parametrize("zone", [None, "UTC", "+02:00", "-09:30", "Europe/Berlin", "America/New_York"])
@pytest.mark.parametrize("unit", ["second", "hour", "day"])
def test_outage_without_an_offset_is_at_the_hours_the_table_shows(zone, unit):
    assert hidden_hours(rd.Windows(OUTAGE), hourly(zone, unit=unit)) == [10, 11, 12, 13, 14, 15]


def test_outage_with_an_offset_keeps_it():
    outage = rd.Windows([("2025-05-26T10:00+00:00", "2025-05-26T16:00Z")])
    assert hidden_hours(outage, hourly("+02:00")) == [12, 13, 14, 15, 16, 17]


@pytest.mark.parametrize("zone", [None, "+02:00", "+05:45", "Europe/Berlin"])
def test_times_of_day_are_those_the_clocks_of_the_table_show(zone):
    nights = rd.Windows([("22:00", "06:00")], every="day")
    assert hidden_hours(nights, hourly(zone)) == [0, 1, 2, 3, 4, 5, 22, 23]
    noon = rd.TimeVarying(["00:00", "12:00", "14:00"], [0, 1, 0], every="day", steps=True)
    assert hidden_hours(noon, hourly(zone)) == [12, 13]


@pytest.mark.parametrize("day", ["2025-03-30", "2025-10-26"])
def test_times_of_day_follow_summer_time(day):
    early = rd.Windows([("04:00", "06:00")], every="day")
    streams = hourly("Europe/Berlin", day, 23 if day == "2025-03-30" else 25)
    assert hidden_hours(early, streams) == [4, 5]


@pytest.mark.parametrize(
    "mechanism",
    [
        rd.Windows([("02:15", "02:45"), ("23:30", "00:15")], every="day", inside=0.9, outside=0.1),
        rd.TimeVarying(["01:00", "02:30", "20:00"], [0.2, 0.9, 0.4], every="day"),
    ],
)
@pytest.mark.parametrize("zone", ["Europe/Berlin", "America/Havana", "+03:00"])
def test_bounds_and_breaks_hold_where_clocks_are_changed(mechanism, zone):
    bound_to = mechanism.in_zone(zone).bind(["a"], "hour")
    generator = torch.Generator().manual_seed(3)
    begin = pd.Timestamp("2025-03-07", tz="UTC").timestamp() / 3600
    start = torch.rand(400, generator=generator, dtype=torch.float64) * 24 * 30
    stop = start + torch.rand(400, generator=generator, dtype=torch.float64) * 20
    context = Context(torch.full_like(start, begin), torch.zeros(400, dtype=torch.int64))
    inner = start[:, None] + (stop - start)[:, None] * torch.linspace(0, 1, 500, dtype=torch.float64)
    rates = bound_to.rates(inner, context.over(inner))
    assert (rates.amax(1) <= bound_to.bound(start, stop, context) + 1e-9).all()
    breaks = bound_to.breaks(start, stop, context)
    edges = torch.cat([start[:, None], breaks, stop[:, None]], 1)
    thirds = [edges[:, :-1] + edges.diff(dim=1) * share for share in (0.01, 0.5, 0.99)]
    low, middle, high = (bound_to.rates(t, context.over(t)) for t in thirds)
    assert torch.allclose((low + high) / 2, middle, atol=1e-6)  # straight between breaks


def test_saved_mechanism_means_the_same_on_a_table_of_another_zone():
    mechanism = rd.Windows(OUTAGE).in_zone("+02:00")
    again = rd.Windows.from_config(mechanism.config())
    assert hidden_hours(again, hourly("UTC")) == [8, 9, 10, 11, 12, 13]
    older = {key: value for key, value in rd.Windows(OUTAGE).config().items() if key != "zone"}
    assert hidden_hours(rd.Windows.from_config(older), hourly("+02:00")) == [12, 13, 14, 15, 16, 17]


def test_file_and_sampler_take_the_zone_of_the_table(tmp_path):
    file = tmp_path / "outage.yaml"
    file.write_text("mechanism: windows\nwindows: [[2025-05-26T10:00, 2025-05-26T16:00]]\n")
    streams = hourly("+02:00")
    there = parse_missing([str(file)], ["a"], "hour", "+02:00")
    assert hidden_hours(there, streams) == [10, 11, 12, 13, 14, 15]
    observed, _ = there.censor(streams)
    model = rd.Poisson([3.0])
    model.types, model.time_unit = ("a",), "hour"
    for missing in (rd.Windows(OUTAGE), there, rd.Windows(OUTAGE) * rd.ByType(0.0)):
        posterior = rd.impute(observed, rd.Filtering(model, missing), particles=50)
        hours = {int(observed.axis.label(float(time))[11:13]) for time in posterior.event_times}
        assert posterior.is_possible.all()
        assert hours == {10, 11, 12, 13, 14, 15}


def test_own_mechanism_whose_bind_takes_types_and_unit_alone_still_works():
    class Own(rd.Missingness):
        def bind(self, types, unit=None):
            return self

        def rates(self, t, context=None):
            return torch.ones(*t.shape, 1, dtype=torch.float64)

    assert np.all(Own().hide(hourly("+02:00")))


def test_wrong_zone_is_named():
    with pytest.raises(ModelError, match="no time zone 'Europe/Atlantis'"):
        rd.Windows(OUTAGE, zone="Europe/Atlantis")


def contextual(**options) -> rd.Contextual:
    """A network that looks at the time of day and at nothing else; its weights are drawn at random."""
    mechanism = rd.Contextual(["a"], [1.0], 4, every="day", **options)
    with torch.no_grad():
        mechanism.network[0].weight[:, 0] = 0.0
        torch.nn.init.normal_(mechanism.network[2].weight, std=3.0, generator=torch.Generator().manual_seed(1))
    return mechanism


def by_hour(mechanism: rd.Missingness, streams: rd.StreamSet) -> dict[int, float]:
    """The rate of the event at half past each hour that the table shows."""
    rates = mechanism.on(streams).event_rates(streams)
    return {int(streams.axis.label(float(t))[11:13]): rate for t, rate in zip(streams.event_times, rates, strict=True)}


@pytest.mark.parametrize("zone", ["UTC", "+05:45", "America/New_York"])
@pytest.mark.parametrize("unit", ["minute", "day"])
def test_learned_rates_see_the_hours_that_the_table_shows(zone, unit):
    known = by_hour(contextual(), hourly(None))
    assert len(set(np.round(list(known.values()), 3))) > 12
    assert by_hour(contextual(), hourly(zone, unit=unit)) == pytest.approx(known)
    fixed = by_hour(contextual(zone="UTC"), hourly("America/New_York"))
    assert [fixed[hour] for hour in range(20)] == pytest.approx([known[hour + 4] for hour in range(20)])


@pytest.mark.parametrize(("day", "hours"), [("2025-03-30", 23), ("2025-10-26", 25)])
def test_learned_rates_follow_summer_time_also_after_saving(day, hours):
    known, streams = by_hour(contextual(), hourly(None)), hourly("Europe/Berlin", day, hours)
    found = by_hour(contextual(), streams)
    assert found == pytest.approx({hour: known[hour] for hour in found})
    bound_to = contextual().on(streams)
    again = rd.Contextual.from_config(bound_to.config()).in_zone("America/New_York")
    assert by_hour(again, streams) == pytest.approx(found)
    start = torch.zeros(1, dtype=torch.float64)
    stop, begin = start + hours, start + pd.Timestamp(day, tz="Europe/Berlin").timestamp() / 3600
    context = Context(begin, torch.zeros(1, dtype=torch.int64), None, stop, bound_to.initial((1,)))
    change = pd.Timestamp(f"{day} 01:00", tz="UTC").timestamp() / 3600 - float(begin[0])
    assert (bound_to.breaks(start, stop, context) - change).abs().min() < 1e-9
