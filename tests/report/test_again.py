"""The command that the page prints writes the answer that the page shows."""

from __future__ import annotations

import shlex

import pandas as pd
import pytest
from typer.testing import CliRunner

from retrodict.cli import app
from retrodict.report.page.again import decode_command
from retrodict.smc.posterior_folder import save_posterior
from tests.report.examples import NEW_YORK, imputed, streams
from tests.report.test_page import read

IMPUTE = "retrodict impute model/ incomplete.csv"


@pytest.mark.parametrize(
    ("command", "said"),
    [
        (None, "OUTPUT.draws --cost 54 -o ANSWER.csv"),
        (f"{IMPUTE} -o imputed.csv --report page.html", "imputed.csv.draws --cost 54 -o imputed-cost-54.csv"),
        (f"{IMPUTE} -oout/imputed.csv.gz", "out/imputed.csv.gz.draws --cost 54 -o out/imputed-cost-54.csv.gz"),
        (f"{IMPUTE} --output=all --draws kept", "kept --cost 54 -o all-cost-54"),
        (f"{IMPUTE} -o 'my table.csv'", "'my table.csv.draws' --cost 54 -o 'my table-cost-54.csv'"),
        (f"{IMPUTE} -o a.csv --unit hour", "a.csv.draws --cost 54 --unit minute -o a-cost-54.csv"),
        (f"{IMPUTE} -o a.csv --unit minute", "a.csv.draws --cost 54 -o a-cost-54.csv"),
        (f"{IMPUTE} -o 'cut off", "OUTPUT.draws --cost 54 -o ANSWER.csv"),
        ("retrodict report a.draws -o page.html", "OUTPUT.draws --cost 54 -o ANSWER.csv"),
    ],
)
def test_the_names_are_those_of_the_command_that_imputed(command, said):
    assert decode_command(command, 54.0, "minute") == f"retrodict decode {said}"


def test_without_draws_there_is_no_command():
    assert decode_command(f"{IMPUTE} -o a.csv --no-draws", 54.0, None) is None


@pytest.mark.parametrize("axis", [None, NEW_YORK], ids=["numbers", "dates"])
def test_the_command_writes_the_answer_of_the_page(tmp_path, monkeypatch, axis):
    """Dates have costs in minutes on the command line, and in hours on the page."""
    made, _ = imputed(streams(12, axis=axis))
    unit = None if axis is None else "minute"
    made.about["command"] = f"{IMPUTE} -o 'the answer.csv'" + ("" if unit is None else f" --unit {unit}")
    save_posterior(made, tmp_path / "the answer.csv.draws", unit)
    index, _ = read(made.report(tmp_path / "page.html", costs=[1.0, 4.0]))
    monkeypatch.chdir(tmp_path)
    numbers = []
    for answer in index["answers"]:
        _, *words = shlex.split(answer["command"])
        done = CliRunner().invoke(app, words)
        assert done.exit_code == 0, done.output
        numbers.append(int(pd.read_csv(words[-1])["imputed"].sum()))
        assert numbers[-1] == sum(answer["events"])
    assert numbers[0] != numbers[1]
