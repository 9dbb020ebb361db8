"""Every code block of README and docs runs as it is written, and every file and heading that is linked to is there."""

from __future__ import annotations

import re
from pathlib import Path

import pandas as pd
import pytest

import retrodict as rd
from tests.pages import DOCS, PAGES, ROOT, Session, blocks, name_of, plain, run_page
from tests.report.test_page import read

pytestmark = [
    pytest.mark.skipif(not DOCS.exists(), reason="no docs beside the tests"),
    pytest.mark.filterwarnings("ignore::retrodict.errors.DataNotice", "ignore::retrodict.errors.SuspicionNotice"),
]

NEW = ["imputed", "probability", "earliest", "latest"]
_RAN: dict[str, tuple[Session, Path]] = {}


@pytest.fixture(scope="module")
def ran(tmp_path_factory):
    """Runs a page once in this module; gives its session and its folder."""

    def run(name: str) -> tuple[Session, Path]:
        if name not in _RAN:
            folder = tmp_path_factory.mktemp(Path(name).stem)
            _RAN[name] = run_page(ROOT / name, folder), folder
        return _RAN[name]

    yield run
    _RAN.clear()


def anchors(page: Path) -> set[str]:
    """The names that GitHub gives to a page's headings."""
    headings = re.findall(r"^#+ (.*)$", page.read_text(encoding="utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_every_file_and_heading_linked_to_is_there(page):
    for target in re.findall(r"\]\(([^)\s]+)\)", page.read_text(encoding="utf-8")):
        if "://" in target:
            continue
        path, _, anchor = target.partition("#")
        linked = page.parent / path if path else page
        assert linked.exists(), target
        assert not anchor or anchor in anchors(linked), target


@pytest.mark.parametrize("page", [page for page in PAGES if blocks(page)], ids=name_of)
def test_every_block_runs(page, ran):
    ran(name_of(page))


def test_few_blocks_are_not_run_and_each_says_why():
    left_out = [block for page in PAGES for block in blocks(page) if block.not_run is not None]
    assert all(len(block.not_run) > 10 for block in left_out)
    assert len(left_out) <= 3


def test_the_runner_fails_where_a_page_is_wrong(tmp_path, monkeypatch):
    """Wrong code, a wrong command, an output that never was, a script that is not there."""
    wrong = {
        "python": "1 / 0",
        "bash": "retrodict describe nowhere.csv",
        "text": "never printed",
        "yaml": "mechanism: magic",
        "": "python scripts/nowhere.py",
    }
    monkeypatch.setattr("tests.pages.ROOT", tmp_path)
    page = tmp_path / "page.md"
    for language, code in wrong.items():
        page.write_text(f"```{language}\n{code}\n```\n")
        with pytest.raises((AssertionError, ZeroDivisionError, rd.RetrodictError)):
            run_page(page, tmp_path)


def test_the_readme_example_prints_a_table_and_writes_nothing(ran):
    session, _ = ran("README.md")
    assert {"depart:LGA", "depart:JFK", "depart:EWR"} <= set(session.scope["observed"].types)


@pytest.mark.parametrize(
    ("given", "returned"),
    [
        ("patchy", "imputed"),
        ("patchy", "bolder"),
        ("sparse", "sparse-imputed"),
        ("outage", "outage-imputed"),
        ("delayed", "delayed-imputed"),
        ("patchy", "learned"),
    ],
)
def test_the_table_comes_back_with_all_rows_and_columns_that_were_there(ran, given, returned):
    _, folder = ran("docs/tutorial.md")
    before, after = (pd.read_csv(folder / f"{name}.csv", dtype=str) for name in (given, returned))
    assert list(after.columns) == [*before.columns, *NEW]
    assert (after["imputed"] == "true").any()
    kept = after[after["imputed"] == "false"]
    pd.testing.assert_frame_equal(kept[before.columns].reset_index(drop=True), before)


def test_imputed_rows_are_departures_in_the_zone_of_the_table(ran):
    _, folder = ran("docs/tutorial.md")
    table = pd.read_csv(folder / "imputed.csv", dtype=str)
    imputed = table[table["imputed"] == "true"]
    assert set(imputed["what"]) == {"depart"}
    for column in ("when", "earliest", "latest"):
        assert imputed[column].str.endswith("-05:00").all()


def test_events_of_the_outage_are_imputed_inside_it(ran):
    _, folder = ran("docs/tutorial.md")
    table = pd.read_csv(folder / "outage-imputed.csv")
    when = pd.to_datetime(table.loc[table["imputed"], "when"], format="ISO8601")
    assert when.between("2013-03-04T12:00-05:00", "2013-03-04T20:00-05:00").all()


def test_the_pictures_and_the_page_are_written_and_answers_are_those_asked_for(ran):
    session, folder = ran("docs/pictures.md")
    pictures = {"stream.png", "tradeoff.png", "tradeoff.pdf", "check.png", "page.html"}
    assert pictures <= {file.name for file in folder.iterdir()}
    assert [answer["cost"] for answer in read(folder / "page.html")[0]["answers"]] == [0.5, 1, 2]
    assert "wrote stream.png: stream N955UW-02" in plain(session.output)


@pytest.mark.parametrize(
    "page", [page for page in PAGES if page.name in ("README.md", "method.md", "pictures.md")], ids=name_of
)
def test_pictures_are_small(page):
    found = re.findall(r"\]\([^)]*?((?:docs/)?images/[^)]+)\)", page.read_text(encoding="utf-8"))
    assert found
    assert all((page.parent / picture).stat().st_size < 150_000 for picture in found)
