"""Windows by dates on streams of other days: a check tries them at the same hours, or says that it does not."""

from __future__ import annotations

import warnings

import pandas as pd
import pytest

import retrodict as rd
from retrodict.errors import DataNotice, ModelError
from retrodict.missingness.conflicts import untouched
from retrodict.missingness.same_hours import at_same_hours


def dated(days=("2025-02-03", "2025-02-04"), zone=None):
    rows = [
        (f"{day} {i}", pd.Timestamp(day, tz=zone) + pd.Timedelta(hours=8 + i % 3 + 2 * j), "uv"[j % 2])
        for day in days
        for i in range(15)
        for j in range(5)
    ]
    table = pd.DataFrame(rows, columns=["who", "when", "what"])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DataNotice)
        return rd.read_events(table, stream="who", time="when", type="what")


OUTAGE = rd.Windows([("2025-03-13T11:00", "2025-03-13T14:30")], types="u", inside=0.9, outside=0.1)


def test_a_window_moves_to_the_same_hours_of_every_day():
    moved = at_same_hours(OUTAGE * rd.ByType(0.2), dated())
    assert isinstance(moved, type(OUTAGE * OUTAGE))
    own = moved.parts[0]
    assert (own.windows, own.every, own.types, own.inside, own.outside) == (
        [["11:00:00", "14:30:00"]], "day", OUTAGE.types, 0.9, 0.1
    )  # fmt: skip
    streams = dated()
    here = rd.Windows([("2025-02-03T11:00", "2025-02-03T14:30")], types="u", inside=0.9, outside=0.1)
    first = streams[[i for i, id in enumerate(streams.ids) if id.startswith("2025-02-03")]]
    assert own.on(first).event_rates(first).tolist() == here.on(first).event_rates(first).tolist()


def test_hours_are_those_of_the_streams_zone():
    night = rd.Windows([("2025-07-01T23:00", "2025-07-02T01:00")])  # in summer time, streams are of February
    moved = at_same_hours(night, dated(zone="Europe/Berlin"))
    assert moved.windows == [["23:00:00", "01:00:00"]]
    assert moved.zone == "Europe/Berlin"


@pytest.mark.parametrize(
    "windows",
    [
        rd.Windows([("2025-03-13", "2025-03-15")]),
        rd.Windows([(None, "2025-03-13T14:30")]),
        rd.Windows(by_stream={"a": [("2025-03-13T11:00", "2025-03-13T14:30")]}),
        rd.Windows([(1.0, 2.0)]),
        rd.ByType(0.1),
    ],
)
def test_what_has_no_hours_is_not_moved(windows):
    assert at_same_hours(windows, dated()) is None


def test_a_check_tries_an_outage_of_another_day():
    streams = dated()
    filtering = rd.Filtering(rd.fit(rd.Poisson, streams, streams, progress=False), OUTAGE)
    with pytest.warns(DataNotice, match="no stream was watched.*between 2025-02-03.*same hours of every day"):
        checked = rd.check(filtering, streams, particles=20)
    assert checked.calibration.hidden.sum() > 0
    assert "not tried" not in checked.about["missing"]
    smoother = rd.Smoothing(filtering.model, hidden_size=4).given(OUTAGE)
    smoother.trained_for = OUTAGE.on(streams)  # as one that was read for this mechanism
    with pytest.warns(DataNotice) as said:
        rd.check(smoother, streams, particles=20)
    assert not [notice for notice in said if "a smoother trained for" in str(notice.message)]
    with pytest.warns(DataNotice, match="so that they are not tried"):
        checked = rd.check(filtering.given(rd.Windows([("2025-03-13", "2025-03-15")])), streams, particles=20)
    assert checked.about["missing"].endswith("not tried")
    assert "between 2025-02-03 08:00 and 2025-02-04 18:00" in untouched(streams)


@pytest.mark.parametrize("window", [("11:00", "14:30"), ("mon 08:00", "mon 09:00")])
def test_a_time_of_day_without_a_date_must_recur(window):
    with pytest.raises(ModelError, match="Add every: day"):
        rd.Windows([window])
    assert rd.Windows([window], every="week").every == "week"
    assert rd.Windows([window], clock="stream").clock == "stream"
