"""Datetimes: units, zones, summer time, and the same instants back to the microsecond."""

import datetime
from zoneinfo import ZoneInfo

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from retrodict.errors import DataError, DataNotice
from retrodict.events.io.read import read_events
from retrodict.events.io.write import write_events
from retrodict.events.time_axis import SECONDS, TimeAxis


def frame(times: object, **columns: object) -> pd.DataFrame:
    return pd.DataFrame({"stream": "a", "time": times, "type": "x"} | columns)


def read(times: object, **arguments: object):
    with pytest.warns(DataNotice, match="taken to start at its first event and to end at its last event"):
        return read_events(frame(times), **arguments)


@pytest.mark.parametrize(
    ("gap", "unit"),
    [("3s", "second"), ("59s", "second"), ("60s", "minute"), ("10min", "minute"), ("5h", "hour"), ("3D", "day")],
)
def test_unit_is_chosen_from_the_median_gap(gap, unit):
    assert read(pd.date_range("2013-01-01", periods=5, freq=gap)).axis.unit == unit


def test_times_count_from_the_first_day():
    streams = read(pd.to_datetime(["2013-01-01 06:00", "2013-01-02 12:00"]), unit="hour")
    assert streams.event_times.tolist() == [6.0, 36.0]
    assert streams.axis == TimeAxis("hour", origin=1356998400 * 10**9)
    assert streams.starts.tolist() == [6.0]
    assert str(streams.to_frame()["time"].dtype) == "datetime64[us]"


def test_zone_comes_back():
    times = pd.to_datetime(["2013-07-01 06:00", "2013-07-01 08:00"]).tz_localize("Europe/Berlin")
    streams = read(times)
    assert streams.axis.timezone == "Europe/Berlin"
    assert streams.to_frame()["time"].tolist() == list(times)
    assert str(streams.to_frame()["time"].dtype) == "datetime64[us, Europe/Berlin]"


def test_summer_time_is_an_hour_that_did_not_pass():
    """Between 01:30 and 03:30 on the night the clocks go forward lies one hour, not two."""
    spring = pd.to_datetime(["2013-03-10 01:30", "2013-03-10 03:30"])
    assert np.diff(read(spring, timezone="America/New_York", unit="hour").event_times) == 1.0
    assert np.diff(read(spring, unit="hour").event_times) == 2.0
    autumn = ["2013-11-03T01:30:00-04:00", "2013-11-03T01:30:00-05:00"]
    streams = read(autumn, timezone="America/New_York", unit="hour")
    assert np.diff(streams.event_times) == 1.0
    assert [t.isoformat() for t in streams.to_frame()["time"]] == autumn


def test_timezone_resolves_a_mixture():
    mixed = ["2013-01-01T00:00:00Z", "2013-01-01T02:00:00+01:00", "2013-01-01 03:00"]
    streams = read(mixed, timezone="Europe/Berlin", unit="hour")
    assert np.diff(streams.event_times).tolist() == [1.0, 1.0]
    assert streams.axis.timezone == "Europe/Berlin"
    objects = [
        datetime.datetime(2013, 1, 1, tzinfo=datetime.UTC),
        datetime.datetime(2013, 1, 1, 2, tzinfo=ZoneInfo("Europe/Berlin")),
        datetime.datetime(2013, 1, 1, 3),
    ]
    again = read(pd.Series(objects, dtype=object), timezone="Europe/Berlin", unit="hour")
    assert np.array_equal(again.event_times, streams.event_times)


@pytest.mark.parametrize(
    ("text", "zone"),
    [
        ("2013-01-01T05:00:00Z", "UTC"),
        ("2013-01-01 05:00:00+00:00", "UTC"),
        ("2013-01-01T10:30:00+05:30", "+05:30"),
        ("2013-01-01T10:30+0530", "+05:30"),
        ("2012-12-31T21:00:00-08", "-08:00"),
        ("2013-01-01 05:00", None),
        ("2013-01-01T05:00:00.000000", None),
    ],
)
def test_text_of_one_offset(text, zone, tmp_path):
    (tmp_path / "a.csv").write_text(f"stream,time,type\na,{text},x\n")
    with pytest.warns(DataNotice, match="first event"):
        streams = read_events(tmp_path / "a.csv", unit="hour")
    assert streams.event_times.tolist() == [5.0]
    assert streams.axis.timezone == zone


def test_bounds_in_another_zone_are_the_same_instants():
    times = pd.to_datetime(["2013-07-01 06:00"]).tz_localize("Europe/Berlin")
    ends = pd.to_datetime(["2013-07-01 05:00"]).tz_localize("UTC")
    begin = datetime.datetime(2013, 6, 30, 22, tzinfo=datetime.UTC)
    stream = read_events(frame(times, end=ends), start=begin, unit="hour")[0]
    assert (stream.duration, stream.times[0] - stream.start) == (7.0, 6.0)


def test_dates_alone_and_numpy_and_polars():
    days = [datetime.date(2013, 1, 1), datetime.date(2013, 1, 3)]
    for source in (pd.DataFrame, pl.DataFrame):
        table = source({"stream": ["a", "a"], "time": days, "type": ["x", "y"]})
        streams = read_events(table, start=np.datetime64("2013-01-01"), end=datetime.date(2013, 1, 5))
        assert streams.event_times.tolist() == [0.0, 2.0]
        assert streams.ends.tolist() == [4.0]


def test_polars_datetimes_come_back():
    table = pl.DataFrame({
        "stream": ["a", "a"], "type": ["x", "y"],
        "time": [datetime.datetime(2013, 7, 1), datetime.datetime(2013, 7, 2)],
    }).with_columns(pl.col("time").dt.replace_time_zone("Asia/Tokyo"))  # fmt: skip
    with pytest.warns(DataNotice, match="first event"):
        streams = read_events(table)
    assert streams.axis.timezone == "Asia/Tokyo"
    assert streams.to_frame("polars")["time"].to_list() == table["time"].to_list()


instants = st.datetimes(datetime.datetime(1900, 1, 1), datetime.datetime(1990, 1, 1))


@settings(max_examples=60, deadline=None)
@given(
    st.lists(instants, min_size=2, max_size=6).map(sorted),
    st.sampled_from(["microsecond", "second", "minute", "hour", "day", "week"]),
    st.sampled_from([None, "UTC", "America/New_York", "+05:30"]),
)
def test_microseconds_survive(times, unit, zone):
    column = pd.DatetimeIndex(times).as_unit("us")
    if zone is not None:
        column = column.tz_localize("UTC").tz_convert(zone)
    table = frame(column, start=column[0], end=column[-1])
    streams = read_events(table, unit=unit)
    assert streams.to_frame()["time"].tolist() == list(column)
    assert streams.to_frame()["end"].tolist() == [column[-1]] * len(times)


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.floats(0, 1e4), min_size=1, max_size=5).map(sorted),
    st.sampled_from([unit for unit in SECONDS if unit not in ("nanosecond", "microsecond")]),
)
def test_any_time_survives_to_the_nanosecond(times, unit):
    """Imputed events lie between instants: a file keeps them to the nanosecond, and in order."""
    axis = TimeAxis(unit, origin=1356998400 * 10**9)
    values = np.array(times)
    again = axis.from_instants(axis.to_instants(values))
    slack = 0.51e-9 / SECONDS[unit] + np.spacing(values)
    assert (np.abs(again - values) <= slack).all()
    assert (np.diff(again) >= 0).all()
    assert np.array_equal(axis.to_instants(again), axis.to_instants(values))


def test_csv_in_a_zone_is_written_in_utc_and_reads_back(tmp_path):
    summer_and_winter = pd.to_datetime(["2013-01-01 06:00", "2013-07-01 06:00"]).tz_localize("Europe/Berlin")
    streams = read(summer_and_winter, unit="hour")
    write_events(streams, tmp_path / "a.csv")
    with pytest.warns(DataNotice, match="first event"):
        again = read_events(tmp_path / "a.csv", unit="hour")
    assert again.axis.timezone == "UTC"
    assert np.array_equal(again.event_times, streams.event_times)
    with pytest.warns(DataNotice, match="first event"):
        back = read_events(tmp_path / "a.csv", unit="hour", timezone="Europe/Berlin")
    assert back.to_frame()["time"].tolist() == list(summer_and_winter)


def test_an_axis_without_a_calendar_has_no_instants():
    with pytest.raises(DataError, match="does not say which instants"):
        TimeAxis("fortnight", origin=0).to_instants(np.zeros(1))
