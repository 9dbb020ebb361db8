"""Imputed times are as fine as the user's own column, and no finer; their order stays."""

from __future__ import annotations

import re

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import retrodict as rd
from retrodict.events.io.time_style import find_step

pytestmark = pytest.mark.filterwarnings("ignore::retrodict.errors.DataNotice")  # streams end at their last event
DAY, MINUTE, SECOND = 86_400 * 10**9, 60 * 10**9, 10**9
ZONES = [None, "America/New_York", "Asia/Kolkata", "America/Sao_Paulo", "+05:30"]


def guesses(observed: rd.StreamSet, rng: np.random.Generator, number: int) -> rd.StreamSet:
    """Events anywhere in each stream, each with an interval around it."""
    made = []
    for s in observed:
        low, times, high = np.sort(rng.uniform(s.start, s.end, (3, number)), axis=0)
        order = np.argsort(times)
        columns = {"probability": rng.random(number), "earliest": low[order], "latest": high[order]}
        made.append(rd.EventStream(times[order], [0] * number, s.start, s.end, s.id, columns))
    return rd.StreamSet(made, types=observed.types, axis=observed.axis)


def table(rng: np.random.Generator, step: int, zone: str | None) -> pd.DataFrame:
    """Two streams at whole steps of the clock on the wall; days and minutes span the change of clocks."""
    first = pd.Timestamp("2013-10-25").value
    ticks = np.sort(rng.integers(0, min(21 * DAY // step, 10**9), 16))
    wall = pd.Series(pd.to_datetime(first + ticks * step))
    if zone is not None:
        wall = wall.dt.tz_localize(zone, ambiguous=False, nonexistent=pd.Timedelta("1D"))
    return pd.DataFrame({"stream": list("ab") * 8, "time": wall, "type": "x"})


@pytest.mark.parametrize("zone", ZONES)
@pytest.mark.parametrize("step", [DAY, MINUTE, SECOND, 10**6, 1000])
def test_imputed_times_have_the_resolution_of_the_column_and_keep_their_order(step, zone):
    rng = np.random.default_rng([step // 1000, len(zone or "")])
    frame = table(rng, step, zone)
    observed = rd.read_events(frame)
    filled = rd.fill(observed, guesses(observed, rng, 40))
    back = filled.to_table()
    new = back["imputed"].to_numpy(dtype=bool)
    assert back[~new][frame.columns].reset_index(drop=True).equals(frame)
    for name in ("time", "earliest", "latest"):
        wall = back.loc[new, name].dt.tz_localize(None).dt.as_unit("ns").astype("int64")
        skipped = wall % DAY == 3600 * SECOND  # clocks of Brazil went forward at midnight
        assert ((wall % step == 0) | skipped).all(), name
    assert (back.loc[new, "earliest"] <= back.loc[new, "time"]).all()
    assert (back.loc[new, "time"] <= back.loc[new, "latest"]).all()
    again = rd.read_events(back[["stream", "time", "type"]], unit=filled.axis.unit)
    for stream, one in back.groupby("stream"):
        assert one["time"].is_monotonic_increasing, stream
    assert (again.lengths == filled.lengths).all()


@pytest.mark.parametrize(
    ("written", "imputed"),
    [
        (["2024-03-04 06:20:31", "2024-03-04 09:00:00"], r"2024-03-04 0\d:\d\d:\d\d"),
        (["2024-03-04T06:20", "2024-03-04T09:00"], r"2024-03-04T0\d:\d\d"),
        (["2024-03-04", "2024-03-09"], r"2024-03-0\d"),
        (["2024-03-04 06:20:31.5", "2024-03-04 09:00:00.25"], r"2024-03-04 0\d:\d\d:\d\d\.\d{3}(000)?"),
        (["2024-03-04T06:20:31Z", "2024-03-04T09:00:00Z"], r"2024-03-04T0\d:\d\d:\d\dZ"),
    ],
)
def test_a_column_of_whole_seconds_minutes_or_dates_gets_no_microseconds(tmp_path, written, imputed):
    path = tmp_path / "trips.csv"
    path.write_text("driver,when,what\n" + "".join(f"ann,{text},pick-up\n" for text in written))
    observed = rd.read_events(path, stream="driver", time="when", type="what")
    rd.write_events(rd.fill(observed, guesses(observed, np.random.default_rng(0), 5)), tmp_path / "out.csv")
    lines = [line.split(",") for line in (tmp_path / "out.csv").read_text().splitlines()[1:]]
    assert [line[1] for line in lines if line[3] == "false"] == written
    new = [line for line in lines if line[3] == "true"]
    assert len(new) == 5
    for _, when, _, _, _, earliest, latest in new:
        assert all(re.fullmatch(imputed, text) for text in (when, earliest, latest)), when
        assert earliest <= when <= latest


def test_a_stream_shorter_than_a_step_keeps_its_imputed_events_inside():
    """Dates are whole days, but a stream lasts from six to ten in the morning: its events lie in between."""
    frame = pd.DataFrame({
        "stream": ["a", "b"], "time": [pd.Timestamp("2024-03-04"), pd.NaT], "type": ["x", None],
        "start": pd.to_datetime(["2024-03-04 00:00", "2024-03-05 06:00"]),
        "end": pd.to_datetime(["2024-03-08 00:00", "2024-03-05 10:00"]),
    })  # fmt: skip
    observed = rd.read_events(frame)
    back = rd.fill(observed, guesses(observed, np.random.default_rng(0), 3)).to_table()
    assert rd.read_events(back).lengths.tolist() == [4, 3]
    days = back.loc[back["imputed"] & (back["stream"] == "a"), "time"]
    assert (days.dt.normalize() == days).all()


def test_the_step_of_a_column_is_the_longest_that_all_its_dates_share():
    assert find_step(pa.array(["2024-03-04 00:00:00", "2024-03-05"])) == DAY
    assert find_step(pa.array(["2024-03-04 00:00+01:00"])) == MINUTE  # midnight of some zone
    assert find_step(pa.array(["2024-03-04 10:00:00.000", "2024-03-04 10:01"])) == MINUTE
    assert find_step(pa.array(["2024-03-04 10:00:00.123456789"])) == 1
    assert find_step(pa.array([0, 60], pa.timestamp("s"))) == MINUTE
    assert find_step(pa.array([18_000], pa.timestamp("s", "America/New_York"))) == DAY
    assert find_step(pa.array([], pa.string())) is None
