"""docs/tutorial.md runs as it is written, in an empty directory, and gives the user's table back."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pandas as pd
import pytest
from typer.testing import CliRunner

from retrodict.cli import app

PAGE = Path(__file__).resolve().parents[1] / "docs" / "tutorial.md"
NEW = ["imputed", "probability", "earliest", "latest"]

pytestmark = pytest.mark.skipif(not PAGE.exists(), reason="no docs beside the tests")


def plain(text: str) -> str:
    """Words without the lines of tables, and with single blanks."""
    return " ".join(re.sub(r"[^\x00-\x7f]", " ", text).split())


def shell(block: str, names: dict[str, str]) -> str:
    """What the commands of a block print; NAME="words" is remembered for those that follow."""
    output = ""
    for line in block.splitlines():
        assigned = re.fullmatch(r'(\w+)="(.*)"', line)
        if assigned:
            names[assigned[1]] = assigned[2]
            continue
        program, *words = shlex.split(re.sub(r"\$(\w+)", lambda found: names[found[1]], line))
        assert program == "retrodict"
        result = CliRunner().invoke(app, words)
        assert result.exit_code == 0, f"{line}\n{result.output}\n{result.exception!r}"
        output += result.output
    return plain(output)


def assert_shown(block: str, output: str) -> None:
    """Every line of a block is in the output, with anything in the place of ``...``."""
    for line in block.splitlines():
        pieces = [re.escape(plain(piece)) for piece in line.split("...")]
        assert re.search(".*?".join(pieces), output), f"{line!r} is not in {output[-3000:]}"


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Where all blocks of the page were run, each followed by what it should print or have written."""
    folder = tmp_path_factory.mktemp("tutorial")
    names: dict[str, str] = {}
    output = ""
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        for language, block in re.findall(r"^```(\w*)\n(.*?)^```", PAGE.read_text(encoding="utf-8"), re.M | re.S):
            if language == "python":
                exec(block, {})
            elif language == "yaml":
                Path(block.split()[1]).write_text(block)
            elif language == "bash":
                output = shell(block, names)
            elif block.startswith("aircraft,"):
                file = "imputed.csv" if NEW[0] in block else "complete.csv"
                assert_shown(block, plain(Path(file).read_text()))
            else:
                assert_shown(block, output)
    return folder


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
def test_the_table_comes_back_with_all_rows_and_columns_that_were_there(folder, given, returned):
    before, after = (pd.read_csv(folder / f"{name}.csv", dtype=str) for name in (given, returned))
    assert list(after.columns) == [*before.columns, *NEW]
    assert (after["imputed"] == "true").any()
    kept = after[after["imputed"] == "false"]
    pd.testing.assert_frame_equal(kept[before.columns].reset_index(drop=True), before)


def test_imputed_rows_are_departures_in_the_zone_of_the_table(folder):
    table = pd.read_csv(folder / "imputed.csv", dtype=str)
    imputed = table[table["imputed"] == "true"]
    assert set(imputed["what"]) == {"depart"}
    for column in ("when", "earliest", "latest"):
        assert imputed[column].str.endswith("-05:00").all()


def test_events_of_the_outage_are_imputed_inside_it(folder):
    table = pd.read_csv(folder / "outage-imputed.csv")
    when = pd.to_datetime(table.loc[table["imputed"], "when"], format="ISO8601")
    assert when.between("2013-03-04T12:00-05:00", "2013-03-04T20:00-05:00").all()
