"""Draws are kept and decoded again, streams without evidence are left alone, likelihoods are scored."""

from __future__ import annotations

import shutil

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

import retrodict as rd
from retrodict.cli import app, common

runner = CliRunner(env={"COLUMNS": "160", "TERM": "dumb"})
NAMES = {"stream": "driver", "time": "when", "type": "what"}
COLUMNS = ["--stream", "driver", "--time", "when", "--type", "what"]
MODEL = rd.Poisson([1.0, 0.5])
MODEL.types, MODEL.time_unit = ("pick-up", "drop-off"), "hour"
pytestmark = pytest.mark.filterwarnings("ignore::retrodict.errors.DataNotice")


def run(*words: object) -> str:
    result = runner.invoke(app, [str(word) for word in words])
    if isinstance(result.exception, rd.RetrodictError):
        return f"error: {result.exception}"
    assert result.exit_code == 0, result.output
    return result.output


@pytest.fixture
def folder(tmp_path):
    """A model and a dated table with a zone, names of its own and a further column."""
    MODEL.save(tmp_path / "model")
    when = pd.date_range("2024-03-01 08:00", periods=12, freq="37min", tz="America/Denver")
    table = pd.DataFrame({"driver": ["ann"] * 6 + ["bob"] * 6, "when": when, "what": "drop-off", "fare": range(12)})
    table.to_csv(tmp_path / "seen.csv", index=False)
    return tmp_path


@pytest.mark.parametrize("suffix", ["csv", "csv.gz", "parquet"])
def test_saved_draws_are_decoded_at_another_cost_into_the_same_table(folder, suffix):
    out, again = folder / f"out.{suffix}", folder / f"again.{suffix}"
    words = ["impute", folder / "model", folder / "seen.csv", *COLUMNS, "-m", "pick-up=1", "--particles", 30]
    run(*words, "--cost", 0.7, "-o", out)
    said = run("decode", f"{out}.draws", "--cost", 0.7, "-o", again)
    assert "12 observed and" in said
    assert again.read_bytes() == out.read_bytes()
    run("decode", f"{out}.draws", "--cost", 0.01, "-o", again)
    run(*words, "--cost", 0.01, "-o", out)
    assert again.read_bytes() == out.read_bytes()


def test_draws_of_two_outputs_do_not_collide(folder):
    words = ["impute", folder / "model", folder / "seen.csv", *COLUMNS, "-m", "pick-up=1", "--particles", 3]
    for name in ("E_50.0.1.jsonl", "E_50.1.jsonl"):
        run(*words, "-o", folder / name)
    assert len(list(folder.glob("*.draws"))) == 2


def test_draws_can_be_read_by_anybody_and_asked_in_python(folder):
    words = ["impute", folder / "model", folder / "seen.csv", *COLUMNS, "-m", "pick-up=1", "--particles", 5]
    run(*words, "-o", folder / "out.csv")
    table = pd.read_parquet(folder / "out.csv.draws" / "draws.parquet")
    assert list(table.columns) == ["stream", "draw", "weight", "time", "type"]
    assert set(table["type"]) == {"pick-up"}
    assert table["time"].dt.tz is not None
    posterior = rd.load_posterior(folder / "out.csv.draws")
    assert posterior.num_particles == 5
    pd.testing.assert_series_equal(posterior.to_frame()["time"], table["time"], check_dtype=False)
    axis = posterior.observed.axis
    np.testing.assert_array_equal(axis.to_instants(posterior.chosen.event_times), table["time"].astype("int64"))


def test_streams_whose_particles_mean_nothing_get_no_events_as_if_imputed(folder):
    table = pd.read_csv(folder / "seen.csv")
    table.loc[2, "what"] = "pick-up"  # which is always missing, so that ann cannot have been observed
    table.to_csv(folder / "seen.csv", index=False)
    words = ["impute", folder / "model", folder / "seen.csv", *COLUMNS, "-m", "pick-up=1", "-o", folder / "out.csv"]
    said = run(*words, "--cost", 5)
    assert "stream 'ann': the model gives what was observed no probability at all, so nothing is imputed there" in said
    imputed = rd.read_events(folder / "out.csv", **NAMES).columns["imputed"].astype(bool)
    whose = pd.read_csv(folder / "out.csv").dropna(subset="what")["driver"].to_numpy()
    assert set(whose[imputed]) == {"bob"}
    assert (whose == "ann").sum() == 6
    shutil.rmtree(folder / "out.csv.draws")
    (folder / "out.csv").unlink()
    table.loc[8, "what"] = "pick-up"
    table.to_csv(folder / "seen.csv", index=False)
    assert "gives none of the streams ('ann', 'bob') any probability" in run(*words)
    assert not list(folder.glob("out.csv*"))


def test_likelihoods_are_scored_by_a_command(tmp_path):
    streams = rd.simulate(MODEL, 9, end=5.0, seed=2)
    rd.write_events(streams, tmp_path / "s.parquet")
    MODEL.save(tmp_path / "model")
    said = run("score", tmp_path / "model", tmp_path / "s.parquet", "--by-stream", tmp_path / "scores.csv")
    each = MODEL.log_likelihood(streams).detach().numpy()
    assert f"{each.sum() / streams.num_events:.4f} nats per event" in said
    table = pd.read_csv(tmp_path / "scores.csv")
    np.testing.assert_allclose(table["log_likelihood"], each, rtol=1e-5)
    assert table["events"].tolist() == streams.lengths.tolist()


def test_types_that_were_never_seen_can_be_declared(tmp_path):
    truth = rd.Poisson([1.0])
    truth.types = ("effect",)
    rd.write_events(rd.simulate(truth, 6, end=5.0, seed=1), tmp_path / "s.csv")
    words = ["fit-incomplete", tmp_path / "s.csv", "--model", "poisson", "--epochs", 1, "-o", tmp_path / "model"]
    assert "no event type matches 'cause'" in run(*words, "-m", "cause=0.5")
    assert "model and smoother from incomplete streams" in run(*words, "-m", "cause=0.5", "--types", "cause")
    assert rd.load_model(tmp_path / "model").types == ("effect", "cause")


@pytest.mark.parametrize(
    ("python", "command"),
    [
        ("give the column that holds the types (type=); ", "give the column that holds the types (--type); "),
        ("give at least two streams, or pass dev=.", "give at least two streams, or pass --dev."),
        ("use one of .csv (.gz may follow), or pass format=.", "use one of .csv (.gz may follow)."),
        ("save it as UTF-8, or pass format= if it is not text.", "save it as UTF-8."),
        ('pass stream="..." with the name', "pass --stream with the name"),
        ("belongs to (or stream=False if the table is a single stream).", "belongs to."),
        ("Use engine='auto', which picks", "Use --engine auto, which picks"),
        ("pass start= and end= if it was", "pass --start and --end if it was"),
        ("correct the type, or add it to types=.", "correct the type."),
        ("read them with unit='hour' (or", "read them with --unit hour (or"),
        ("raise max_events if that many", "raise --max-events if that many"),
        ('learn_from="data", or', "--learn-from data, or"),
        ("give epochs=400 and the same directory to go on", "--epochs 400 would go on from here"),
    ],
)
def test_messages_of_commands_speak_of_options_that_commands_have(python, command):
    assert common.in_options(python) == command


def test_the_events_of_one_stream_were_out_of_order(tmp_path):
    (tmp_path / "s.csv").write_text("stream,time,type\n1,2.0,a\n1,1.0,a\n")
    assert "the events of 1 stream were not in time order" in run("describe", tmp_path / "s.csv")
