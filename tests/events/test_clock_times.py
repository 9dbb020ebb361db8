"""A time of day as the start or end of streams is refused with a remedy that works as it stands."""

from __future__ import annotations

import datetime

import pandas as pd
import pytest

import retrodict as rd
from retrodict.cli.common import in_options

TABLE = pd.DataFrame({
    "driver": ["ann 4", "ann 4", "ann 5"],
    "when": ["2024-03-04 07:27:44", "2024-03-04 21:00:00", "2024-03-05 08:00:00"],
    "what": "pick-up",
})  # fmt: skip
COLUMNS = {"stream": "driver", "time": "when", "type": "what"}


@pytest.mark.parametrize("start", ["06:00", "6:00", "06:00:00", datetime.time(6)])
def test_shifts_by_the_clock_are_refused_and_the_two_lines_of_the_remedy_give_them(start):
    with pytest.raises(rd.DataError) as refused:
        rd.read_events(TABLE, **COLUMNS, start=start, end="22:00")
    message = str(refused.value)
    lines = [line.strip() for line in message.splitlines() if line.startswith("    ")]
    assert len(lines) == 2
    table = TABLE.copy()
    exec("\n".join(lines), {"pd": pd, "table": table})
    streams = rd.read_events(table, **COLUMNS, start="start", end="end", unit="hour")
    assert streams.durations.tolist() == [16.0, 16.0]
    assert streams.axis.label(streams.starts[1]) == "2024-03-05 06:00:00"
    assert "--start start, --end end" in in_options(message)


def test_only_the_side_that_is_a_time_of_day_is_in_the_remedy():
    with pytest.raises(rd.DataError, match=r'table\["end"\] = day \+ pd.Timedelta\("22:00:00"\)') as refused:
        rd.read_events(TABLE, **COLUMNS, start="2024-03-04", end="22:00")
    assert 'table["start"]' not in str(refused.value)


def test_the_lines_of_the_remedy_read_dates_in_their_form():
    table = TABLE.assign(when=["04/03/2024 07:27:44", "04/03/2024 21:00:00", "05/03/2024 08:00:00"])
    for dates in ("day-first", "%d/%m/%Y %H:%M:%S"):
        with pytest.raises(rd.DataError) as refused:
            rd.read_events(table, **COLUMNS, start="06:00", end="22:00", dates=dates)
        own = table.copy()
        lines = [line.strip() for line in str(refused.value).splitlines() if line.startswith("    ")]
        exec("\n".join(lines), {"pd": pd, "table": own})
        assert own["start"].tolist() == [
            pd.Timestamp(day) for day in ("2024-03-04 06", "2024-03-04 06", "2024-03-05 06")
        ]
