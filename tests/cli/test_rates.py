"""Commands say how well missing rates are known, what hangs on them, and when data mislead."""

from __future__ import annotations

import re

import pytest
from typer.testing import CliRunner

import retrodict as rd
from retrodict.cli import app
from retrodict.smc.totals import as_number

runner = CliRunner(env={"COLUMNS": "160", "TERM": "dumb"})
MODEL = rd.Hawkes([0.4, 0.3], [[0.3, 0.4], [0.2, 0.2]], 2.0)


@pytest.fixture
def folder(tmp_path):
    """A model of types a and b, streams with events missing, and the same in Unix seconds."""
    seen, _ = rd.ByType([0.6, 0.2]).censor(rd.simulate(MODEL, 30, end=20.0, seed=1), seed=2)
    seen = seen.replace(types=("a", "b"))
    model = rd.Hawkes([0.4, 0.3], [[0.3, 0.4], [0.2, 0.2]], 2.0)
    model.types = ("a", "b")
    model.save(tmp_path / "model")
    rd.write_events(seen, tmp_path / "seen.csv")
    table = seen.to_frame().drop(columns=["start", "end"])
    table["time"] += 1.4e9
    table.dropna().to_csv(tmp_path / "unix.csv", index=False)
    return tmp_path


def run(*arguments: object):
    return runner.invoke(app, [str(argument) for argument in arguments])


def test_learned_rates_are_shown_with_standard_errors(folder, monkeypatch):
    from retrodict.train import mechanism

    learn, few = mechanism.learn_missing, {"rounds": 3, "particles": 20}
    monkeypatch.setattr(mechanism, "learn_missing", lambda *args, **more: learn(*args, **more | few))
    done = run("learn-missing", folder / "model", folder / "seen.csv", "-m", "0.4", "-o", folder / "missing")
    assert done.exit_code == 0, done.output
    assert re.search(r"a +│ +0\.\d{3} │ +0\.\d{3} │ +0\.\d{3} to 0\.\d{3}", done.output)
    assert "# a: 0." in (folder / "missing" / "missing.yaml").read_text()


def test_impute_shows_what_half_and_twice_the_odds_would_change(folder):
    rates = ["-m", "a=0.6", "-m", "b=0.2", "--particles", "20"]
    done = run("impute", folder / "model", folder / "seen.csv", *rates, "-o", folder / "out.csv", "--sensitivity")
    assert done.exit_code == 0, done.output
    numbers = {
        name: [float(x.replace(",", "")) for x in values]
        for name, *values in re.findall(
            r"│ +(expected missing|decoded events) +│ +(\S+) │ +(\S+) │ +(\S+) │", done.output
        )
    }
    assert all(half < once < twice for half, once, twice in numbers.values())
    assert f"{as_number(numbers['expected missing'][1])} expected missing, 90 %: " in done.output


def test_rates_without_other_odds_are_refused_before_sampling(folder):
    out = folder / "out.csv"
    done = run("impute", folder / "model", folder / "seen.csv", "-m", "a=1", "-o", out, "--sensitivity")
    assert isinstance(done.exception, rd.ModelError)
    assert "nothing to vary" in str(done.exception)
    assert not out.exists()


def test_unix_seconds_are_refused_in_seconds_and_not_after_two_minutes(folder):
    for command in (
        ["fit", folder / "unix.csv", "-o", folder / "fitted"],
        ["impute", folder / "model", folder / "unix.csv", "-m", "0.5", "-o", folder / "out.csv"],
    ):
        done = run(*command)
        assert isinstance(done.exception, rd.DataError)
        assert "times look like Unix time" in str(done.exception)
        assert "pass start=" in str(done.exception)
    assert not (folder / "fitted").exists()


def test_describe_names_what_misleads_and_the_remedy(folder):
    done = run("describe", folder / "unix.csv")
    assert done.exit_code == 0
    assert "note: times look like Unix time" in done.output
    assert "pass --start with when each stream starts" in done.output
    assert "note: all 30 streams end exactly at an event" in done.output
    assert "or pass --end with when watching stopped" in done.output
    assert "Remedy" not in run("describe", folder / "seen.csv").output


def test_impute_says_how_many_events_are_left_out_without_start_and_end(folder):
    table = rd.read_events(folder / "seen.csv").to_frame().drop(columns=["start", "end"]).dropna()
    table["start"] = table.groupby("stream")["time"].transform("min")
    table.to_csv(folder / "inside.csv", index=False)
    rates = ["-m", "a=0.6", "-m", "b=0.2", "--particles", "20"]
    done = run("impute", folder / "model", folder / "inside.csv", *rates, "-o", folder / "out.csv")
    for side, option in (("begin", "--start"), ("end", "--end")):
        text = (
            rf"all 30 streams {side} exactly at an observed event.*about \d+ missing events are left out.*{option} with"
        )
        assert len(re.findall(text, done.output)) == 1, done.output
