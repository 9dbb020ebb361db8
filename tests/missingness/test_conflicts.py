"""What a user is told where a mechanism contradicts what was observed."""

import warnings

import numpy as np
import pytest
from typer.testing import CliRunner

import retrodict as rd
from retrodict.cli import app
from retrodict.errors import DataNotice
from retrodict.evaluate import finding_words
from retrodict.evaluate.observed import IMPOSSIBLE, compare_observed
from retrodict.events.time_axis import TimeAxis
from retrodict.missingness.conflicts import beside_windows
from retrodict.missingness.words import in_words

AXIS = TimeAxis("hour", 0, "+02:00")
START = 485_640.0 - 2  # 2025-05-27 00:00 +02:00, in hours since 1970


def watched(count: int = 3) -> rd.StreamSet:
    times = START + np.array([1.5, 9.25, 16 + 8 / 60, 20.0])
    each = [rd.EventStream(times, [0, 1, 1, 0], START, START + 24, f"pat{i}") for i in range(126, 126 + count)]
    return rd.StreamSet(each, ["visit", "vitals"], AXIS)


def model() -> rd.Poisson:
    own = rd.Poisson([0.1, 0.1])
    own.types, own.time_unit = ("visit", "vitals"), "hour"
    return own


def day_of(streams: rd.StreamSet) -> str:
    return streams.axis.label(float(streams.starts[0]))[:10]


def test_impute_names_the_event_inside_a_window_that_hides_everything():
    streams = watched()
    day = day_of(streams)
    outage = rd.Windows([(f"{day}T16:00", f"{day}T18:00")])
    posterior = rd.impute(streams, rd.Filtering(model(), outage), particles=20)
    said = f"'pat126' has an event of type 'vitals' at {day} 16:08+02:00, which the mechanism says is always missing"
    with pytest.warns(DataNotice, match="no probability at all") as notes:
        posterior.warn()
    assert said in str(notes[0].message)


def test_check_of_incomplete_streams_counts_observed_events_that_are_always_missing():
    streams = watched(30)
    day = day_of(streams)
    outage = rd.Windows([(f"{day}T16:00", f"{day}T18:00")])
    found = compare_observed(model(), outage, streams).findings()
    alarm = next(f for f in found if f.name == IMPOSSIBLE)
    assert (alarm.value, alarm.p_value) == (30, 0)
    assert finding_words.in_words(alarm).startswith("30 events of incomplete streams were observed")
    fine = compare_observed(model(), rd.Windows([(f"{day}T17:00", f"{day}T18:00")]), streams).findings()
    assert all(f.name != IMPOSSIBLE for f in fine)


@pytest.mark.parametrize(
    ("mechanism", "is_said"),
    [
        (rd.Windows([("2015-05-26T10:00", "2015-05-26T16:00")]), True),
        (rd.Windows([("2015-05-26T10:00", "2015-05-26T16:00"), ("2020-01-01", None)]), False),
        (rd.Windows([(30.0, 40.0)]), True),
        (rd.Windows([("22:00", "23:00")], every="day"), False),
        (rd.Windows(by_stream={"pat127": [(17.0, 18.0)]}), False),
        (rd.Windows(by_stream={"pat999": [(17.0, 18.0)]}), True),
        (rd.ByType(0.5), False),
    ],
)
def test_windows_of_a_wrong_year_are_noted(mechanism, is_said):
    with warnings.catch_warnings(record=True) as notes:
        warnings.simplefilter("always")
        rd.impute(watched(), rd.Filtering(model(), mechanism), particles=20)
    assert any("no stream was watched during any window" in str(note.message) for note in notes) == is_said


def said_beside(mechanism: rd.Missingness, streams: rd.StreamSet) -> list[str]:
    return [str(found) for found in beside_windows(mechanism, streams)]


def test_one_window_of_a_wrong_year_among_others_is_named():
    streams = watched()
    day = day_of(streams)
    right, wrong = (f"{day}T17:00", f"{day}T18:00"), ("2015-05-26T10:00", "2015-05-26T16:00")
    (said,) = said_beside(rd.Windows([right, wrong, ("2031-01-01", None)]) * rd.ByType(0.1), streams)
    assert said.startswith(
        "no stream was watched during 2 of 3 windows (the first: 2015-05-26T10:00 to 2015-05-26T16:00)"
    )
    assert "Remedy: correct its dates" in said
    assert not said_beside(rd.Windows([right], by_stream={"pat999": [wrong]}), streams)
    assert not said_beside(rd.Windows([("22:00", "23:00"), ("02:00", "03:00")], every="day"), streams)
    with warnings.catch_warnings(record=True) as notes:
        warnings.simplefilter("always")
        rd.impute(streams, rd.Filtering(model(), rd.Windows([right, wrong])), particles=20)
    assert sum("during 1 of 2 windows (2015" in str(note.message) for note in notes) == 1


def test_chunks_name_windows_of_no_stream_at_all_and_not_those_of_other_chunks(tmp_path):
    """In the first run each window is for one stream, which is a chunk; in the second both are of a wrong year."""
    late = rd.EventStream(START + 48 + np.array([1.5, 9.25]), [0, 1], START + 48, START + 72, "late")
    streams = rd.StreamSet([watched(1)[0], late], ["visit", "vitals"], AXIS)
    rd.write_events(streams, tmp_path / "s.csv")
    model().save(tmp_path / "model")
    days = [streams.axis.label(float(start))[:10] for start in streams.starts]
    said = []
    for number, at in enumerate((days, ["2015-01-01", "2015-01-03"])):
        windows = "".join(f"\n  - [{day}T20:30, {day}T23:00]" for day in at)
        (tmp_path / "outage.yaml").write_text(f"mechanism: windows\nwindows:{windows}\n")
        words = ["impute", tmp_path / "model", tmp_path / "s.csv", "-m", tmp_path / "outage.yaml", "--particles", 10]
        words += ["--chunk-streams", 1, "-o", tmp_path / f"{number}.csv"]
        result = CliRunner().invoke(app, list(map(str, words)))
        assert result.exit_code == 0, result.output
        said.append(" ".join(result.output.split()))
    assert "no stream was watched during" not in said[0]
    assert "no stream was watched during any window of the mechanism" in said[1]
    last = said[1].rpartition("warning: ")[2]
    assert last.startswith(
        "no window of -m was taken into account: no stream was watched during any of them. Check the year"
    )
    assert "warning: " not in said[0]


@pytest.mark.parametrize(
    ("year", "hours", "last"),
    [
        (2015, ("09:00", "20:00"), "warning: no window of -m was taken into account: no stream was watched during"),
        (None, ("16:00", "19:00"), "warning: 10 events were observed where windows of -m let all go missing, and "),
        (None, ("19:00", "20:30"), None),
    ],
)
def test_impute_ends_with_a_warning_where_windows_cannot_be_the_right_ones(tmp_path, year, hours, last):
    streams = watched(10)
    streams = rd.StreamSet([*streams, rd.EventStream([START + 40.0], [0], START + 30, START + 48, "late")],
                           streams.types, streams.axis)  # fmt: skip
    day = day_of(streams) if year is None else f"{year}-05-26"
    rd.write_events(streams, tmp_path / "s.csv")
    model().save(tmp_path / "model")
    (tmp_path / "outage.yaml").write_text(
        f"mechanism: windows\nwindows:\n  - [{day}T{hours[0]}, {day}T{hours[1]}]\n", encoding="utf-8"
    )
    words = ["impute", tmp_path / "model", tmp_path / "s.csv", "-m", tmp_path / "outage.yaml", "--particles", 10]
    result = CliRunner().invoke(app, list(map(str, [*words, "-o", tmp_path / "out.csv"])))
    assert result.exit_code == 0, result.output
    lines = result.output.strip().splitlines()
    if last is None:
        assert "warning: " not in result.output
        return
    assert lines[-1].startswith(last)
    assert "Check the year and the day, the time zone, and whether days come first (--dates)" in lines[-1]
    if year is None:
        alike = [line for line in lines if "always missing" in line]
        assert len(alike) == 1
        assert "and 9 more: the model gives what was observed no probability" in alike[0]
        assert not any("nothing is imputed in" in line for line in lines)


def test_streams_that_end_at_an_event_just_before_a_window_are_named():
    """Their events are 6 hours apart; "late" ends 3 hours before the window, "early" long before it."""
    hours = np.array([0.0, 6.0, 12.0, 18.0])
    late, early = (
        rd.EventStream(at, [0, 1, 1, 0], at[0], at[-1], id) for at, id in ((hours + 3, "late"), (hours, "early"))
    )
    watched_on = rd.EventStream(hours + 3, [0, 1, 1, 0], 3.0, 30.0, "watched on")
    streams = rd.StreamSet([early, late, watched_on], ["visit", "vitals"])
    outage = rd.Windows([(26.0, 30.0)], clock="axis")
    (said,) = said_beside(outage, streams)
    assert said.startswith("stream 'late' may have gone on into a window in which events go missing")
    assert "Remedy: pass end= with when watching stopped" in said
    (both,) = said_beside(rd.Windows([(23.0, 30.0)], clock="axis"), streams)
    assert both.startswith("2 streams ('early' is the first) may have gone on")
    assert not said_beside(rd.Windows([(26.0, 30.0)], clock="axis", inside=0.0, outside=0.1), streams)


@pytest.mark.parametrize(
    ("mechanism", "words"),
    [
        (
            rd.Windows([("2025-05-26T10:00", "2025-05-26T16:00")]),
            "windows 2025-05-26 10:00+02:00 to 2025-05-26 16:00+02:00",
        ),
        (
            rd.Windows([("2025-05-26T10:00Z", None), (1, 2), (3, 4)], types="vitals", by_stream={"s": [(5, 6)]}),
            "windows 2025-05-26 10:00+00:00 to the end, 1 to 2 and 2 more, for vitals",
        ),
        (rd.Windows([("22:00", "06:00")], every="day"), "windows 22:00 to 06:00 every day in +02:00"),
        (
            rd.ByType([0.5, 0.5]) * rd.Windows(by_stream={"s": [(5, 6.5)]}, unit="hour"),
            "(0.5 of every type) * (windows 5 hours to 6.5 hours of stream 's')",
        ),
    ],
)
def test_windows_in_words_show_their_times(mechanism, words):
    assert in_words(mechanism.on(watched())) == words
