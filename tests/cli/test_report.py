"""``impute --report``, ``report`` and ``plot``, as a user runs them."""

from __future__ import annotations

import json

import pandas as pd
import pytest
from matplotlib.image import imread
from typer.testing import CliRunner

import retrodict as rd
from retrodict.cli import app
from retrodict.cli.kept_check import KEPT
from tests.report.examples import NEW_YORK, streams
from tests.report.test_page import read

COLUMNS = ["--stream", "driver", "--time", "when", "--type", "what", "--start", "begin", "--end", "stop"]
COLUMNS += ["--timezone", "America/New_York"]
pytestmark = pytest.mark.filterwarnings("ignore::retrodict.errors.SuspicionNotice")


def run(*words: object):
    return CliRunner(env={"COLUMNS": "200"}).invoke(app, [str(word) for word in words])


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A model with its check, an incomplete table, what is missing from it, and what was imputed with a page."""
    folder = tmp_path_factory.mktemp("report")
    complete = streams(10, axis=NEW_YORK)
    model = rd.fit(rd.Poisson, complete, epochs=2, directory=folder / "model", progress=False)
    missing = rd.ByType([0.5, 0.0])
    rd.check(rd.Filtering(model, missing), complete, particles=20).to_json(folder / "model" / KEPT)
    names = {"stream": "driver", "time": "when", "type": "what", "start": "begin", "end": "stop"}
    for name, part in zip(("observed", "hidden"), missing.censor(complete), strict=True):
        part.to_frame().rename(columns=names).to_csv(folder / f"{name}.csv", index=False)
    strange = pd.read_csv(folder / "hidden.csv").assign(driver=lambda table: "not-" + table["driver"])
    strange.to_csv(folder / "strange.csv", index=False)
    page = ["--particles", 40, "--cost", 60, "--unit", "minute", "--report", folder / "page.html"]
    done = run("impute", folder / "model", folder / "observed.csv", *COLUMNS, "-m", "call=0.5", "-o",
               folder / "imputed.csv", *page)  # fmt: skip
    assert done.exit_code == 0, done.output
    assert "a page about 10 streams" in done.output
    return folder


def test_impute_makes_a_page_with_the_check_of_the_model_and_how_it_was_made(folder):
    index, rows = read(folder / "page.html")
    assert index["check"]["verdict"] == json.loads((folder / "model" / KEPT).read_text())["verdict"]
    facts = dict(index["facts"])
    assert facts["what goes missing"] == "call=0.5"
    assert facts["observed events"].endswith("observed.csv")
    assert facts["seed"] == "0"
    assert index["axis"]["zone"] is not None
    scale = index["axis"]["scale"]
    assert [answer["cost"] * scale / 60 for answer in index["answers"]] == pytest.approx([15, 30, 60, 120, 240])
    assert index["first"] == 2
    assert len(rows) == 10


def test_the_same_page_can_be_made_of_the_draws_with_the_truth(folder, tmp_path):
    draws = folder / "imputed.csv.draws"
    done = run("report", draws, "-o", tmp_path / "page.html", "--cost", 60, "--cost", 15, "--truth",
               folder / "hidden.csv", "--title", "Cabs", *COLUMNS)  # fmt: skip
    assert done.exit_code == 0, done.output
    (index, rows), (first, others) = read(tmp_path / "page.html"), read(folder / "page.html")
    assert index["check"] == first["check"]
    assert index["facts"] == first["facts"]
    assert "<title>Cabs" in (tmp_path / "page.html").read_text()
    assert [row["a"] for row in rows] == [[row["a"][0], row["a"][2]] for row in others]
    assert sum(len(row["t"][0]) for row in rows) == pd.read_csv(folder / "hidden.csv")["when"].notna().sum()


def test_report_asked_for_columns_that_the_draws_know(folder, tmp_path):
    draws, hidden = folder / "imputed.csv.draws", pd.read_csv(folder / "hidden.csv")
    names = {"driver": "stream", "when": "time", "what": "type", "begin": "start", "stop": "end"}
    hidden.rename(columns=names).to_csv(tmp_path / "renamed.csv", index=False)  # our own names are known, too
    for truth in (folder / "hidden.csv", tmp_path / "renamed.csv"):
        done = run("report", draws, "-o", tmp_path / "page.html", "--truth", truth)
        assert done.exit_code == 0, (done.output, done.exception)
        _, rows = read(tmp_path / "page.html")
        assert sum(len(row["t"][0]) for row in rows) == hidden["when"].notna().sum()


def test_a_timid_answer_says_that_most_times_are_hardly_known(folder, tmp_path):
    for cost, few in ((0.01, True), (100_000, False)):
        done = run("decode", folder / "imputed.csv.draws", "--cost", cost, "-o", tmp_path / "again.csv")
        assert done.exit_code == 0, done.output
        assert ("of the expected events are not imputed, as their times are hardly known" in done.output) == few


def test_impute_scores_the_truth_on_its_page_also_where_that_is_whole(folder, tmp_path):
    parts = [pd.read_csv(folder / f"{name}.csv") for name in ("observed", "hidden")]
    pd.concat(parts).dropna(subset=["when"]).sort_values(["driver", "when"]).to_csv(tmp_path / "all.csv", index=False)
    parts[1].dropna(subset=["when"]).drop(columns=["begin", "stop"]).to_csv(tmp_path / "events.csv", index=False)
    found = []
    for truth in (folder / "hidden.csv", tmp_path / "all.csv", tmp_path / "events.csv"):
        done = run("impute", folder / "model", folder / "observed.csv", *COLUMNS, "-m", "call=0.5", "--particles", 40,
                   "-o", tmp_path / "i.csv", "--report", tmp_path / "page.html", "--truth", truth)  # fmt: skip
        assert done.exit_code == 0, (done.output, done.exception)
        found.append(read(tmp_path / "page.html")[0]["answers"][2]["score"])
    assert sum(found[0]["missing"]) == parts[1]["when"].notna().sum() > 0
    assert found[0] == found[1] == found[2]


def test_report_shows_the_check_that_it_is_given(folder, tmp_path):
    kept = json.loads((folder / "model" / KEPT).read_text())
    draws, given = folder / "imputed.csv.draws", tmp_path / "check.json"
    for model, note in ((kept["about"]["model"], False), ("another", True)):
        given.write_text(json.dumps(kept | {"verdict": "As given.", "about": kept["about"] | {"model": model}}))
        done = run("report", draws, "-o", tmp_path / "page.html", "--check", given)
        assert done.exit_code == 0, done.output
        assert ("the check is of another model" in done.output) == note
        assert read(tmp_path / "page.html")[0]["check"]["verdict"] == "As given."


@pytest.mark.parametrize(
    "words",
    [["imputed.csv.draws", "--id", "cab-3"], ["imputed.csv.draws", "--tradeoff"], ["model"], [f"model/{KEPT}"]],
    ids=["a stream", "a trade-off", "a fit", "a check"],
)
def test_plot_draws_what_other_commands_wrote(folder, tmp_path, words):
    done = run("plot", folder / words[0], *words[1:], "-o", tmp_path / "a.png")
    assert done.exit_code == 0, done.output
    assert imread(tmp_path / "a.png").std() > 0.02


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["report", "imputed.csv.draws", "-o", "page.txt"], "a page cannot be written as '.txt'"),
        (["report", "model", "-o", "page.html"], "not a saved posterior"),
        (["report", "imputed.csv.draws", "-o", "page.html", "--cost", "-1"], "must be a positive number"),
        (["report", "imputed.csv.draws", "-o", "page.html", "--check", "observed.csv"], "this is not a check"),
        (["impute", "model", "observed.csv", "-o", "i.csv", "-m", "0.5", "--truth", "hidden.csv"], "Give --report"),
        (
            [
                "impute",
                "model",
                "observed.csv",
                *COLUMNS,
                "-o",
                "i.csv",
                "-m",
                "call=0.5",
                "--truth",
                "strange.csv",
                "--report",
                "i.html",
            ],
            "the truth has this stream",
        ),
        (["plot", "imputed.csv.draws", "--id", "nobody", "-o", "a.png"], "no stream 'nobody'; streams are 'cab-0'"),
        (["plot", "model", "--id", "cab-1", "-o", "a.png"], "--id is for draws"),
        (["plot", "imputed.csv", "--id", "cab-1", "-o", "a.png"], "did you mean imputed.csv.draws"),
        (["plot", "nowhere", "-o", "a.png"], "neither draws nor the record of a fit"),
        (["plot", "observed.json", "-o", "a.png"], "this is not a check"),
        (["plot", "imputed.csv.draws", "-o", "a.jpg"], "cannot be written as '.jpg'"),
        (["impute", "model", "observed.csv", "-o", "i.csv", "--report", "page.pdf"], "page cannot be written"),
        (["impute", "model", "observed.csv", "-o", "i.html", "--report", "i.html"], "would replace this file"),
    ],
)
def test_what_cannot_be_shown_is_refused_in_words(folder, monkeypatch, words, said):
    monkeypatch.chdir(folder)
    before = sorted(folder.iterdir())
    done = run(*words)
    assert done.exit_code != 0
    assert said in str(done.exception)
    assert sorted(folder.iterdir()) == before
