"""What a new user saw of ``evaluate``, ``ask`` and their kin: units, the whole truth, empty stretches."""

from __future__ import annotations

import json
import shutil

import numpy as np
import pandas as pd
import pytest

import retrodict as rd
from tests.cli.test_commands import run

COLUMNS = ["--stream", "driver", "--time", "when", "--type", "what"]
pytestmark = pytest.mark.filterwarnings("ignore::retrodict.errors.DataNotice")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Trips minutes apart, of which few are hidden: their gaps are hours. They are imputed, and the draws kept."""
    folder = tmp_path_factory.mktemp("scoring")
    model = rd.Poisson([0.05, 0.05])
    model.types, model.time_unit = ("pick-up", "drop-off"), "minute"
    model.save(folder / "model")
    when = pd.date_range("2024-03-01 08:00", periods=60, freq="7min", tz="America/Denver")
    kinds = ["pick-up" if i % 20 == 10 else "drop-off" for i in range(60)]
    truth = pd.DataFrame({"driver": ["ann"] * 60 + ["bob"] * 60, "when": [*when, *when], "what": kinds * 2})
    truth.to_csv(folder / "truth.csv", index=False)
    for name, part in {"hidden": truth["what"] == "pick-up", "seen": truth["what"] != "pick-up"}.items():
        truth[part].to_csv(folder / f"{name}.csv", index=False)
    words = ["impute", folder / "model", folder / "seen.csv", *COLUMNS, "-m", "pick-up=1", "--particles", 30]
    done = run(*map(str, [*words, "--cost", 20, "-o", folder / "imputed.csv"]))
    assert done.exit_code == 0, done.output
    assert ",true," in (folder / "imputed.csv").read_text()
    (folder / "said.txt").write_text(done.output)
    return folder


def evaluate(folder, truth="hidden.csv", imputed="imputed.csv", *options):
    scores = folder / "scores.json"
    result = run("evaluate", str(folder / truth), str(folder / imputed), *COLUMNS, "-o", str(scores), *options)
    return " ".join(result.output.split()), json.loads(scores.read_text())


def test_evaluate_scored_in_hours_what_impute_had_decoded_in_minutes(folder):
    cost = (folder / "said.txt").read_text().split("; cost ")[1].split(" minutes")[0]
    said, scores = evaluate(folder)
    assert f"cost {cost} minutes: that of imputed.csv.draws" in said
    assert " hidden.csv: each stream was taken to start" not in said.replace("/", " ")  # nothing depends on it
    assert " imputed.csv: each stream was taken to start" in said.replace("/", " ")
    assert f"{scores['transport'][0]['insert_cost']:.4g}" == cost
    given, _ = evaluate(folder, "hidden.csv", "imputed.csv", "--cost", cost)
    assert f"cost {cost} minutes: as given" in given
    hours, in_hours = evaluate(folder, "hidden.csv", "imputed.csv", "--unit", "hour")
    assert "hours: that of imputed.csv.draws" in hours
    assert in_hours["unit"] == "hour"
    minutes = scores["transport"][0]["distance_per_event"]
    assert in_hours["transport"][0]["distance_per_event"] == pytest.approx(minutes / 60)


def test_evaluate_takes_the_unit_of_the_imputed_table_where_there_are_no_draws(folder):
    (folder / "alone.csv").write_bytes((folder / "imputed.csv").read_bytes())
    said, scores = evaluate(folder, "hidden.csv", "alone.csv")
    assert "minutes: half a gap between events" in said
    assert scores["unit"] == "minute"


def test_evaluate_took_observed_events_of_the_whole_truth_for_missing_ones(folder):
    said, whole = evaluate(folder, "truth.csv")
    assert "114 of these 120 events stand in imputed.csv as observed; the other 6 are scored" in said
    _, hidden = evaluate(folder)
    assert whole["events"] == hidden["events"]
    distances = [[row["distance"] for row in scores["transport"]] for scores in (whole, hidden)]
    assert distances[0] == pytest.approx(distances[1])
    with pytest.raises(rd.DataError, match=r"114 of these 114 events .* none is left to score"):
        evaluate(folder, "seen.csv")


def test_a_hidden_event_at_the_time_of_an_observed_one_is_still_scored(folder):
    rows = (folder / "hidden.csv").read_text() + (folder / "seen.csv").read_text().splitlines()[1] + "\n"
    (folder / "tied.csv").write_text(rows)
    said, scores = evaluate(folder, "tied.csv")
    assert "1 of these 7 events stand in imputed.csv as observed, too" in said
    assert scores["events"]["missing"] == 7


def test_evaluate_flattered_files_that_were_given_in_the_wrong_order(folder):
    with pytest.raises(rd.DataError, match=r"give the truth first: retrodict evaluate truth.csv imputed.csv"):
        evaluate(folder, "imputed.csv", "truth.csv")


def test_plot_scored_observed_events_of_the_whole_truth_as_missing_ones(folder):
    words = ("plot", str(folder / "imputed.csv.draws"), "--tradeoff", *COLUMNS, "-o", str(folder / "tradeoff.png"))
    said = run(*words, "--truth", str(folder / "truth.csv")).output
    assert "114 of these 120 events stand in the table as observed; the other 6 are scored" in " ".join(said.split())


def test_evaluate_named_the_cost_of_a_table_that_was_decoded_again(folder, tmp_path):
    for name in ("imputed.csv", "imputed.csv.draws"):
        (shutil.copytree if name.endswith(".draws") else shutil.copy)(folder / name, tmp_path / name)
    run("decode", str(tmp_path / "imputed.csv.draws"), "--cost", "33", "-o", str(tmp_path / "other.csv"))
    words = ("evaluate", str(folder / "hidden.csv"), str(tmp_path / "imputed.csv"), *COLUMNS)
    assert "cost 20 minutes: that of imputed.csv.draws" in run(*words).output
    other = ("evaluate", str(folder / "hidden.csv"), str(tmp_path / "other.csv"), *COLUMNS)
    assert "cost 33 minutes: that of imputed.csv.draws" in run(*other).output
    shutil.copy(tmp_path / "imputed.csv", tmp_path / "other.csv")  # another table of that name
    assert "half a gap between events" in run(*other).output
    run("decode", str(tmp_path / "imputed.csv.draws"), "--cost", "33", "-o", str(tmp_path / "imputed.csv"))
    assert "cost 33 minutes: that of imputed.csv.draws" in run(*words).output


def ask(folder, *options):
    return " ".join(run("ask", str(folder / "imputed.csv.draws"), *options).output.split())


def test_ask_answered_a_stretch_that_ends_before_it_starts_with_a_bare_header(folder):
    with pytest.raises(rd.DataError, match=r"start= \('2024-03-01T09:00'\) is after end= \('2024-03-01T08:00'\)"):
        ask(folder, "--start", "2024-03-01T09:00", "--end", "2024-03-01T08:00")
    posterior = rd.load_posterior(folder / "imputed.csv.draws")
    for question in (posterior.probability, posterior.expected_count):
        with pytest.raises(rd.DataError, match="is after end="):
            question("pick-up", 2.0, 1.0)


def test_ask_took_a_number_for_seconds_since_1970_where_streams_have_dates(folder):
    for side, value in (("--start", "8"), ("--end", "2024")):
        with pytest.raises(rd.DataError, match=f"{side[2:]}= is the number '{value}', but the streams have dates"):
            ask(folder, side, value)


def test_ask_said_nothing_of_a_stretch_outside_of_every_stream(folder):
    said = ask(folder, "--start", "2031-01-01")
    assert (
        "this stretch is outside of every stream: they run from 2024-03-01 08:00:00 until 2024-03-01 14:53:00" in said
    )
    assert "outside of every stream" not in ask(folder, "--start", "2024-03-01T08:00")


def test_ask_says_what_was_asked_and_the_expected_number_in_all_streams(folder):
    said = ask(folder, "--type", "pick-up", "--start", "2024-03-01T08:00", "--end", "2024-03-01T10:00")
    question = "missing events of type 'pick-up' from 2024-03-01 08:00:00 until 2024-03-01 10:00:00 ("
    assert question in said
    posterior = rd.load_posterior(folder / "imputed.csv.draws")
    expected = posterior.expected_count("pick-up", "2024-03-01T08:00", "2024-03-01T10:00").sum()
    assert f" {expected:.0f} " in said.split("all streams")[1]
    assert expected >= 10


@pytest.mark.parametrize("given", [{}, {"start": "2024-03-01T08:00", "end": "2024-03-01T10:00"}])
def test_ask_gives_the_intervals_of_the_posterior(folder, tmp_path, given):
    options = [word for name, value in given.items() for word in (f"--{name}", value)]
    said = ask(folder, "-o", str(tmp_path / "answers.csv"), *options)
    posterior, found = rd.load_posterior(folder / "imputed.csv.draws"), pd.read_csv(tmp_path / "answers.csv")
    total, order = posterior.total_count(**given), [posterior.observed.ids.index(name) for name in found["stream"]]
    np.testing.assert_array_equal(found[["low", "high"]], posterior.count_interval(**given)[order])
    assert said.split("all streams")[1].split("│")[3].strip() == f"{total.low} to {total.high}"
    assert total.low < total.expected < total.high


@pytest.mark.parametrize("command", ["decode", "report", "ask"])
def test_the_table_was_given_for_its_draws(folder, tmp_path, command):
    with pytest.raises(rd.DataError, match=r"did you mean .*imputed\.csv\.draws\?"):
        run(command, str(folder / "imputed.csv"), "-o", str(tmp_path / ("x.html" if command == "report" else "x.csv")))
