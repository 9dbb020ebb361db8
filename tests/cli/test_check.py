"""``retrodict check``, the check that ends a fit, and what ``evaluate`` says of costs and intervals."""

from __future__ import annotations

import json
import re
import shutil
import sys

import pytest

import retrodict as rd
from retrodict.cli import main
from retrodict.smc.engines import ENGINES
from tests.cli.test_commands import app, run, runner


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A model and a smoother, fitted by the command, with complete, incomplete and hidden streams beside them."""
    folder = tmp_path_factory.mktemp("check")
    truth = rd.Hawkes([0.5, 0.05], [[0.0, 0.9], [0.0, 0.0]], 2.0)
    truth.types = ("cause", "effect")
    rd.write_events(rd.simulate(truth, 60, end=10.0, seed=1), folder / "train.parquet")
    held_out = rd.simulate(truth, 30, end=10.0, seed=2)
    rd.write_events(held_out, folder / "held-out.parquet")
    observed, hidden = rd.ByType({"cause": 0.5}).censor(held_out)
    rd.write_events(observed, folder / "incomplete.parquet")
    rd.write_events(hidden, folder / "hidden.parquet")
    result = run(
        "fit", str(folder / "train.parquet"), "-m", "cause=0.5", "--model", "hawkes", "--epochs", "5", "-o",
        str(folder / "model"),
    )  # fmt: skip
    (folder / "said.txt").write_text(result.output)
    return folder


def said_of(kept: dict) -> str:
    """What a fit says of its check."""
    return f"check on dev: {first_of(kept)}"


def first_of(kept: dict) -> str:
    """The first line of a verdict."""
    return kept["verdict"].splitlines()[0]


def test_a_fit_ends_with_a_check_on_dev_that_impute_repeats(folder):
    kept = json.loads((folder / "model" / "smoother" / "check.json").read_text())
    assert first_of(kept).startswith("Not known yet: no clear fault on ")  # it has 6 streams, which tell little
    assert first_of(kept).endswith("'retrodict check' on 20 or more held-out streams tells more.")
    assert said_of(kept) in (folder / "said.txt").read_text()
    arguments = ("impute", str(folder / "model"), str(folder / "incomplete.parquet"), "--particles", "20", "-o")
    assert f"the check after fitting said: {first_of(kept)}" in run(*arguments, str(folder / "a.parquet")).output
    (folder / "model" / "smoother" / "check.json").rename(folder / "elsewhere.json")
    assert "the check after fitting" not in run(*arguments, str(folder / "b.parquet")).output
    (folder / "model" / "smoother" / "check.json").write_text(json.dumps(kept | {"about": {"model": "another"}}))
    assert "the check after fitting" not in run(*arguments, str(folder / "c.parquet")).output
    (folder / "elsewhere.json").rename(folder / "model" / "smoother" / "check.json")


def test_the_verdict_on_another_smoother_lies_with_it(folder):
    streams = [str(folder / "model"), str(folder / "train.parquet")]
    said = run("smoother", *streams, "-m", "cause=0.9", "--epochs", "1", "--name", "other").output
    own, first = folder / "model" / "smoothers" / "other" / "check.json", folder / "model" / "smoother" / "check.json"
    kept = json.loads(own.read_text())
    assert said_of(kept) in said
    own.write_text(json.dumps(kept | {"verdict": "of the other"}))
    words = ["impute", str(folder / "model"), str(folder / "incomplete.parquet"), "--particles", "10", "-o"]
    assert "said: of the other" in run(*words, str(folder / "d.parquet"), "-m", "cause=0.9").output
    said = run(*words, str(folder / "e.parquet"), "-m", "cause=0.5").output
    assert f"said: {first_of(json.loads(first.read_text()))}\n" in said
    shutil.rmtree(folder / "model" / "smoothers")


def test_check_says_what_to_trust_and_writes_it_down(folder):
    files = ["--incomplete", str(folder / "incomplete.parquet"), "-o", str(folder / "check.json")]
    files += ["--picture", str(folder / "check.svg")]
    result = run(
        "check", str(folder / "model"), str(folder / "held-out.parquet"), *files, "--particles", "30", "--cost", "0.5",
        "--full",
    )  # fmt: skip
    kept = json.loads((folder / "check.json").read_text())
    assert kept["verdict"] in result.output
    assert result.output.index(kept["verdict"]) < result.output.index("what was checked")  # shortest first
    assert kept["about"] | {"particles": 30, "proposal": "smoothing", "incomplete_streams": 30} == kept["about"]
    assert kept["coverage"]["cost"] == 0.5
    for text in ("90 % intervals", "streams that end", "constant rates"):
        assert text in result.output
    assert (folder / "check.svg").read_text().startswith("<?xml")


def test_one_number_for_one_thing_in_table_verdict_json_and_page(folder, tmp_path):
    """The ± of intervals and of counts is the standard error of the finding, wherever it is shown."""
    words = ["check", str(folder / "model"), str(folder / "held-out.parquet"), "--no-keep"]
    said = run(*words, "--full", "-o", str(tmp_path / "check.json")).output
    kept = json.loads((tmp_path / "check.json").read_text())
    found = {finding["name"]: finding for finding in kept["findings"]}
    held, excess = found["90 % intervals that hold the truth"], found["expected events, more than hidden"]
    assert (kept["coverage"]["value"], kept["coverage"]["error"]) == (held["value"], held["error"])
    assert f"{100 * held['value']:.1f} ± {100 * held['error']:.1f} %" in said
    assert f"{100 * excess['value']:.1f} ± {100 * excess['error']:.1f} %" in said
    assert f"{held['value']:.0%} ± {held['error']:.0%} of the 90 % intervals hold the true time" in kept["verdict"]
    total = kept["counts"][-1]
    number = f"{total['expected']:,.0f} ± {excess['error'] * total['true']:,.0f} events were expected"
    assert number in kept["verdict"]


def test_the_finding_that_matters_is_the_first_row_of_the_table(folder, tmp_path):
    wrong = rd.Hawkes([2.0, 0.05], [[0.0, 0.9], [0.0, 0.0]], 2.0)
    wrong.types = ("cause", "effect")
    wrong.save(tmp_path / "wrong")
    output = run("check", str(tmp_path / "wrong"), str(folder / "held-out.parquet"), "--no-keep").output
    rows = [line for line in output.splitlines() if line.strip()]
    at = next(i for i, line in enumerate(rows) if "look at this first" in line)
    assert rows[at - 2].split() == ["what", "was", "compared", "found", "fine", "is", "judgement"]
    assert "ALARM" in rows[at + 1]
    alarms = ["ALARM" in row for row in rows[at + 1 :]]
    assert alarms == sorted(alarms, reverse=True)
    words = ["check", str(folder / "model"), str(folder / "held-out.parquet"), "--no-keep"]
    right, full = run(*words).output, run(*words, "--full").output
    assert "look at this first" not in right
    assert full.count("fine") > right.count("fine") + 5


@pytest.mark.parametrize("factor", [1.0, 0.75, 4.0])  # of the model's rate: right, doubtful, wrong
def test_the_comparisons_add_up_and_are_those_of_the_verdict(factor, folder, tmp_path):
    model = rd.Hawkes([0.5 * factor, 0.05], [[0.0, 0.9], [0.0, 0.0]], 2.0)
    model.types = ("cause", "effect")
    model.save(tmp_path / "other")
    words = ["check", str(tmp_path / "other"), str(folder / "held-out.parquet"), "--no-keep"]
    shown, full = (" ".join(run(*words, *more).output.split()) for more in ([], ["--full"]))
    told = re.search(r" (\d+) comparisons: ([^()]*) \(--full shows them\)", shown)
    kinds = {kind: int(number) for number, kind in (each.split(" ", 1) for each in told[2].split(", "))}
    assert sum(kinds.values()) == int(told[1])
    assert f"{told[1]} comparisons: {told[2]} (a row may stand for several types)" in full
    verdict = re.search(r"(\d+) of (\d+) comparisons with", shown)
    assert (verdict is not None) == ("in doubt" in kinds and "wrong" not in kinds)
    assert (factor == 0.75) == (verdict is not None)
    if verdict is not None:
        assert (int(verdict[1]), int(verdict[2])) == (kinds["in doubt"], int(told[1]))


def test_a_check_on_the_streams_that_the_model_was_fitted_to_says_so(folder):
    words = [str(folder / "model"), str(folder / "train.parquet"), "--particles", "10", "--no-keep"]
    assert "the model was fitted to this very table, so that its check is too kind" in run("check", *words).output
    words[1] = str(folder / "held-out.parquet")
    assert "very table" not in run("check", *words).output


def test_a_check_that_was_asked_for_is_kept_and_impute_repeats_it(folder, tmp_path):
    shutil.copytree(folder / "model", tmp_path / "model")
    kept, own = tmp_path / "model" / "smoother" / "check.json", tmp_path / "own.json"
    before = kept.read_text()
    words = ["check", str(tmp_path / "model"), str(folder / "held-out.parquet"), "--particles", "30", "-o", str(own)]
    run(*words, "--no-keep")
    assert kept.read_text() == before
    said = run(*words).output
    assert f"wrote {kept}: the check, which 'impute' repeats" in said.replace("\n", "")
    assert json.loads(kept.read_text()) == json.loads(own.read_text())
    assert json.loads(kept.read_text())["about"]["imputed_streams"] == 30
    arguments = ["impute", str(tmp_path / "model"), str(folder / "incomplete.parquet"), "--particles", "20", "-o"]
    verdict = first_of(json.loads(own.read_text()))
    repeated = f"note: the check on held-out.parquet (cause=0.5 hidden) said: {verdict}"
    assert repeated in run(*arguments, str(tmp_path / "a.parquet")).output
    filtered = run(*words, "--filtering").output
    assert "model/check.json: the check" in filtered.replace("\n", "")
    assert repeated in run(*arguments, str(tmp_path / "b.parquet")).output  # each proposal has its own
    other = run(*arguments, str(tmp_path / "c.parquet"), "-m", "cause=0.2", "--smoother", "smoother").output
    assert "(cause=0.5 hidden) was not about what goes missing here. It said: " in other
    chunks = run(*arguments, str(tmp_path / "d.parquet"), "--chunk-streams", "10").output
    assert chunks.count(verdict) == 1


@pytest.mark.parametrize("chunked", [[], ["--chunk-streams", "10"]])
def test_no_verdict_is_repeated_before_a_refusal(folder, tmp_path, chunked):
    """Every guess has more events than it may."""
    words = ["impute", str(folder / "model"), str(folder / "incomplete.parquet"), "--particles", "10", *chunked]
    result = runner.invoke(app, [*words, "--max-events", "1", "-o", str(tmp_path / "a.parquet")])
    assert isinstance(result.exception, rd.RunawayError)
    assert "said:" not in result.output
    assert "said:" in run(*words, "-o", str(tmp_path / "b.parquet")).output


def test_a_check_that_hid_nothing_is_not_kept(folder, tmp_path):
    shutil.copytree(folder / "model", tmp_path / "model")
    (tmp_path / "late.yaml").write_text("mechanism: windows\nwindows: [[1000, 1001]]\n")
    kept = tmp_path / "model" / "smoother" / "check.json"
    before = kept.read_text()
    words = ["check", str(tmp_path / "model"), str(folder / "held-out.parquet"), "--smoother", "smoother"]
    said = run(*words, "-m", str(tmp_path / "late.yaml"), "--particles", "10", "--seconds", "0.1").output
    assert "the check is not kept, as nothing was hidden" in said
    assert kept.read_text() == before


def test_a_check_that_cannot_be_kept_is_shown_all_the_same(folder, tmp_path):
    rd.load_model(folder / "model").save(tmp_path / "model")
    (tmp_path / "model" / "check.json").mkdir()
    said = run("check", str(tmp_path / "model"), str(folder / "held-out.parquet")).output
    assert "the check is not kept" in said
    assert "Not known yet: no misfit of the model was found in 30 streams" in said


def test_without_a_mechanism_the_model_alone_is_checked(folder, tmp_path):
    rd.load_model(folder / "model").save(tmp_path / "alone")
    output = run("check", str(tmp_path / "alone"), str(folder / "held-out.parquet"), "--full").output
    assert "gaps too short or too long" in output
    assert "intervals" not in output.split("imputed events")[0]
    with_rates = run(
        "check", str(tmp_path / "alone"), str(folder / "held-out.parquet"), "-m", "0.5", "--seconds", "0.1"
    )
    assert "distance to the truth" in with_rates.output


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--device", "toaster"], "unknown device 'toaster'"),
        (["-o", "{folder}/nowhere/check.json"], "give a path in a folder that exists"),
        (["--picture", "{folder}"], "give the path of a file"),
        (["-m", "lunch=0.5"], "no event type matches 'lunch'"),
        (["--cost", "-1"], "costs must be finite and not negative"),
        (["--engine", "steam"], "steam"),
    ],
)
def test_wrong_options_of_check_are_refused_in_words(options, message, folder, monkeypatch, capsys):
    given = ["check", str(folder / "model"), str(folder / "held-out.parquet"), *options]
    monkeypatch.setattr(sys, "argv", ["retrodict", *(text.format(folder=folder) for text in given)])
    with pytest.raises(SystemExit) as stop:
        main()
    assert stop.value.code == 2
    assert message in capsys.readouterr().err


def test_impute_says_which_cost_was_used_and_how_it_was_chosen(folder, tmp_path):
    given = ["impute", str(folder / "model"), str(folder / "incomplete.parquet"), "--particles", "50", "--seed", "1"]
    said = run(*given, "-o", str(tmp_path / "a.csv")).output
    observed = rd.read_events(folder / "incomplete.parquet")
    price = float(said.split("; cost ")[1].split()[0])
    expected = float(said.split(" expected missing")[0].rpartition("(")[2])
    mean_gap = observed.durations.sum() / (observed.num_events + expected + len(observed))
    assert price == pytest.approx(mean_gap / 2, rel=5e-3)  # the expected number is a whole one
    low, high = map(int, re.search(r" expected missing, 90 %: (\d+) to (\d+); cost ", said).groups())
    assert low < expected < high
    assert "half of the mean gap between events, seen and expected (--cost sets another)" in said
    assert "an event is imputed only where that lowers the expected distance to the truth" in said
    chosen = run(*given, "--cost", "2.5", "-o", str(tmp_path / "b.csv")).output
    assert re.search(r"expected missing, 90 %: \d+ to \d+; cost 2\.5 units of time\)", chosen)
    assert "cost: " not in chosen
    chunks = run(*given, "--chunk-streams", "10", "-o", str(tmp_path / "c.csv")).output
    assert "cost: half of the mean gap" in chunks
    assert f"({expected:g} expected missing, 90 %: {low} to {high}; cost {price:.4g} units of time)" in chunks


@pytest.mark.parametrize("chunks", ["0", "10"])
def test_impute_says_how_many_particles_there_are(chunks, folder, tmp_path, monkeypatch):
    for engine in ENGINES.values():
        monkeypatch.setattr(engine, "affords", 40)
    given = ["impute", str(folder / "model"), str(folder / "incomplete.parquet"), "--chunk-streams", chunks]
    said = run(*given, "--no-draws", "-o", str(tmp_path / "a.csv")).output
    assert "particles: 40 weighted guesses of each stream, the default for this engine and memory" in said
    said = run(*given, "--particles", "30", "-o", str(tmp_path / "b.csv")).output
    assert "30 weighted draws of each of 30 streams" in said
    assert "particles: " not in said
    said = run(*given, "-o", str(tmp_path / "c.csv")).output
    assert "40 weighted draws of each of 30 streams, the default for this engine" in said


@pytest.mark.parametrize("chunks", ["0", "10"])
def test_impute_says_that_it_replaced_an_earlier_output(chunks, folder, tmp_path):
    given = ["impute", str(folder / "model"), str(folder / "incomplete.parquet"), "--chunk-streams", chunks]
    given += ["--particles", "10", "-o", str(tmp_path / "a.csv")]
    assert "replaced" not in run(*given).output
    assert run(*given).output.count(f"this replaced an earlier {tmp_path / 'a.csv'}") == 1


def test_evaluate_says_at_which_cost_intervals_were_scored_and_what_predicting_nothing_gives(folder, tmp_path):
    imputed, hidden, scores = tmp_path / "imputed.csv", tmp_path / "hidden.csv", tmp_path / "scores.json"
    done = run(
        "impute", str(folder / "model"), str(folder / "incomplete.parquet"), "--particles", "50", "-o", str(imputed)
    )
    rows = rd.read_events(folder / "hidden.parquet").to_frame().dropna(subset=["time"])
    rows = rows[rows["stream"] != rows["stream"].iloc[0]]  # a user's own table of what was hidden lacks empty streams
    rows.to_csv(hidden, index=False)
    result = run("evaluate", str(hidden), str(imputed), "-o", str(scores))
    report = json.loads(scores.read_text())
    by_impute = float(done.output.split("; cost ")[1].split()[0])
    assert report["coverage"]["cost"][0] == report["transport"][0]["insert_cost"] == pytest.approx(by_impute, rel=0.1)
    assert f"at cost {report['coverage']['cost'][0]:.4g} units of time:" in result.output
    assert "% of the 90 % intervals hold the true time (" in result.output
    assert "predict nothing" in result.output
    assert all(row["nothing_per_event"] == row["insert_cost"] for row in report["transport"])
