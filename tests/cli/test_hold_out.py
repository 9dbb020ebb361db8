"""``fit --hold-out`` keeps streams out of the fit, in a file in the form of the user's own table."""

from __future__ import annotations

import json
import re
import shutil

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

import retrodict as rd
from retrodict.cli import app
from retrodict.cli.hold_out import drawn, how_many
from retrodict.errors import DataError, ModelError

runner = CliRunner(env={"COLUMNS": "200", "TERM": "dumb"})
MODEL = rd.Poisson([1.0, 0.5])
MODEL.types = ("pick-up", "drop-off")
QUICK = ["--model", "poisson", "--epochs", "2", "--model-only"]
OPTIONS = ["--stream", "driver", "--time", "when", "--type", "what", "--dates", "day-first", "--encoding", "cp1252"]
pytestmark = pytest.mark.filterwarnings("ignore::retrodict.errors.DataNotice")


def run(*words: object, code: int = 0) -> str:
    result = runner.invoke(app, [str(word) for word in words])
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    assert result.exit_code == code, result.output
    return " ".join(result.output.split())


def table(number: int = 60, seed: int = 1) -> pd.DataFrame:
    """Trips with dates of a spreadsheet and a column of one's own."""
    streams = rd.simulate(MODEL, number, end=8.0, seed=seed)
    rows = [
        (f"ü{i:03}", t, MODEL.types[k]) for i, s in enumerate(streams) for t, k in zip(s.times, s.types, strict=True)
    ]
    frame = pd.DataFrame(rows, columns=["driver", "when", "what"])
    when = pd.Timestamp("2025-03-10") + pd.to_timedelta(frame["when"].round(3), unit="h")
    frame["when"] = when.dt.strftime("%d/%m/%Y %H:%M:%S")
    frame["note"] = [f"no. {i};" for i in range(len(frame))]
    return frame


@pytest.fixture
def folder(tmp_path):
    table().to_csv(tmp_path / "trips.csv", index=False, sep="\t", encoding="cp1252")
    return tmp_path


def fit(folder, *more: object, table: str = "trips.csv", code: int = 0) -> str:
    words = ["fit", folder / table, "-o", folder / "model", "--hold-out", folder / "held-out.csv"]
    return run(*words, *(OPTIONS if table.endswith(".csv") else []), *QUICK, *more, code=code)


def record(folder) -> dict:
    return json.loads((folder / "model" / "model.json").read_text())["training"]


def test_streams_are_held_out_in_the_form_of_the_table_and_take_no_part_in_the_fit(folder):
    said = fit(folder)
    assert "read trips.csv: 60 streams (20 held out, 4 set aside as dev)" in said
    assert f"wrote {folder}/held-out.csv: 20 of 60 streams, drawn at random and held out of the fit" in said
    assert f"next: retrodict check {folder}/model {folder}/held-out.csv --stream driver --time when" in said
    lines = (folder / "trips.csv").read_bytes().splitlines()
    held = (folder / "held-out.csv").read_bytes().splitlines()
    ids = {line.split(b"\t")[0] for line in held[1:]}
    assert held == [lines[0], *(line for line in lines[1:] if line.split(b"\t")[0] in ids)]
    assert len(ids) == 20
    assert record(folder)["train_streams"] == 36
    assert record(folder)["train_events"] < len(lines) - len(held)
    assert "check on dev" in said


def test_a_check_knows_what_the_model_was_fitted_to(folder):
    fit(folder)
    very, options = "fitted to this very table", [*OPTIONS, "--no-keep"]
    assert very not in run("check", folder / "model", folder / "held-out.csv", *options)
    assert very in run("check", folder / "model", folder / "trips.csv", *options)
    words = ["fit", folder / "trips.csv", "-o", folder / "model", *OPTIONS, *QUICK, "--restart"]
    assert f"an earlier fit in {folder}/model held streams out in {folder}/held-out.csv" in run(*words)
    said = run("check", folder / "model", folder / "held-out.csv", *options)
    assert "these streams were held out of another fit in this folder" in said
    assert very in run("check", folder / "model", folder / "trips.csv", *options)


def test_the_same_command_again_holds_out_the_same_streams(folder):
    fit(folder)
    before = (folder / "held-out.csv").read_bytes()
    again = fit(folder)
    assert f"{folder}/held-out.csv holds 20 of 60 streams" in again
    assert "this fit had finished" in again
    (folder / "held-out.csv").unlink()
    assert "wrote" in fit(folder)
    assert (folder / "held-out.csv").read_bytes() == before
    assert "this fit had finished" not in fit(folder, "--restart")
    assert (folder / "held-out.csv").read_bytes() == before


def test_a_fit_that_was_interrupted_goes_on_without_the_same_streams(folder, monkeypatch):
    def interrupt(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr("retrodict.train.fitting.train_objective", interrupt)
        assert "run the same command again to go on" in fit(folder, code=130)
    before = (folder / "held-out.csv").read_bytes()
    said = fit(folder)
    assert f"{folder}/held-out.csv holds 20 of 60 streams" in said
    assert (folder / "held-out.csv").read_bytes() == before
    assert record(folder)["train_streams"] == 36


def test_a_file_with_anything_else_is_not_replaced(folder):
    (folder / "held-out.csv").write_text("precious\n1\n")
    with pytest.raises(DataError, match=r"--hold-out would replace this, which holds something else.*another name"):
        fit(folder)
    (folder / "held-out.csv").write_bytes((folder / "trips.csv").read_bytes())
    with pytest.raises(DataError, match="holds something else"):
        fit(folder, "--restart")
    assert not (folder / "model").exists()


def test_a_fit_that_starts_anew_replaces_only_what_an_earlier_one_wrote(folder):
    fit(folder)
    before = (folder / "held-out.csv").read_bytes()
    with pytest.raises(ModelError, match=r"fitted to other streams.*--restart"):
        fit(folder, "--seed", 1)
    fit(folder, "--seed", 1, "--restart")
    after = (folder / "held-out.csv").read_bytes()
    assert after != before
    (folder / "held-out.csv").write_bytes(before)
    with pytest.raises(DataError, match="holds something else"):
        fit(folder, "--seed", 2, "--restart")


def test_streams_held_out_of_a_finished_fit_to_all_are_refused(folder):
    run("fit", folder / "trips.csv", "-o", folder / "model", *OPTIONS, *QUICK)
    with pytest.raises(ModelError, match="fitted to other streams, which may be those that --hold-out sets aside"):
        fit(folder)
    assert not (folder / "held-out.csv").exists()


def test_a_file_that_could_not_be_read_again_is_refused(folder):
    words = ["fit", folder / "trips.csv", "-o", folder / "model", *OPTIONS, *QUICK]
    with pytest.raises(DataError, match=r"could not be read again with the same options.*the suffix of the table"):
        run(*words, "--hold-out", folder / "held-out.jsonl")
    assert sorted(path.name for path in folder.iterdir()) == ["trips.csv"]


def test_dev_streams_of_a_file_of_their_own_are_untouched(folder):
    table(10, seed=2).to_csv(folder / "dev.csv", index=False, encoding="cp1252")
    said = fit(folder, "--dev", folder / "dev.csv")
    assert "60 streams (20 held out)" in said
    assert record(folder)["train_streams"] == 40
    with pytest.raises(DataError, match="--hold-out would replace this file, which is read"):
        fit(folder, "--dev", folder / "held-out.csv")


def test_few_streams_are_said_and_fewer_refused(folder):
    table(20).to_csv(folder / "trips.csv", index=False, encoding="cp1252")
    said = fit(folder)
    assert "10 of 20 streams" in said
    assert "note: 10 streams are few to check by: from 40 streams on, 20 or more are held out" in said
    table(7).to_csv(folder / "trips.csv", index=False, encoding="cp1252")
    with pytest.raises(DataError, match=r"needs 8 streams or more, and there are 7.*leave --hold-out out"):
        fit(folder)


def test_how_many():
    numbers = {8: 4, 39: 19, 40: 20, 100: 20, 101: 20, 150: 30, 1000: 200, 10**6: 200}
    assert {total: how_many(total) for total in numbers} == numbers


def test_the_draw_goes_by_seed_and_id_in_whatever_order():
    streams = rd.simulate(MODEL, 300, end=1.0, seed=0)
    order = np.random.default_rng(0).permutation(300)
    which = drawn(streams, 3)
    assert which.sum() == 60
    assert (drawn(streams[order], 3) == which[order]).all()
    assert (drawn(streams, 4) != which).any()
    often = sum(drawn(streams, seed).astype(int) for seed in range(200))  # binomial, mean 40, deviation 5.7
    assert abs(often - 40).max() < 5 * 5.7  # false alarms: 300 streams, 6e-7 each


FORMATS = ["csv", "csv.gz", "parquet", "jsonl", "json", "xes", ""]


@pytest.mark.parametrize("suffix", FORMATS)
def test_every_format_that_can_be_written_comes_back(suffix, tmp_path):
    frame = table(40)
    frame["when"] = pd.to_datetime(frame["when"], dayfirst=True)
    frame["driver"] = frame["driver"].str.removeprefix("ü").astype(int)
    streams = rd.read_events(frame, stream="driver", time="when", type="what")
    name, held = (f"{part}.{suffix}" if suffix else part for part in ("trips", "held"))
    if suffix == "json":
        streams = rd.simulate(MODEL, 40, end=8.0, seed=1)
    rd.write_events(rd.StreamSet(list(streams), streams.types, streams.axis), tmp_path / name)
    words = ["fit", tmp_path / name, "-o", tmp_path / "model", "--hold-out", tmp_path / held, *QUICK]
    said = run(*words)
    assert "20 of 40 streams" in said
    assert len(rd.read_events(tmp_path / held)) == 20
    assert re.search(r"held\S* holds 20 of 40 streams", run(*words))
    shutil.rmtree(tmp_path / "model")
    assert "holds 20 of 40" in run(*words)


def test_a_folder_of_parquet_files(tmp_path):
    streams = rd.simulate(MODEL, 50, end=8.0, seed=1)
    (tmp_path / "events").mkdir()
    for part in (0, 1):
        half = streams[25 * part : 25 * part + 25].to_frame()
        half.to_parquet(tmp_path / "events" / f"{part}.parquet")
    words = ["fit", tmp_path / "events", "-o", tmp_path / "model", *QUICK, "--hold-out"]
    with pytest.raises(DataError, match="--hold-out would be in a folder that is read"):
        run(*words, tmp_path / "events" / "held.parquet")
    assert "20 of 50 streams" in run(*words, tmp_path / "held.parquet")


def test_the_best_of_several_models_with_a_smoother(tmp_path):
    rd.write_events(rd.simulate(MODEL, 40, end=4.0, seed=1), tmp_path / "trips.parquet")
    words = ["fit", tmp_path / "trips.parquet", "-o", tmp_path / "model", "--hold-out", tmp_path / "held.parquet"]
    said = run(*words, "--epochs", 1, "--seconds", 4)
    assert "20 of 40 streams" in said
    assert f"check {tmp_path}/model {tmp_path}/held.parquet -m NAME=RATE" in said
    assert "very table" not in run("check", tmp_path / "model", tmp_path / "held.parquet", "--particles", 10)
