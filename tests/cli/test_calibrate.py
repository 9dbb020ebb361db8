"""``retrodict impute --calibrate``: probabilities as they came true in the check that is kept with a model."""

from __future__ import annotations

import re

import pandas as pd
import pytest

import retrodict as rd
from retrodict.smc.show import page_facts
from tests.cli.test_commands import run
from tests.jobs.test_nothing_lost import stop_after

TRUE = rd.Hawkes([0.4, 0.02], [[0.0, 0.55], [0.0, 0.0]], 2.0)
SURE = rd.Hawkes([0.4, 0.02], [[0.0, 0.95], [0.0, 0.0]], 2.0)  # believes that nearly all have a successor
TRUE.types = SURE.types = ("cause", "effect")
WORDS = ("-m", "effect=1", "--cost", "2", "--particles", "100")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A model that is too sure, streams to check it by, and incomplete ones."""
    folder = tmp_path_factory.mktemp("calibrate")
    rd.save_model(SURE, folder / "model")
    rd.write_events(rd.simulate(TRUE, 60, end=20.0, seed=1), folder / "held-out.csv")
    observed, _ = rd.ByType({"effect": 1.0}).censor(rd.simulate(TRUE, 30, end=20.0, seed=2))
    rd.write_events(observed, folder / "incomplete.csv")
    return folder


def impute(folder, name: str, *more: str) -> str:
    where = (str(folder / "model"), str(folder / "incomplete.csv"))
    return run("impute", *where, *WORDS, *more, "-o", str(folder / name)).output


def probabilities(folder, name: str) -> pd.Series:
    return pd.read_csv(folder / name)["probability"].dropna()


def test_probabilities_follow_the_check_in_every_command(folder):
    (folder / "model" / "check.json").unlink(missing_ok=True)
    with pytest.raises(rd.ModelError, match=r"none is kept with this model. Run 'retrodict check MODEL COMPLETE_STREA"):
        impute(folder, "none.csv", "--calibrate")
    impute(folder, "before.csv")
    run("check", str(folder / "model"), str(folder / "held-out.csv"), *WORDS)
    assert "calibrated by the" in impute(folder, "after.csv", "--calibrate", "--report", str(folder / "page.html"))
    before, after = (probabilities(folder, name) for name in ("before.csv", "after.csv"))
    assert before.mean() - after.mean() > 0.1
    assert len(before) == len(after)
    run("decode", str(folder / "after.csv.draws"), "--cost", "2", "-o", str(folder / "decoded.csv"))
    impute(folder, "chunks.csv", "--calibrate", "--chunk-streams", "10")
    for name in ("decoded.csv", "chunks.csv"):
        assert (folder / name).read_bytes() == (folder / "after.csv").read_bytes()
    facts = dict(page_facts(rd.load_posterior(folder / "after.csv.draws")))
    assert re.fullmatch(r"as they came true for \d+ imputed events of a check at cost 2", facts["probabilities"])


def test_a_check_of_another_mechanism_is_refused_before_any_work(folder):
    run("check", str(folder / "model"), str(folder / "held-out.csv"), *WORDS)
    with pytest.raises(rd.ModelError, match=r"Check with the same mechanism.* leave the calibration out"):
        impute(folder, "other.csv", "--calibrate", "-m", "cause=0.1")
    assert not (folder / "other.csv").exists()


def test_a_run_that_goes_on_is_calibrated_by_the_check_it_began_with(folder, monkeypatch):
    run("check", str(folder / "model"), str(folder / "held-out.csv"), *WORDS)
    given = ("gone-on.csv", "--calibrate", "--chunk-streams", "10")
    with monkeypatch.context() as patch:
        stop_after(patch, 1, "sample")
        assert "go on with --resume" in impute(folder, *given)
    kept = (folder / "model" / "check.json").read_bytes()
    run("check", str(folder / "model"), str(folder / "held-out.csv"), *WORDS, "--seed", "7")
    with pytest.raises(rd.DataError, match="differs from this one in the check that --calibrate goes by"):
        impute(folder, *given, "--resume")
    (folder / "model" / "check.json").write_bytes(kept)
    assert "imputed events" in impute(folder, *given, "--resume")
