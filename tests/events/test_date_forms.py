"""Dates as a spreadsheet writes them are read where their form is named, never guessed, and written back in it."""

from __future__ import annotations

import datetime
import re
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import retrodict as rd
from retrodict.cli.common import in_options
from retrodict.events.io.date_forms import date_form
from tests.events.test_time_resolution import guesses

pytestmark = pytest.mark.filterwarnings("ignore::retrodict.errors.DataNotice")  # streams end at their last event
FORMS = {  # how a moment is written, for each form
    "day-first": "{d:02}/{m:02}/{y} {H:02}:{M:02}",
    "month-first": "{m}/{d}/{y} {H}:{M:02}",
    "%d.%m.%Y %H:%M": "{d:02}.{m:02}.{y} {H:02}:{M:02}",
    "%m/%d/%y %I:%M %p": "{m}/{d}/{short} {h}:{M:02} {half}",
    "%d %b %Y %H.%M": "{d} {b} {y} {H:02}.{M:02}",
    "%Y%m%d%H%M": "{y}{m:02}{d:02}{H:02}{M:02}",
    "%Y-%d-%m %H:%M": "{y}-{d:02}-{m:02} {H:02}:{M:02}",
}
ARGUMENTS = {"stream": "who", "time": "when", "type": "what", "start": "from", "end": "until"}


def written(moment: pd.Timestamp, dates: str) -> str:
    """A moment in a form."""
    half = {"h": moment.hour % 12 or 12, "half": "PM" if moment.hour >= 12 else "AM", "b": f"{moment:%b}"}
    date = {"d": moment.day, "m": moment.month, "y": moment.year, "short": f"{moment.year % 100:02}"}
    return FORMS[dates].format(**date, **half, H=moment.hour, M=moment.minute)


def table(seed: int = 0) -> pd.DataFrame:
    """Three streams of whole minutes over all months and hours, with when each was watched."""
    rng = np.random.default_rng(seed)
    minutes = np.sort(rng.integers(0, 500_000, (3, 20)), axis=1)
    first, last = pd.Timestamp("2024-12-31 13:05"), pd.Timestamp("2025-12-31 23:59")
    when = first + pd.to_timedelta(minutes.ravel(), unit="min")
    who = np.repeat(["ann", "bob", "cem"], 20)
    return pd.DataFrame({"who": who, "when": when, "what": "x", "from": first, "until": last})


def texts(frame: pd.DataFrame, dates: str) -> pd.DataFrame:
    """The table with its dates as texts."""
    return frame.assign(**{name: frame[name].map(lambda t: written(t, dates)) for name in ("when", "from", "until")})


def sources(frame: pd.DataFrame, folder: Path) -> dict[str, Any]:
    """The table as everything that can be read."""
    frame.to_csv(folder / "t.csv", index=False)
    frame.to_parquet(folder / "t.parquet", index=False)
    coded = frame.assign(when=frame["when"].astype("category"))
    return {"pandas": frame, "categories": coded, "polars": pl.from_pandas(frame), "arrow": pa.Table.from_pandas(frame),
            "csv": folder / "t.csv", "parquet": folder / "t.parquet"}  # fmt: skip


@pytest.mark.parametrize("zone", [None, "Europe/Berlin"])
@pytest.mark.parametrize("dates", FORMS)
def test_the_events_are_those_of_the_same_table_with_real_dates(dates, zone, tmp_path):
    frame = table()
    right = rd.read_events(frame, **ARGUMENTS, timezone=zone)
    for name, source in sources(texts(frame, dates), tmp_path).items():
        found = rd.read_events(source, **ARGUMENTS, timezone=zone, dates=dates)
        assert found.axis == right.axis, name
        assert found.event_times.tolist() == right.event_times.tolist(), name
        assert (found.starts.tolist(), found.ends.tolist()) == (right.starts.tolist(), right.ends.tolist()), name


@pytest.mark.parametrize("dates", FORMS)
def test_the_users_texts_come_back_and_imputed_times_have_their_form(dates, tmp_path):
    frame = texts(table(1), dates)
    for name, source in sources(frame, tmp_path).items():
        observed = rd.read_events(source, **ARGUMENTS, dates=dates)
        filled = rd.fill(observed, guesses(observed, np.random.default_rng(0), 15))
        suffix = "csv" if name == "csv" else "parquet"
        rd.write_events(filled, tmp_path / f"out.{suffix}")
        out = pd.read_csv(tmp_path / "out.csv", dtype=str) if name == "csv" else filled.to_table("pandas")
        new = out["imputed"].astype(str).str.lower() == "true"
        assert out.loc[~new, list(frame)].reset_index(drop=True).astype(object).equals(frame.astype(object)), name
        form = re.sub(r"\d+", r"\\d+", re.sub("[A-Z][a-z]{2}|[AP]M", "[A-Za-z]+", re.escape(frame["when"][0])))
        for column in ("when", "earliest", "latest"):
            assert out.loc[new, column].astype(str).str.fullmatch(form).all(), (name, column)
        again = rd.read_events(tmp_path / f"out.{suffix}", **ARGUMENTS, dates=dates, unit=filled.axis.unit)
        assert again.lengths.tolist() == filled.lengths.tolist(), name
        late = filled.event_times - again.event_times
        assert ((late >= -1e-9) & (late < 1 / (24 * 60 if filled.axis.unit == "day" else 60))).all(), name


def test_a_parquet_file_that_was_written_here_knows_how_its_dates_are_written(tmp_path):
    observed = rd.read_events(texts(table(), "day-first"), **ARGUMENTS, dates="day-first")
    rd.write_events(observed, tmp_path / "a.parquet")
    again = rd.read_events(tmp_path / "a.parquet", **ARGUMENTS)
    assert again.event_times.tolist() == observed.event_times.tolist()


def small(*whens: Any) -> pd.DataFrame:
    return pd.DataFrame({"stream": "a", "time": pd.Series(whens, dtype=object), "type": "x"})


@pytest.mark.parametrize("dates", ["day-first", "month-first"])
def test_leading_zeros_are_as_in_the_table(dates):
    def imputed(*whens: str) -> str:
        observed = rd.read_events(small(*whens), dates=dates)
        guess = rd.EventStream([observed.starts[0] + 1], [0], observed.starts[0], observed.ends[0], "a",
                               {key: [1.0] for key in ("probability", "earliest", "latest")})  # fmt: skip
        table = rd.fill(observed, rd.StreamSet([guess], types=["x"], axis=observed.axis)).to_table()
        return table.loc[table["imputed"], "time"].item()

    first = dates == "day-first"
    assert imputed("04/04/2025 06:00", "05/05/2025 11:00") == ("05/04/2025 06:00" if first else "04/05/2025 06:00")
    assert imputed("4/4/2025 6:00", "5/5/2025 11:00") == ("5/4/2025 6:00" if first else "4/5/2025 6:00")
    assert imputed("4.4.2025 06:00", "5.5.2025 11:00").endswith(".2025 06:00")
    assert imputed("11-11-2025, 6:00:00", "12-12-2025, 11:00:00").endswith("-2025, 6:00:00")


@pytest.mark.parametrize("whens", [("03/02/2025 07:43", "05/02/2025 09:00"), ("25/12/2025", "26/12/2025")])
def test_without_the_option_nothing_is_guessed_and_the_remedy_names_it(whens):
    with pytest.raises(rd.DataError) as refused:
        rd.read_events(small(*whens))
    message = str(refused.value)
    assert "Remedy: pass dates='day-first' if days come first, dates='month-first' if months do; or" in message
    assert "Remedy: pass --dates day-first if days come first, --dates month-first if months do" in in_options(message)


@pytest.mark.parametrize(
    ("dates", "when", "words"),
    [
        ("day-first", "12/25/2025 07:00", ["with the day first", "pass dates='month-first' if all dates"]),
        ("month-first", "25/12/2025 07:00", ["with the month first", "pass dates='day-first' if all dates"]),
        ("day-first", "30/02/2025", ["cannot read '30/02/2025' as a date with the day first"]),
        ("day-first", "10/03/2025 24:30", ["cannot read"]),
        ("day-first", "10/03/25 07:00", ["pass the format, such as dates='%d/%m/%y %H:%M'"]),
        ("month-first", "3/10/2025 7:00 PM", ["pass the format, such as dates='%m/%d/%Y %I:%M %p'"]),
        ("day-first", "soon", ["cannot read 'soon'"]),
        ("day-first", "45000.5", ["cannot read '45000.5'"]),
        ("%d.%m.%Y", "10/03/2025", ["as a date of the form '%d.%m.%Y'", "pass the format that all dates have"]),
        ("%d/%m/%Y %I:%M %p", "10/03/2025 13:00 PM", ["cannot read '10/03/2025 13:00 PM'"]),
        ("%Y%m%d", "2025111", ["cannot read '2025111'"]),
        (
            None,
            "10/03/25 07:00",
            ["pass dates='%d/%m/%y %H:%M' if days come first, dates='%m/%d/%y %H:%M' if months do"],
        ),
        (None, "2025/03/10 07:00", ["pass dates='%Y/%m/%d %H:%M' if years come first, then months"]),
    ],
)
def test_a_date_of_another_form_is_refused_with_its_row_and_the_remedy(dates, when, words):
    right = "10.03.2025" if dates in ("day-first", "month-first") else "20250310" if dates == "%Y%m%d" else when
    right = {"%d.%m.%Y": "10.03.2025", "%d/%m/%Y %I:%M %p": "10/03/2025 1:00 PM", None: "2025-03-10"}.get(dates, right)
    with pytest.raises(rd.DataError) as refused:
        rd.read_events(small(right, right, when), dates=dates)
    for word in ("stream 'a', row 3: column 'time': cannot read", *words):
        assert word in str(refused.value)


@pytest.mark.parametrize(
    ("dates", "words"),
    [
        (
            "sideways",
            "dates= is 'sideways', which is no form of dates. Remedy: use day-first, month-first, or a format",
        ),
        ("%d.%m.%Q", "and %Q is unknown. Remedy: use some of %d %m %Y"),
        ("%m/%Y", "which has a day (%d) not at all"),
        ("%d/%m/%Y %m", "which has a month (%m) more than once"),
        ("%d/%m/%Y %I:%M", "which has AM or PM (%p) not at all"),
        ("%d/%m/%Y %H", "which has minutes (%M) not at all"),
        (7, "dates= is 7, not a word"),
    ],
)
def test_what_is_no_form_is_refused(dates, words):
    with pytest.raises(rd.DataError, match=re.escape(words)):
        rd.read_events(small("10/03/2025"), dates=dates)


def test_numbers_and_formats_without_dates_refuse_the_option(tmp_path):
    with pytest.raises(rd.DataError, match="dates= was given, but column 'time' holds numbers"):
        rd.read_events(small(1.0, 2.0).astype({"time": float}), dates="day-first")
    (tmp_path / "a.jsonl").write_text('{"id": "a", "horizon": [0, 1], "times": [0.5], "types": ["x"]}\n')
    with pytest.raises(rd.DataError, match="dates= was given, but JSON Lines has plain numbers as times"):
        rd.read_events(tmp_path / "a.jsonl", dates="day-first")


def test_a_start_and_an_end_given_once_have_the_form_or_are_what_they_are():
    frame = small("10/03/2025 07:48")
    for start in ("09/03/2025", "2025-03-09", datetime.datetime(2025, 3, 9), np.datetime64("2025-03-09")):
        streams = rd.read_events(frame, start=start, end="11/03/2025 06:00:30", dates="day-first", unit="hour")
        assert streams.starts.tolist() == [0.0]
        assert streams.ends.tolist() == [54 + 30 / 3600]
    with pytest.raises(rd.DataError, match=r"start=: cannot read '13/13/2025' as a date with the day first"):
        rd.read_events(frame, start="13/13/2025", dates="day-first")
    strict = rd.read_events(
        small("2025-10-03"), start=datetime.datetime(2025, 3, 9), end="2025-11-03", dates="%Y-%d-%m"
    )
    assert strict.axis.label(strict.event_times[0]).startswith("2025-03-10")


def test_real_dates_stay_as_they_are():
    frame = small("10/03/2025").assign(time=pd.to_datetime(["2025-03-10"]))
    assert rd.read_events(frame, dates="day-first").axis == rd.read_events(frame).axis


def test_the_hour_that_comes_twice_is_written_with_its_offset_and_read_again():
    frame = small("26/10/2025 01:00", "26/10/2025 04:00")
    observed = rd.read_events(frame, dates="day-first", timezone="Europe/Berlin", unit="hour")
    times = observed.starts[0] + np.array([1.25, 2.25])
    columns = {"probability": [1.0, 1.0], "earliest": times, "latest": times}
    guess = rd.EventStream(times, [0, 0], observed.starts[0], observed.ends[0], "a", columns)
    back = rd.fill(observed, rd.StreamSet([guess], types=["x"], axis=observed.axis)).to_table()
    assert back["time"].tolist()[1:3] == ["26/10/2025 02:15+02:00", "26/10/2025 02:15+01:00"]
    again = rd.read_events(back, dates="day-first", timezone="Europe/Berlin", unit="hour")
    assert again.event_times.tolist()[1:3] == times.tolist()


def test_a_stream_shorter_than_a_minute_keeps_its_imputed_events_and_they_are_read_again():
    for dates, when in (("day-first", "10/03/2025 07:48"), ("%d.%m.%Y", "10.03.2025")):
        frame = small(when).assign(start=when, end=when + ("" if ":" in when else " 00:00") + ":30")
        observed = rd.read_events(frame, dates=dates, unit="second")
        back = rd.fill(observed, guesses(observed, np.random.default_rng(1), 4)).to_table()
        assert rd.read_events(back, dates=dates).lengths.tolist() == [5]


def test_two_digit_years_are_those_of_strptime():
    form = date_form("%d/%m/%y")
    years = [text[:4] for text in form.to_iso(pa.array(["1/1/00", "1/1/68", "1/1/69", "1/1/99"])).to_pylist()]
    assert years == [str(datetime.datetime.strptime(f"1/1/{y}", "%d/%m/%y").year) for y in ("00", "68", "69", "99")]


def test_a_csv_file_becomes_a_table_of_real_dates(tmp_path):
    frame = table()
    texts(frame, "month-first").to_csv(tmp_path / "a.csv", index=False)
    streams = rd.read_events(tmp_path / "a.csv", **ARGUMENTS, dates="month-first")
    for name in ("when", "from", "until"):
        assert (streams.to_table()[name] == frame[name]).all()
    rd.write_events(streams, tmp_path / "a.parquet")
    assert rd.read_events(tmp_path / "a.parquet", **ARGUMENTS).event_times.tolist() == streams.event_times.tolist()


def test_an_event_log_in_a_table_has_its_dates_in_their_form(tmp_path):
    whens = ["10/03/2025 07:48", "10/03/2025 09:00", "11/03/2025 08:00"]
    log = pd.DataFrame({"case:concept:name": "a", "concept:name": "x", "time:timestamp": whens,
                        "lifecycle:transition": ["start", "complete", "complete"]})  # fmt: skip
    log.to_csv(tmp_path / "log.csv", index=False)
    observed = rd.read_events(tmp_path / "log.csv", dates="day-first")
    assert observed.num_events == 2
    rd.write_events(rd.fill(observed, guesses(observed, np.random.default_rng(0), 5)), tmp_path / "out.csv")
    out = pd.read_csv(tmp_path / "out.csv")
    assert out.loc[~out["imputed"], "time:timestamp"].tolist() == whens
    assert out.loc[out["imputed"], "time:timestamp"].str.fullmatch(r"1\d/03/2025 \d\d:\d\d").all()


def notices_of(dates: str, *whens: Any) -> list[str]:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", rd.DataNotice)
        rd.read_events(small(*whens), dates=dates, start="01/01/2020", end="01/01/2030")
    return [str(one.message) for one in caught if "read both ways" in str(one.message)]


def test_dates_that_lie_far_closer_together_in_the_other_order_are_told():
    three_days = ("08.12.2025 07:00", "09.12.2025 08:30", "10.12.2025 16:00")
    assert notices_of("day-first", *three_days) == []
    (found,) = notices_of("month-first", *three_days)
    assert found == (
        "column 'time': every date could be read both ways: with the month first they span 62 days, as here "
        "('08.12.2025 07:00' is 12 August 2025), with the day first only 3. "
        "If the 3 days are right, pass dates='day-first'"
    )
    assert in_options(found).endswith("If the 3 days are right, pass --dates day-first")
    (found,) = notices_of("day-first", "12/8/2025", "12/9/2025", "12/10/2025")
    assert found.endswith("with the month first only 3. If the 3 days are right, pass dates='month-first'")


@pytest.mark.parametrize(
    "whens",
    [
        ("08.12.2025", "10.12.2025", "2025-12-10"),  # in ISO 8601 nothing is doubtful
        ("12.12.2025", "12.12.2025"),
        ("01.02.2025", "02.01.2025"),
        ("01.02.2025", "02.05.2025", "01.09.2025", "04.12.2025"),
    ],
)
def test_of_dates_that_are_as_close_together_in_either_order_nothing_is_told(whens):
    assert notices_of("month-first", *whens) == []
    assert notices_of("day-first", *whens) == []
