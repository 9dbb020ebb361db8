"""The commands, as a user runs them: what they print, what they write, how they refuse."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import get_args

import pandas as pd
import pytest
from typer.testing import CliRunner

import retrodict as rd
from retrodict.cli import app, main
from retrodict.cli.training import LearnFrom
from retrodict.train import streams

runner = CliRunner(env={"COLUMNS": "160", "TERM": "dumb"})

CSV = """driver,when,what,fare
7,2013-01-05T08:00:00Z,pick-up,0
7,2013-01-05T08:30:00Z,drop-off,12.5
9,2013-01-05T09:00:00Z,pick-up,0
9,2013-01-05T09:10:00Z,drop-off,7
9,2013-01-05T09:10:00Z,pick-up,0
"""
COLUMNS = ["--stream", "driver", "--time", "when", "--type", "what"]


@pytest.fixture
def trips(tmp_path):
    file = tmp_path / "trips.csv"
    file.write_text(CSV)
    return str(file)


def run(*arguments: str):
    result = runner.invoke(app, list(arguments))
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result


def test_describe_tells_what_is_in_a_file(trips):
    result = run("describe", trips, *COLUMNS)
    assert result.exit_code == 0
    for text in ("streams", "2", "pick-up", "60.0%", "tied times", "extra columns", "fare", "2013-01-05 08:00:00"):
        assert text in result.output
    assert "note:" in result.output


def test_censor_hides_and_keeps(trips, tmp_path):
    observed, hidden = tmp_path / "observed.csv", tmp_path / "hidden.parquet"
    where = ["-o", str(observed), "--hidden", str(hidden), "--end", "2013-01-05T10:00:00Z"]
    result = run("censor", trips, *COLUMNS, "-m", "pick*=1", *where)
    assert "2 observed events of 5" in result.output
    names = {"stream": "driver", "time": "when", "type": "what"}
    kept, gone = rd.read_events(observed, **names), rd.read_events(hidden, **names)
    assert kept.axis.is_calendar
    shown = kept.to_frame()
    assert str(shown["end"].iloc[0]).startswith("2013-01-05 10:00:00")
    assert set(kept.to_frame()["type"].dropna()) == {"drop-off"}
    assert gone.num_events == 3
    assert kept.columns["fare"].tolist() == [12.5, 7.0]


@pytest.mark.parametrize("suffix", [".csv", ".csv.gz", ".parquet", ".jsonl.gz"])
def test_the_command_and_python_write_the_same_bytes(trips, tmp_path, suffix):
    names = {"stream": "driver", "time": "when", "type": "what"}
    with pytest.warns(rd.DataNotice):
        streams = rd.read_events(trips, **names)
    observed, _ = rd.ByType({"pick-up": 0.5}).censor(streams, seed=3)
    ours, first, second = (tmp_path / (name + suffix) for name in ("ours", "first", "second"))
    rd.write_events(observed, ours, **names)
    for path in (first, second):
        run("censor", trips, *COLUMNS, "-m", "pick-up=0.5", "--seed", "3", "-o", str(path))
    assert ours.read_bytes() == first.read_bytes() == second.read_bytes()
    assert rd.read_events(ours, **({} if "json" in suffix else names), types=streams.types).ids == observed.ids


def test_fit_then_simulate(tmp_path):
    truth = rd.Hawkes([0.5, 0.3], [[0.2, 0.4], [0.3, 0.0]], 2.0)
    streams = rd.simulate(truth, 40, end=10.0, seed=1).with_types(["0", "1"])
    rd.write_events(streams, tmp_path / "streams.parquet")
    rd.write_events(streams[:10], tmp_path / "dev.jsonl")
    model = str(tmp_path / "model")
    files = [str(tmp_path / "streams.parquet"), "--dev", str(tmp_path / "dev.jsonl")]
    result = run("fit", *files, "-o", model, "--hidden", "8", "--epochs", "2")
    assert result.exit_code == 0
    assert "nats per event on dev" in result.output
    assert isinstance(rd.load_model(model), rd.NeuralHawkes)
    assert "this fit had finished" in run("fit", *files, "-o", model, "--hidden", "8", "--epochs", "2").output
    for kind in ("hawkes", "poisson"):
        run("fit", files[0], "-o", model + kind, "--model", kind, "--epochs", "2")
        assert rd.load_model(model + kind).kind == kind
    small = ["--model", "state-space", "--hidden", "4", "--epochs", "1", "--model-only"]
    run("fit", files[0], "-o", model + "space", *small)
    assert rd.load_model(model + "space").size == 4
    drawn = str(tmp_path / "drawn.jsonl")
    assert "3 streams" in run("simulate", model, "-n", "3", "--events", "4", "-o", drawn).output
    assert rd.read_events(drawn, types=["0", "1"]).lengths.tolist() == [4, 4, 4]


def test_fit_a_hawkes_process_of_many_scales(tmp_path):
    truth = rd.Hawkes([0.5, 0.3], [[[0.2, 0.2], [0.1, 0.0]], [[0.0, 0.2], [0.2, 0.0]]], [50.0, 1.0])
    rd.write_events(rd.simulate(truth, 40, end=10.0, seed=1).with_types(["0", "1"]), tmp_path / "streams.jsonl")
    model, fit = tmp_path / "model", ["fit", str(tmp_path / "streams.jsonl"), "--model-only"]
    result = run(*fit, "--model", "hawkes", "--scales", "3", "-o", str(model))
    assert "3 time scales, at most" in result.output
    assert "nats per event below the maximum" in result.output
    assert rd.load_model(model).num_scales == 3
    for kind, wrong, words in (
        ("hawkes", "0", '--scales must be "auto"'),
        ("hawkes", "many", '--scales must be "auto"'),
        ("poisson", "auto", "--scales is for Hawkes models"),
    ):
        with pytest.raises(rd.ModelError, match=words):
            run(*fit, "--model", kind, "--scales", wrong, "-o", str(model))


def test_every_command_teaches_with_an_example():
    for command in ("describe", "fit", "simulate", "censor"):
        output = run(command, "--help").output
        assert f"retrodict {command} " in output
        assert "Example" in output
        assert "<bool>" not in output  # flags take no value
    assert "retrodict 0." in run("--version").output
    assert "describe" in run("--help").output


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["describe", "{tmp}/nowhere.csv"], "there is no such file"),
        (["describe", "{trips}"], "Remedy"),
        (["censor", "{trips}", *COLUMNS, "-m", "lunch=0.5", "-o", "{tmp}/x.csv"], "no event type matches 'lunch'"),
        (["censor", "{trips}", *COLUMNS, "-m", "pick-up=2", "-o", "{tmp}/x.csv"], "A rate is a probability"),
        (
            ["censor", "{trips}", *COLUMNS, "-m", "pick-up:half", "-o", "{tmp}/x.csv"],
            "cannot understand the missing rate",
        ),
        (["simulate", "{tmp}", "--end", "1", "-o", "{tmp}/x.csv"], "is not a saved model"),
        (["fit", "{trips}", *COLUMNS, "-o", "{trips}", "--epochs", "1"], "cannot make this folder"),
        (
            ["fit", "{trips}", *COLUMNS, "-o", "{tmp}/x.csv", "--model-only", "-m", "0.5"],
            "--missing is for the smoother",
        ),
    ],
)
def test_errors_are_one_line_without_a_traceback(arguments, message, trips, tmp_path, monkeypatch, capsys):
    filled = [a.format(tmp=tmp_path, trips=trips) for a in arguments]
    monkeypatch.setattr(sys, "argv", ["retrodict", *filled])
    with pytest.raises(SystemExit) as stop:
        main()
    shown = capsys.readouterr()
    assert stop.value.code == 2
    assert message in shown.err
    assert "Traceback" not in shown.err + shown.out
    assert not (tmp_path / "x.csv").exists()


def test_the_installed_command_starts():
    command = [sys.executable, "-c", "from retrodict.cli import main; main()", "--version"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stdout.startswith("retrodict ")


def test_fit_with_a_smoother_that_mixes_past_and_future_and_learns_from_data(tmp_path):
    truth = rd.Hawkes([0.5, 0.05], [[0.0, 0.9], [0.0, 0.0]], 2.0)
    rd.write_events(rd.simulate(truth, 20, end=10.0, seed=1), tmp_path / "complete.parquet")
    options = ["--hidden", "8", "--epochs", "1", "--mixing", "5", "--learn-from", "data"]
    result = run("fit", str(tmp_path / "complete.parquet"), "-o", str(tmp_path / "model"), "-m", "0.5", *options)
    assert "nats per missing event on dev" in result.output
    smoother = rd.load_proposal(tmp_path / "model" / "smoother")
    assert smoother.mixing == 5
    assert smoother.training_record["learn_from"] == "data"
    assert [source.value for source in LearnFrom] == list(get_args(streams.LearnFrom))


def test_fit_with_a_smoother_then_impute(tmp_path):
    truth = rd.Hawkes([0.5, 0.05], [[0.0, 0.9], [0.0, 0.0]], 2.0)
    truth.types = ("cause", "effect")
    complete = rd.simulate(truth, 40, end=10.0, seed=1)
    rd.write_events(complete, tmp_path / "complete.parquet")
    model = str(tmp_path / "model")
    fitted = run(
        "fit", str(tmp_path / "complete.parquet"), "-o", model, "-m", "cause=1", "--hidden", "8", "--epochs", "3"
    )
    assert "nats per missing event on drawn streams" in fitted.output
    incomplete, imputed = tmp_path / "incomplete.csv", tmp_path / "imputed.csv"
    run("censor", str(tmp_path / "complete.parquet"), "-m", "cause=1", "-o", str(incomplete))
    result = run("impute", model, str(incomplete), "-o", str(imputed), "--particles", "20")
    assert "imputed events" in result.output
    filled = rd.read_events(imputed, types=["cause", "effect"])
    observed = rd.read_events(incomplete, types=["cause", "effect"])
    assert filled.keep(~filled.columns["imputed"].astype(bool)).num_events == observed.num_events
    draws = pd.read_parquet(tmp_path / "imputed.csv.draws" / "draws.parquet")
    assert list(draws.columns) == ["stream", "draw", "weight", "time", "type"]
    assert set(draws["type"]) == {"cause"}
    hidden, other = tmp_path / "hidden.csv", tmp_path / "filtered.csv"
    run("censor", str(tmp_path / "complete.parquet"), "-m", "cause=1", "-o", str(incomplete), "--hidden", str(hidden))
    again = run("impute", model, str(incomplete), "-o", str(other), "--filtering", "-m", "cause=0.9")
    assert again.exit_code == 0
    scores = tmp_path / "scores.json"
    judged = run("evaluate", str(hidden), str(imputed), "--cost", "0.5", "--against", str(other), "-o", str(scores))
    for text in (
        "distance to the truth",
        "by type, at cost 0.5",
        "recall",
        "of the 90 % intervals hold the true time",
        "p =",
    ):
        assert text in judged.output
    report = json.loads(scores.read_text())
    assert report["transport"][0]["missing"] == complete.num_events - observed.num_events
    assert report["transport"][0]["by_type"]["effect"]["missing"] == 0
    run("fit", str(tmp_path / "complete.parquet"), "-o", model + "2", "--model", "poisson", "--model-only")
    with pytest.raises(rd.ModelError, match="has no smoother, so it is not known which events go missing"):
        run("impute", model + "2", str(incomplete), "-o", str(imputed))


def test_the_demo_finds_what_was_hidden(tmp_path):
    result = run("demo", "-o", str(tmp_path / "demo"), "-n", "8", "--particles", "20")
    assert result.exit_code == 0
    for text in ("departure", "particle smoothing", "predict nothing", "median flight", "cut at an arrival"):
        assert text in result.output
    assert "note:" not in result.output
    filled = rd.read_events(tmp_path / "demo" / "imputed.csv")
    assert {"imputed", "probability", "earliest", "latest"} <= filled.columns.keys()
    assert (tmp_path / "demo" / "imputed.png").stat().st_size > 10_000


def test_a_yaml_file_says_what_goes_missing(trips, tmp_path):
    spec = tmp_path / "outage.yaml"
    spec.write_text("mechanism: windows\ntypes: pick-up\nwindows: [[2013-01-05T08:45, 2013-01-05T09:05]]")
    where = ["-o", str(tmp_path / "seen.csv"), "--hidden", str(tmp_path / "gone.csv"), "--end", "2013-01-05T10:00:00Z"]
    result = run("censor", trips, *COLUMNS, "-m", str(spec), *where)
    assert "4 observed events of 5" in result.output
    gone = pd.read_csv(tmp_path / "gone.csv").dropna(subset="what")
    assert gone["when"].str.contains("09:00:00").tolist() == [True]
    model = str(tmp_path / "model")
    fitted = run("fit", trips, *COLUMNS, "-m", str(spec), "-o", model, "--hidden", "4", "--epochs", "1", *where[-2:])
    assert fitted.exit_code == 0
    seen = [str(tmp_path / "seen.csv"), *COLUMNS]
    for more in ([], ["-m", str(spec)]):
        done = run("impute", model, *seen, *more, "-o", str(tmp_path / "filled.csv"), "--particles", "20")
        assert "imputed events" in done.output
    draws = pd.read_parquet(tmp_path / "filled.csv.draws" / "draws.parquet")
    assert set(draws["type"]) <= {"pick-up"}
    assert draws["time"].between("2013-01-05T08:45Z", "2013-01-05T09:05Z").all()
    spec.write_text("mechanism: windows\ntypes: pick-up\nwindow: []")
    with pytest.raises(rd.DataError, match=r"outage.yaml: key 'window': windows takes no such argument"):
        run("censor", trips, *COLUMNS, "-m", str(spec), *where)
