"""Taxis: the recipe on hand-made trips, the raw sample and the prepared streams."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from retrodict.datasets.boroughs import borough_of
from retrodict.datasets.taxi import DETERMINISTIC, TYPES, cut_shifts, taxi
from retrodict.datasets.taxi_trips import COLUMNS, read_trips
from retrodict.errors import DataError, DataNotice
from retrodict.events.stream_set import StreamSet
from tests.conftest import shared

TIMES_SQUARE, KENNEDY, DUMBO = (-73.9855, 40.7580), (-73.7825, 40.6440), (-73.9881, 40.7033)
NEWARK = (-74.1745, 40.6895)


def trip(start: str, seconds: int, origin=TIMES_SQUARE, goal=TIMES_SQUARE, driver: str = "A") -> dict:
    """One row of trip_data."""
    pickup = pd.Timestamp(start)
    times = {"pickup_datetime": str(pickup), "dropoff_datetime": str(pickup + pd.Timedelta(seconds=seconds))}
    places = dict(zip(COLUMNS[4:], (*origin, *goal), strict=True))
    return {"medallion": f"M{driver}", "hack_license": f"H{driver}", "vendor_id": "CMT", **times, **places}


def shift(first: str, count: int, driver: str = "A") -> list[dict]:
    """``count`` trips of 601 seconds, one every half an hour."""
    starts = pd.date_range(first, periods=count, freq="30min")
    return [trip(str(start), 601, driver=driver) for start in starts]


def write(path: Path, rows: list[dict]) -> Path:
    pd.DataFrame(rows).to_csv(path, index=False)
    return path


def derive(folder: Path, rows: list[dict], fewest: int = 2, most: int = 100) -> StreamSet:
    return cut_shifts(read_trips([write(folder / "trip_data_1.csv", rows)]), fewest, most)


def test_a_stream_counts_hours_from_its_first_pick_up_to_its_last_drop_off(tmp_path):
    rows = [trip("2013-04-01 08:00:05", 900, TIMES_SQUARE, KENNEDY), trip("2013-04-01 09:00:05", 1800, KENNEDY, DUMBO)]
    streams = derive(tmp_path, rows)
    assert (streams.types, streams.axis.unit, streams.ids) == (TYPES, "hour", ("MA-HA-001",))
    stream = streams[0]
    np.testing.assert_allclose(stream.times, [0, 0.25, 1, 1.5])
    assert (stream.start, stream.end) == (0.0, 1.5)
    names = [streams.types[k] for k in stream.types]
    assert names == ["pick-up:Manhattan", "drop-off:Queens", "pick-up:Queens", "drop-off:Brooklyn"]
    assert len(TYPES) == 10
    assert set(DETERMINISTIC.censor(streams, seed=0)[1].event_types) == {5, 7}


@pytest.mark.parametrize(("again", "lengths"), [("16:10:06", [4]), ("16:10:07", [2, 2]), ("10:10:06", [4])])
def test_a_break_of_more_than_six_hours_cuts(tmp_path, again, lengths):
    rows = [trip("2013-04-01 10:00:05", 601), trip(f"2013-04-01 {again}", 601)]
    assert derive(tmp_path, rows).lengths.tolist() == lengths


def test_trips_that_overlap_are_cut_apart(tmp_path):
    rows = [trip("2013-04-01 10:00:05", 601), trip("2013-04-01 10:10:05", 601)]
    assert derive(tmp_path, rows).lengths.tolist() == [2, 2]


def test_a_driver_is_a_medallion_and_a_licence(tmp_path):
    rows = shift("2013-04-01 10:00:05", 3) + shift("2013-04-01 10:05:05", 2, "B")
    rows[1]["hack_license"] = "other"
    assert dict(zip(*(lambda s: (s.ids, s.lengths.tolist()))(derive(tmp_path, rows)), strict=True)) == {
        "MA-HA-001": 4,
        "MA-other-001": 2,
        "MB-HB-001": 4,
    }


@pytest.mark.parametrize(("trips", "kept"), [(10, 0), (11, 1), (19, 1), (20, 0)])
def test_streams_have_22_to_38_events(tmp_path, trips, kept):
    path = write(tmp_path / "trip_data_1.csv", shift("2013-04-01 10:00:05", trips))
    assert len(cut_shifts(read_trips([path]))) == kept


def test_streams_in_whole_minutes_are_left_out(tmp_path):
    starts = pd.date_range("2013-04-01 10:00", periods=12, freq="30min")
    rows = [trip(str(start), 600) for start in starts]
    assert len(derive(tmp_path, rows)) == 0
    assert len(derive(tmp_path, [*rows[:-1], trip(str(starts[-1]), 601)])) == 1


@pytest.mark.parametrize(
    ("row", "reason"),
    [
        (trip("2013-04-01 20:00:05", -5), "1 with impossible times"),
        (trip("2013-04-01 20:00:05", 0), "1 with impossible times"),
        (trip("2013-04-01 20:00:05", 60) | {"dropoff_datetime": "soon"}, "1 with impossible times"),
        (trip("2013-04-01 20:00:05", 60, goal=NEWARK), "1 that begin or end outside the five boroughs"),
        (trip("2013-04-01 20:00:05", 60, origin=(0, 0)), "1 that begin or end outside the five boroughs"),
        (trip("2013-04-01 20:00:05", 60, origin=("?", 40.7)), "1 that begin or end outside the five boroughs"),
        (trip("2013-04-01 20:00:05", 60) | {"hack_license": None}, "1 without a driver"),
        (shift("2013-04-01 10:00:05", 1)[0], "1 recorded twice"),
    ],
)
def test_trips_that_cannot_be_used_are_left_out_and_counted(tmp_path, row, reason):
    good = shift("2013-04-01 10:00:05", 4)
    with pytest.warns(DataNotice, match=f"left out 1 of 5 trips: {reason}$"):
        assert derive(tmp_path, [*good, row]) == derive_quietly(tmp_path, good)


def derive_quietly(folder: Path, rows: list[dict]) -> StreamSet:
    folder = folder / "good"
    folder.mkdir()
    return derive(folder, rows)


def test_neither_chunks_nor_the_order_of_rows_or_files_matter(tmp_path):
    rows = [row for driver in "CAB" for row in shift("2013-04-01 10:00:05", 5, driver)]
    one = read_trips([write(tmp_path / "one.csv", rows)])
    shuffled = [rows[i] for i in np.random.default_rng(0).permutation(len(rows))]
    two = [write(tmp_path / "b.csv.gz", shuffled[:6]), write(tmp_path / "a.csv.zip", shuffled[6:])]
    for other in (read_trips(two), read_trips(two[::-1], chunk=4)):
        assert other.drivers == one.drivers == ["MA-HA", "MB-HB", "MC-HC"]
        for ours, theirs in zip(one[1:], other[1:], strict=True):
            np.testing.assert_array_equal(ours, theirs)


def test_headers_of_the_released_files_have_spaces(tmp_path):
    path = write(tmp_path / "trip_data_1.csv", shift("2013-04-01 10:00:05", 3))
    head, _, body = path.read_text().partition("\n")
    path.write_text(head.replace(",", ", ") + "\n" + body)
    assert len(read_trips([path]).driver) == 3


def test_streams_are_drawn_at_random_and_disjoint(tmp_path):
    rows = [row for driver in range(24) for row in shift("2013-04-01 10:00:05", 11, f"{driver:02d}")]
    path = write(tmp_path / "trip_data_1.csv", rows)
    parts = taxi(path, seed=1, sizes=(10, 5, 5))
    assert [len(part) for part in parts] == [10, 5, 5]
    assert len({name for part in parts for name in part.ids}) == 20
    assert taxi(tmp_path, seed=1, sizes=(10, 5, 5)) == parts  # the folder that holds the file
    assert taxi(path, seed=2, sizes=(10, 5, 5)).train.ids != parts.train.ids
    with pytest.warns(DataNotice, match="24 streams where the paper has 6,000"):
        assert [len(part) for part in taxi(path)] == [20, 2, 2]


def test_bad_sources_are_named(tmp_path):
    with pytest.raises(DataError, match=r"do not come with retrodict.*source="):
        taxi()
    with pytest.raises(DataError, match=r"nowhere\.csv: there is no such file"):
        taxi(tmp_path / "nowhere.csv")
    with pytest.raises(DataError, match="neither prepared streams nor trip files"):
        taxi(tmp_path)
    with pytest.raises(DataError, match=r"no column hack_license, pickup_longitude.*trip_data, not trip_fare"):
        taxi(write(tmp_path / "trip_fare_1.csv", [{"medallion": 1, "pickup_datetime": 2, "dropoff_datetime": 3}]))
    (tmp_path / "empty.csv").write_text("")
    with pytest.raises(DataError, match=r"empty\.csv: the file is empty"):
        taxi(tmp_path / "empty.csv")
    (tmp_path / "broken.csv.gz").write_bytes(b"medallion,hack_license")
    with pytest.raises(DataError, match=r"broken\.csv\.gz: the table cannot be read"):
        taxi(tmp_path / "broken.csv.gz")
    (tmp_path / "header.csv").write_text(",".join(COLUMNS) + "\n")
    with pytest.raises(DataError, match="no stream of 22 to 38 events is left"):
        taxi(tmp_path / "header.csv")


@pytest.fixture(scope="module")
def new_year() -> tuple[pd.DataFrame, dict[str, dict[int, tuple]]]:
    """Raw rows of New Year's night, and each driver's rides in the streams made of them: by pick-up second."""
    rows = pd.read_csv(shared("data/nyc_taxi_raw_newyear2013/raw_sample.csv.gz"))
    rides: dict[str, dict[int, tuple]] = {}
    with gzip.open(shared("data/nyc_taxi_raw_newyear2013/all.jsonl.gz")) as lines:
        for line in lines:
            record = json.loads(line)
            seconds = np.rint(np.array(record["times"]) * 3600).astype(int).tolist()
            events = list(zip(seconds, record["types"], strict=True))
            rides[record["id"]] = {
                t: (k - 5, *after) for (t, k), after in zip(events, [*events[1:], (None, None)], strict=True) if k >= 5
            }
    return rows, rides


def test_boroughs_agree_with_streams_made_from_the_citys_own_map(new_year):
    """Of more than 5000 pick-ups and drop-offs at most one in a thousand is put into another borough."""
    rows, rides = new_year
    starts = rows[rows["action"] == "START"]
    origins = borough_of(starts["startLon"], starts["startLat"])
    goals = borough_of(starts["endLon"], starts["endLat"])
    same = []
    seconds = (pd.to_datetime(starts["t1"]) - pd.Timestamp("2013-01-01")).dt.total_seconds().astype(int)
    for taxi_id, driver, second, *ours in zip(
        starts["taxiId"], starts["driverId"], seconds, origins, goals, strict=True
    ):
        ride = rides.get(f"{taxi_id}-{driver}", {}).get(second)
        if ride is not None:
            same += [ours[0] == ride[0]] + [ours[1] == ride[2]] * (ride[2] is not None)
    assert len(same) > 5000
    assert np.mean(same) > 0.999


def test_raw_trips_are_those_of_the_streams(new_year, tmp_path):
    rows, rides = new_year
    ends = rows[rows["action"] == "END"]
    places = dict(zip(COLUMNS[4:], ("startLon", "startLat", "endLon", "endLat"), strict=True))
    ids = {"medallion": "taxiId", "hack_license": "driverId", "pickup_datetime": "t2", "dropoff_datetime": "t1"}
    pd.DataFrame({ours: ends[theirs] for ours, theirs in (ids | places).items()}).to_csv(tmp_path / "t.csv")
    with pytest.warns(DataNotice, match="of 892 trips"):
        trips = read_trips([tmp_path / "t.csv"])
    midnight = pd.Timestamp("2013-01-01").value // 10**9
    found = 0
    for driver, pickup, dropoff, origin, goal in zip(*trips[1:], strict=True):
        ride = rides.get(trips.drivers[driver], {}).get(pickup - midnight)
        if ride is not None:
            assert ride == (origin, dropoff - midnight, goal)
            found += 1
    assert found > 400


def test_prepared_streams_have_the_papers_counts():
    train, dev, test = taxi(shared("data/nyc_taxi_2013"))
    assert (dev.num_events, test.num_events) == (15_826, 15_808)  # the paper's own figures
    assert (len(train), len(dev), len(test)) == (2541, 500, 500)
    assert train.types == dev.types == test.types
    assert train.num_types == 10
    for part in (train, dev, test):
        assert part.lengths.min() >= 22
        assert part.lengths.max() <= 38
        picks = np.array([name.startswith("pick-up") for name in part.types])[part.event_types]
        place = np.arange(part.num_events) - np.repeat(part.offsets[:-1], part.lengths)
        np.testing.assert_array_equal(picks, place % 2 == 0)
        breaks = np.diff(part.event_times)[(place[1:] > 0) & (place[1:] % 2 == 0)]
        assert breaks.max() <= 6
