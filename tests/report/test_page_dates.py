"""The page shows dates as the table has them: in the form that --dates named, else in ISO 8601."""

from __future__ import annotations

import pandas as pd
import pytest

import retrodict as rd
from tests.report.test_page import read

FORMS = {  # how a table writes its dates, the option, and a moment of 07:48 of the 10th of March
    "%d/%m/%Y %H:%M": ("day-first", "10/03/2025 07:48"),
    "%d.%m.%Y %H:%M:%S": ("day-first", "10.03.2025 07:48:00"),
    "%m/%d/%Y %H:%M": ("month-first", "03/10/2025 07:48"),
    "%d-%b-%y %I:%M %p": ("%d-%b-%y %I:%M %p", "10-Mar-25 07:48 AM"),
    "%H.%M, %d %B %Y": ("%H.%M, %d %B %Y", "07.48, 10 March 2025"),
    "%d/%m/%Y %H:%M +01:00": ("day-first", "10/03/2025 07:48"),
    "%Y-%m-%d %H:%M": (None, "2025-03-10 07:48"),
}
COLUMNS = {"start": "start", "end": "end"}
START, END = "2025-03-10 06:00", "2025-03-12 20:00"


def posterior(written: str, dates: str | None, short: bool = False) -> rd.Posterior:
    """Of one stream of three days, whose table is text."""
    times = pd.to_datetime(["2025-03-10 07:48", "2025-03-10 13:05", "2025-03-11 00:00", "2025-03-12 09:30"])
    texts = pd.DataFrame({"stream": "a", "time": times, "type": "call"})
    texts["start"], texts["end"] = pd.Timestamp(START), pd.Timestamp(END)
    for name in ("time", "start", "end"):
        texts[name] = texts[name].dt.strftime(written)
        texts[name] = texts[name].str.replace(r"(^|[/ ])0(\d[/:])", r"\1\2", regex=True) if short else texts[name]
    observed = rd.read_events(texts, dates=dates, unit="hour")
    return rd.impute(observed, rd.Filtering(rd.Poisson([0.3]), rd.ByType(0.5)), particles=50, seed=0)


def events(page) -> list[list[str]]:
    """The cells of the table of events."""
    page.locator("#table summary").click()
    page.locator("#table .events tbody tr").first.wait_for()
    script = "rows => rows.map(row => [...row.cells].map(cell => cell.textContent))"
    return page.locator("#table .events tbody tr").evaluate_all(script)


@pytest.mark.parametrize("written", FORMS)
def test_the_form_of_the_table_is_packed(tmp_path, written):
    dates, moment = FORMS[written]
    form = read(posterior(written, dates).report(tmp_path / "page.html", cost=3.0))[0]["axis"]["form"]
    if dates is None:
        assert form is None
    else:
        assert {"day", "hour", "minute"} <= {part[0] for part in form if not isinstance(part, str)}
        texts = [part if isinstance(part, str) else part[1] for part in form]
        assert len("".join(texts).strip()) == len(moment)


@pytest.mark.parametrize("written", FORMS)
def test_all_dates_on_the_page_are_written_as_in_the_table(visit, tmp_path, written):
    dates, moment = FORMS[written]
    short = dates in ("day-first", "month-first") and "S" not in written
    made = posterior(written, dates, short)
    page = visit(made.report(tmp_path / "page.html", cost=3.0))
    cells = events(page)
    table = rd.fill(made.observed, made.consensus(cost=3.0)).to_table()
    assert table["imputed"].sum() > 2
    table = table.fillna({"earliest": "", "latest": ""})
    plain = {name: table[name].str.removesuffix(" +01:00").tolist() for name in ("time", "earliest", "latest")}
    assert [cell[0] for cell in cells] == plain["time"]
    for cell, low, high, new in zip(cells, plain["earliest"], plain["latest"], table["imputed"], strict=True):
        day, _, clock = high.partition(" ")
        same_day = dates != "%H.%M, %d %B %Y" and low.startswith(f"{day} ")
        assert cell[4] == (f"{low} to {clock if same_day else high}" if new else "")
    if short:
        moment = moment.replace("/0", "/").replace(" 0", " ").removeprefix("0")
    assert plain["time"][0] == moment
    page.locator("#timeline").focus()
    page.keyboard.press("Home")
    assert moment in page.locator("#said").text_content()
    first, last = (str(pd.Timestamp(each).strftime(written)).removesuffix(" +01:00") for each in (START, END))
    if not short:
        assert f"from {first} to {last}" in page.locator("#lead").text_content()
        assert f"{first} to {last}" in page.locator("#detail .head").text_content()


def test_days_without_a_time_of_day_are_written_so(visit, tmp_path):
    frame = pd.DataFrame({"stream": "a", "time": ["10.03.2025", "12.03.2025 08:30:05"], "type": "call"})
    observed = rd.read_events(frame, dates="day-first", start="09.03.2025", end="14.03.2025", unit="day")
    made = rd.impute(observed, rd.Filtering(rd.Poisson([0.3]), rd.ByType(0.5)), particles=20, seed=0)
    page = visit(made.report(tmp_path / "page.html", cost=0.01))
    assert "from 09.03.2025 to 14.03.2025" in page.locator("#lead").text_content()
    seen = [cells[0] for cells in events(page) if cells[2] == "observed"]
    assert seen == ["10.03.2025", "12.03.2025 08:30:05"]


def test_a_page_of_kept_draws_has_them_too(tmp_path):
    made = posterior("%d/%m/%Y %H:%M", "day-first")
    made.save(tmp_path / "draws")
    pages = [each.report(tmp_path / "page.html", cost=3.0) for each in (made, rd.load_posterior(tmp_path / "draws"))]
    forms = [read(page)[0]["axis"]["form"] for page in pages]
    assert forms[0] == forms[1] != None  # noqa: E711
