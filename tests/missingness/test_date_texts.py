"""Dates in a mechanism's file have the form that ``dates=`` names, or are in ISO 8601; what could be both is none."""

from __future__ import annotations

import pytest

import retrodict as rd
from retrodict.cli.common import in_options
from retrodict.errors import DataError

ISO = [["2025-03-10T07:48", "2025-03-10T09:00"]]


def read(folder, text: str, dates: str | None = None):
    file = folder / "outage.yaml"
    file.write_text(text)
    return rd.read_missing(file, dates)


def window(low: str, high: str) -> str:
    return f"mechanism: windows\nwindows: [[{low}, {high}]]\n"


def meaning(mechanism):
    return mechanism.bind(["a"], "hour").meaning()


@pytest.mark.parametrize(
    ("dates", "low", "high"),
    [
        ("day-first", "10/03/2025 07:48", "10.3.2025 9:00"),
        ("month-first", "03/10/2025 07:48", "3/10/2025 9:00:00"),
        ("%d.%m.%y %H:%M", "10.03.25 07:48", "10.03.25 09:00"),
        ("%m/%d/%Y %I:%M %p", "3/10/2025 7:48 AM", "2025-03-10 09:00"),
        ("%Y%m%d%H%M", "'202503100748'", "'202503100900'"),
        ("day-first", "2025-03-10T07:48", "2025-03-10 09:00"),
        ("%Y-%d-%m %H:%M", "20250310T07:48", "20250310T09:00"),
        (None, "2025-03-10T07:48", "2025-03-10T09:00"),
    ],
)
def test_the_form_of_the_table_or_iso_8601(tmp_path, dates, low, high):
    mechanism = read(tmp_path, window(low, high), dates)
    assert meaning(mechanism) == meaning(rd.Windows(ISO))
    assert meaning(rd.Windows.from_config(mechanism.config())) == meaning(rd.Windows(ISO))


def test_a_date_that_is_another_one_in_iso_8601_is_refused(tmp_path):
    """The 10th of March, or the 3rd of October; the 31st of March and the 4th of April are one day alone."""
    with pytest.raises(DataError, match="write 20250310T07:48:00 or 20251003T07:48:00, whichever is meant"):
        read(tmp_path, window("2025-10-03 07:48", "20251003T09:00"), "%Y-%d-%m %H:%M")
    mechanism = read(tmp_path, window("2025-31-03 07:48", "2025-04-04 09:00"), "%Y-%d-%m %H:%M")
    assert meaning(mechanism) == meaning(rd.Windows([("2025-03-31T07:48", "2025-04-04T09:00")]))


def test_windows_of_streams_rates_by_time_and_offsets_are_read_so_too(tmp_path):
    text = (
        "- mechanism: windows\n  by_stream: {n: [[10/03/2025 07:48, null], ['11/03/2025 +01:00', 12/03/2025]]}\n"
        "- mechanism: time_varying\n  times: [10/03/2025, 11/03/2025 12:00]\n  rates: [0.1, 0.5]\n"
        "- mechanism: windows\n  every: day\n  windows: [['22:00', '06:00']]\n"
        "- mechanism: windows\n  windows: [[3, 8.5], ['9 hours', '10 hours']]\n"
    )
    text = text.replace("11/03/2025 +01:00", "11/03/2025 00:00 +01:00")
    by_stream, rates, nights, numbers = read(tmp_path, text, "day-first").parts
    assert by_stream.by_stream == {
        "n": [["2025-03-10T07:48:00", None], ["2025-03-11T00:00:00+01:00", "2025-03-12T00:00:00"]]
    }
    assert rates.times == ["2025-03-10T00:00:00", "2025-03-11T12:00:00"]
    assert nights.windows == [["22:00", "06:00"]]
    assert numbers.windows == [[3, 8.5], ["9 hours", "10 hours"]]


@pytest.mark.parametrize(
    ("text", "dates", "problem", "remedy"),
    [
        (
            window("2025-03-10T07:00", "10/03/2025 07:48"),
            None,
            "outage.yaml: key 'windows', window 1: cannot read '10/03/2025 07:48' as a date",
            "write it in ISO 8601, such as 2024-03-01T08:00, or pass --dates day-first if days come first, "
            "--dates month-first if months do, as for the table",
        ),
        (
            "- {mechanism: by_type, rates: 0.1}\n- {mechanism: windows, by_stream: {n: [[1, 2], [10.3.25, 11.3.25]]}}",
            None,
            "entry 2, key 'by_stream', stream 'n', window 2: cannot read '10.3.25' as a date",
            "--dates '%d.%m.%y' if days come first",
        ),
        (
            window("03/31/2025 07:48", "2025-04-01"),
            "day-first",
            "window 1: cannot read '03/31/2025 07:48' as a date with the day first",
            "correct it, or write the date in ISO 8601",
        ),
        (
            "{mechanism: time_varying, times: [10/03/2025, 31/02/2025], rates: [0, 1]}",
            "day-first",
            "key 'times', time 2: cannot read '31/02/2025' as a date with the day first",
            "correct it",
        ),
        (
            window("10:03:12", "2025-04-01"),
            "%y:%m:%d",
            "'10:03:12' has one meaning as --dates '%y:%m:%d' and another without",
            "write 20100312T00:00:00, whichever is meant",
        ),
        (
            window("20250310", "2025-04-01"),
            "%Y%m%d",
            "20250310 is a number, and --dates '%Y%m%d' has dates of digits alone",
            "put dates in quotes, and write a number as 20250310.0",
        ),
        (window("half", "2025-04-01"), "day-first", "a window is 'half', which is no time", ""),
        (window("1", "2"), "sideways", "dates= is 'sideways', which is no form of dates", ""),
    ],
)
def test_what_is_unclear_is_refused_with_its_place_and_the_remedy(tmp_path, text, dates, problem, remedy):
    with pytest.raises(DataError) as refused:
        read(tmp_path, text, dates)
    said = in_options(str(refused.value)) if "sideways" not in text and dates != "sideways" else str(refused.value)
    assert problem in said
    assert remedy in said


def test_a_mechanism_that_no_file_holds_is_read_as_python_has_it():
    with pytest.raises(rd.ModelError, match="a window is '10/03/2025 07:48', which is no time"):
        rd.Windows([("10/03/2025 07:48", "2025-03-11")])
