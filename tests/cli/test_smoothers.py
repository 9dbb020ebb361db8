"""A model's folder holds one model and smoothers that know it; ``impute`` takes the one for what goes missing."""

from __future__ import annotations

import shutil

import pytest
from typer.testing import CliRunner

import retrodict as rd
from retrodict.cli import app
from retrodict.missingness.spec import parse_missing
from retrodict.proposals.smoothers import SMOOTHER, smoothers_of

runner = CliRunner(env={"COLUMNS": "160", "TERM": "dumb"})
QUICK = ["--hidden", "4", "--epochs", "1"]
TYPES = ("cause", "effect")


def run(*words: object) -> str:
    """What a command prints, notes and errors too."""
    result = runner.invoke(app, [str(word) for word in words])
    if isinstance(result.exception, rd.RetrodictError):
        return f"error: {result.exception}"
    assert result.exit_code == 0, result.output
    return result.output


@pytest.fixture(scope="module")
def fitted(tmp_path_factory):
    """A model with a smoother for lost causes, complete streams to train on, and streams without causes."""
    folder = tmp_path_factory.mktemp("fitted")
    truth = rd.Hawkes([0.5, 0.05], [[0.0, 0.9], [0.0, 0.0]], 2.0)
    truth.types = TYPES
    complete = rd.simulate(truth, 10, end=10.0, seed=1)
    rd.write_events(complete, folder / "complete.parquet")
    rd.write_events(rd.ByType({"cause": 1}).censor(complete)[0], folder / "seen.csv")
    run("fit", folder / "complete.parquet", "-m", "cause=1", "-o", folder / "model", *QUICK)
    return folder


@pytest.fixture
def folder(fitted, tmp_path):
    shutil.copytree(fitted, tmp_path, dirs_exist_ok=True)
    return tmp_path


def impute(folder, *more: object) -> str:
    given = ["impute", folder / "model", folder / "seen.csv", "-o", folder / "out.csv", "--particles", 5]
    return run(*given, *more)


@pytest.mark.parametrize("missing", [None, "cause=1", "c*=1.0", "yaml"])
def test_impute_with_m_uses_the_smoother_that_was_trained_for_it(folder, missing):
    (folder / "same.yaml").write_text("mechanism: by_type\nrates: {effect: 0, cause: 1}")
    given = [] if missing is None else ["-m", folder / "same.yaml" if missing == "yaml" else missing]
    assert "smoother, trained for cause=1\n" in impute(folder, *given)


def test_impute_says_why_it_filters(folder):
    said = impute(folder, "-m", "cause=0.9")
    assert "proposal: filtering for cause=0.9, which sees only the past: no smoother in" in said
    assert "--smoother smoother (for cause=1)" in said
    assert "filtering for cause=1, which sees only the past: as --filtering asks" in impute(folder, "--filtering")


def test_a_second_smoother_on_a_fitted_model(folder):
    model = folder / "model"
    said = run("smoother", model, folder / "complete.parquet", "-m", "cause=0.9", "--epochs", 1)
    assert "smoother for cause=0.9" in said
    assert (model / "smoothers" / "cause=0.9" / "proposal.json").exists()
    assert "cause=0.9, trained for cause=0.9" in impute(folder, "-m", "cause=0.9")
    assert "smoother, trained for cause=1" in impute(folder, "-m", "cause=1")
    said = impute(folder)
    assert (
        "2 smoothers that could be meant. Choose one: --smoother smoother (for cause=1); --smoother cause=0.9" in said
    )
    said = impute(folder, "--smoother", "cause=0.9", "-m", "cause=1")
    assert "trained for cause=0.9 and used for cause=1, as --smoother asks" in said
    assert "has no smoother 'x'; there is smoother, cause=0.9" in impute(folder, "--smoother", "x")
    again = run("smoother", model, folder / "complete.parquet", "-m", "cause=0.90", "--epochs", 1)
    assert "had finished" in again
    named = run("smoother", model, folder / "complete.parquet", "-m", "0.5", "--name", "cause=0.9", "--epochs", 1)
    assert "holds a smoother for cause=0.9, not for 0.5 of every type. Choose another --name" in named


def test_a_model_that_was_fitted_again_has_no_smoother_until_it_is_trained_again(folder):
    """First fit with -m, then fit --restart without: the old smoother was used, silently, with its own old model."""
    model = folder / "model"
    said = run("fit", folder / "complete.parquet", "--restart", "--seed", 7, "-o", model, "--model-only", *QUICK)
    assert "was trained for the model that was here before, and will be refused from now on" in said
    assert f"retrodict smoother {model} FILE" in said
    said = impute(folder)
    assert "error: no smoother in" in said
    assert "trained for another model than the one that is in the folder now: train it again" in said
    assert "but it was trained for another model" in impute(folder, "-m", "cause=1")
    assert "cannot be used: it was trained for another model" in impute(folder, "--smoother", SMOOTHER)
    run("smoother", model, folder / "complete.parquet", "-m", "cause=1", "--epochs", 1)
    assert "smoother, trained for cause=1\n" in impute(folder)


def test_a_fit_that_goes_on_trains_the_smoother_for_the_new_model(folder):
    more = [*QUICK[:2], "--epochs", "2"]
    said = run("fit", folder / "complete.parquet", "-m", "cause=1", "-o", folder / "model", *more)
    assert "was trained for another model, or is damaged: the smoother is trained anew" in said
    assert "smoother, trained for cause=1\n" in impute(folder)


def test_imputing_the_very_table_that_the_model_was_fitted_to_is_said(folder):
    """In another format and order of types; other streams, and a part of them, are imputed without a word of that."""
    complete, very = rd.read_events(folder / "complete.parquet"), "fitted to this very table: if events are missing"
    rd.write_events(complete.with_types(TYPES[::-1]), folder / "seen.csv")
    assert very in impute(folder, "-m", "0.5")
    rd.write_events(complete[:-1], folder / "seen.csv")
    assert very not in impute(folder, "-m", "0.5")
    auto = [
        "fit",
        folder / "complete.parquet",
        "--model-only",
        "--seconds",
        "1",
        "-o",
        folder / "auto",
        "--epochs",
        "1",
    ]
    run(*auto)
    whole = [
        "impute",
        folder / "auto",
        folder / "complete.parquet",
        "-m",
        "0.5",
        "--particles",
        5,
        "-o",
        folder / "a.csv",
    ]
    assert very in run(*whole)


def test_a_foreign_smoother_is_refused(folder):
    run("fit", folder / "complete.parquet", "-m", "cause=1", "--seed", 3, "-o", folder / "other", *QUICK)
    shutil.rmtree(folder / "model" / SMOOTHER)
    shutil.copytree(folder / "other" / SMOOTHER, folder / "model" / "smoothers" / "foreign")
    assert "trained for another model than the one that is in the folder now" in impute(folder)


def test_a_broken_model_is_noticed_though_the_smoother_has_its_own(folder):
    (folder / "model" / "model.json").write_text("{")
    assert "model.json is damaged" in impute(folder)


def test_a_broken_smoother_is_named_and_can_be_trained_again(folder):
    about = folder / "model" / SMOOTHER / "proposal.json"
    about.write_text("{")
    assert f"{about} is damaged" in impute(folder)
    assert "filtering for cause=1" in impute(folder, "-m", "cause=1")
    where = ["-m", "cause=1", "--name", SMOOTHER, "--epochs", 1]
    run("smoother", folder / "model", folder / "complete.parquet", *where)
    assert "smoother, trained for cause=1\n" in impute(folder)


def test_a_folder_of_an_earlier_version_still_loads(folder):
    """Its smoother has no missing.yaml, and no digest of its model."""
    smoother = folder / "model" / SMOOTHER
    (smoother / "missing.yaml").unlink()
    text = (smoother / "proposal.json").read_text()
    start = text.index(' "model": ')
    (smoother / "proposal.json").write_text(text[:start] + text[text.index("\n", start) + 1 :])
    assert "smoother, trained for cause=1\n" in impute(folder)
    (kept,) = smoothers_of(folder / "model", rd.load_model(folder / "model"))
    assert kept.problem is None
    assert kept.is_for(rd.ByType([1.0, 0.0]).bind(TYPES))


def same(one: rd.Missingness, other: rd.Missingness) -> bool:
    return one.bind(TYPES, "hour").meaning() == other.bind(TYPES, "hour").meaning()


def test_mechanisms_are_compared_by_what_they_mean():
    assert same(rd.ByType(0.5), parse_missing(["*=0.5"], TYPES))
    assert same(rd.ByType({"cause": 0.5}), rd.ByType([0.5, 0.0]))
    assert not same(rd.ByType(0.5), rd.ByType({"cause": 0.5}))
    night = rd.Windows([("22:00", "06:00")], every="day")
    assert same(night, rd.Windows([(22, 6)], every=24, unit="hour", clock="axis"))
    assert same(night, rd.Windows([("22:00", "06:00")], TYPES, every="day"))
    assert not same(night, rd.Windows([("22:00", "06:00")], "cause", every="day"))
    assert not same(night, rd.Windows([("22:00", "06:30")], every="day"))
    assert same(rd.After("cause", "30 minutes"), rd.After(["cause"], 0.5, {"*": 1.0}))
    assert not same(rd.After("cause", 1.0), rd.After("effect", 1.0))
    table = rd.TimeVarying(["08:00", "20:00"], [0.1, 0.4], every="day")
    assert same(table, rd.TimeVarying([8, 20], {"*": [0.1, 0.4]}, every=24))
    assert not same(table, rd.TimeVarying([8, 20], [0.1, 0.4], every=24, steps=True))
    assert same(night * rd.ByType(0.1), rd.ByType([0.1, 0.1]) * night)
    assert not same(night * rd.ByType(0.1), night)


@pytest.fixture(scope="module")
def for_anything(fitted, tmp_path_factory):
    """The same streams, and a model whose smoother is for whatever goes missing, as ``fit`` makes it by default."""
    folder = tmp_path_factory.mktemp("anything")
    for name in ("complete.parquet", "seen.csv"):
        shutil.copy(fitted / name, folder)
    complete = folder / "complete.parquet"
    said = run("fit", complete, "--dev", complete, "-o", folder / "model", *QUICK)
    assert "smoother: smoother for whatever goes missing, log q" in said
    assert "check on dev, half of the events hidden: " in said
    return folder


def test_after_fit_the_second_command_is_impute(for_anything, tmp_path):
    """Whatever goes missing: rates, or an outage; no smoother has to be trained for it."""
    (tmp_path / "outage.yaml").write_text("mechanism: windows\nwindows: [[2, 4]]")
    for missing, words in (
        ("cause=1", "cause=1"),
        ("0.5", "0.5 of every type"),
        (tmp_path / "outage.yaml", "windows 2 to 4"),
    ):
        said = impute(for_anything, "-m", missing)
        assert (
            f"smoother in {for_anything / 'model' / SMOOTHER}, trained for whatever goes missing and used for " in said
        )
        assert f"used for {words}" in said


def test_a_smoother_for_anything_has_to_be_told_what_goes_missing(for_anything):
    for more in ([], ["--filtering"], ["--smoother", SMOOTHER]):
        said = impute(for_anything, *more)
        assert "is for whatever goes missing: say what does with --missing, such as --missing cause=0.5" in said
    checked = run("check", for_anything / "model", for_anything / "complete.parquet", "--particles", 4)
    assert "half of the events are hidden, as --missing does not say which" in checked


def test_a_smoother_for_anything_of_an_earlier_model_is_not_recommended(for_anything, tmp_path):
    """It was, in the sentence after the one that it would be refused."""
    shutil.copytree(for_anything, tmp_path, dirs_exist_ok=True)
    run("smoother", tmp_path / "model", tmp_path / "complete.parquet", "-m", "cause=0.9", "--epochs", 1)
    said = run(
        "fit", tmp_path / "complete.parquet", "--restart", "--seed", 7, "-o", tmp_path / "model", "--model-only", *QUICK
    )
    assert "will be refused from now on" in said
    assert f"retrodict smoother {tmp_path / 'model'} FILE'" in said
    told = impute(tmp_path, "-m", "effect=0.5")
    assert "is for whatever goes missing, but it was trained for another model" in told
    assert "--smoother" not in told


def test_training_for_certain_missing_events_starts_from_the_smoother_for_anything(for_anything, tmp_path):
    shutil.copytree(for_anything, tmp_path, dirs_exist_ok=True)
    complete = tmp_path / "complete.parquet"
    train = ["smoother", tmp_path / "model", complete, "--dev", complete, "--epochs", 1]
    assert "training starts from the smoother for anything in" in run(*train, "-m", "cause=1")
    assert "cause=1, trained for cause=1\n" in impute(tmp_path, "-m", "cause=1")
    assert "cause=1, trained for cause=1\n" in impute(tmp_path)
    assert "trained for whatever goes missing and used for cause=0.9" in impute(tmp_path, "-m", "cause=0.9")
    other = run(*train, "-m", "cause=0.9", "--mixing", 2)
    assert "training starts from" not in other
    assert "had finished" in run(*train)


def test_a_model_alone_can_be_fitted_and_given_a_smoother_later(folder):
    run("fit", folder / "complete.parquet", "-o", folder / "alone", "--model-only", *QUICK)
    assert not (folder / "alone" / SMOOTHER).exists()
    run("smoother", folder / "alone", folder / "complete.parquet", "--epochs", 1)
    assert rd.load_proposal(folder / "alone" / SMOOTHER).missingness.kind == "anything"
