"""One small run of all experiments: tasks that are done once and safe to interrupt, numbers, figures and the page."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from dataclasses import replace

import numpy as np
import pytest

import retrodict as rd
from experiments.__main__ import main
from experiments.baselines import nothing
from experiments.collect import collect
from experiments.data import test_pair as pair_of
from experiments.findings import MOST_PROBABLE, NOTHING, Findings
from experiments.log_q import log_probs
from experiments.plan import Task, data_tasks, known, measure_tasks, smoother_tasks
from experiments.pool import run_tasks
from experiments.shortfalls import places, shortfalls
from experiments.sizes import FULL, QUICK, RHOS, SETTINGS
from experiments.store import ROOT, Run, plain, read_json, record_of, write_json
from experiments.summary import summarise
from experiments.training import OUT_OF_TIME, fit_smoother
from retrodict.errors import DataError
from retrodict.evaluate import transport_score
from tests.experiments.conftest import TINY, all_tasks, silent

COSTS = TINY.kinds["flights"].costs


def found(path):
    """What a task found, less what differs from run to run."""
    return {key: value for key, value in read_json(path).items() if key not in ("seconds", "machine")}


def test_what_is_done_is_not_done_again_and_what_is_absent_is(finished):
    said = []
    tasks = all_tasks(finished)
    assert not run_tasks(finished, tasks, workers=1, say=said.append).is_incomplete
    assert said == []
    lost = next(task for task in tasks if "flights.rho-0.5.smoothing.6" in task.target.name)
    before = found(lost.target)
    lost.target.unlink()
    assert not run_tasks(finished, tasks, workers=1, say=said.append).is_incomplete
    assert len(said) == 1
    assert found(lost.target) == before


def test_two_workers_find_what_one_finds_and_time_that_is_up_loses_nothing(finished, tmp_path):
    run = Run(tmp_path, TINY)
    tasks = list(data_tasks(run, known(run)))
    tasks += [t for t in measure_tasks(run, known(run), "cpu") if "synthetic-0.rho-0.5.filtering.6" in t.target.name]
    outcome = run_tasks(run, tasks, workers=2, until=time.time(), say=silent)
    assert len(outcome.left) == len(tasks)
    assert not run_tasks(run, tasks, workers=2, say=silent).is_incomplete
    for task in tasks:
        assert found(task.target) == found(finished.folder / task.target.relative_to(run.folder))


def fail(run):
    """A task that cannot be done."""
    raise ValueError("no")


def test_a_task_that_fails_is_said_and_what_needs_it_is_left(tmp_path):
    run, said = Run(tmp_path, TINY), []
    bad = Task(tmp_path / "a" / "b" / "bad.json", fail, {})
    later = Task(tmp_path / "a" / "b" / "later.json", fail, {}, (bad.target,))
    outcome = run_tasks(run, [bad, later], workers=1, say=said.append)
    assert outcome == (["a/b/bad"], ["a/b/later"])
    assert "ValueError: no" in said[0]
    assert not bad.target.exists()


def test_a_smoother_whose_time_was_up_goes_on_and_its_measurements_are_made_again(finished, tmp_path):
    kinds = {"synthetic": replace(TINY.kinds["synthetic"], epochs=(1, 3, 1))}
    records = []
    for folder, limits in (("whole", [None]), ("parts", [1e-3, None])):
        run = Run(tmp_path / folder, replace(TINY, kinds=kinds))
        run_tasks(run, data_tasks(run, ["synthetic-0"]), workers=1, say=silent)
        task = next(t for t in smoother_tasks(run, ["synthetic-0"], "cpu") if t.target.name == "ours-rho-0.5.json")
        later = Task(run.result("later"), fail, {}, (task.target,))
        for limit in limits:
            record = fit_smoother(run, **task.arguments, seconds=limit)
            if limit:
                assert (record["epochs"], record["ended"]) == (1, OUT_OF_TIME)
                record["train_seconds"] += 5.0  # as if it had been slow
            write_json(task.target, {**record, "of": task.versions()})
            if limit:
                write_json(later.target, {"of": later.versions()})
                assert later.is_done()
        assert task.is_done()
        assert not later.is_done()
        records.append(record)
    assert records[0]["epochs"] == records[1]["epochs"] == 3
    assert records[0]["dev_log_q"] == records[1]["dev_log_q"]
    assert records[1]["train_seconds"] >= 5.0


def test_a_folder_of_another_run_is_refused(finished, tmp_path):
    with pytest.raises(DataError, match="a run of scale tiny, not quick"):
        Run(finished.folder, QUICK).claim()
    write_json(tmp_path / "run.json", {"scale": "tiny", "commit": "0123456789", "date": ""})
    if (ROOT / ".git").exists():
        with pytest.raises(DataError, match="a run of commit 0123456789"):
            Run(tmp_path, TINY).claim()


@pytest.mark.parametrize("scale", [FULL, QUICK, TINY])
def test_each_file_is_one_tasks_and_all_needs_are_made_earlier(scale, tmp_path):
    made = set()
    for task in all_tasks(Run(tmp_path, scale)):
        assert task.target not in made
        assert set(task.needs) <= made
        made.add(task.target)


def test_the_full_scale_is_the_papers(tmp_path, monkeypatch):
    monkeypatch.setenv("TAXI", str(tmp_path))
    run = Run(tmp_path, FULL)
    datasets = known(run)
    assert len(datasets) == 13
    targets = {task.target for task in all_tasks(run)}
    for dataset in datasets:
        assert all(run.result(f"log-q/{dataset}.{setting}") in targets for setting in SETTINGS)
    for dataset in ("elevator", "taxi", "flights"):
        assert all(record_of(run.model(dataset, f"ours-rho-{rho}")) in targets for rho in RHOS)
    assert known(run, ["taxi", "synthetic-3"]) == ["taxi", "synthetic-3"]


def test_without_its_streams_taxi_is_left_out(tmp_path, monkeypatch):
    monkeypatch.setattr("experiments.data.ROOT", tmp_path)
    monkeypatch.delenv("TAXI", raising=False)
    assert "taxi" not in known(Run(tmp_path, FULL))


def test_the_command_refuses_what_it_does_not_know(tmp_path, capsys):
    assert main(["data", "--quick", "--folder", str(tmp_path / "x"), "--only", "bus"]) == 2
    assert "no data set bus" in capsys.readouterr().out
    assert main(["data", "--folder", str(tmp_path / "x")]) == 2
    assert "a run of scale quick" in capsys.readouterr().err


def test_an_interrupt_leaves_whole_files_and_says_how_to_go_on(tmp_path):
    command = [sys.executable, "-m", "experiments", "all", "--quick", "--folder", str(tmp_path), "--workers", "1"]
    # Whoever runs the tests in the background may ignore interrupts: the command must not inherit that.
    heed = lambda: signal.signal(signal.SIGINT, signal.SIG_DFL)  # noqa: E731
    process = subprocess.Popen(
        command, cwd=ROOT, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, preexec_fn=heed
    )
    until = time.monotonic() + 60
    while not list(tmp_path.glob("data/*.json")) and time.monotonic() < until:
        time.sleep(0.1)
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=60)
    assert process.returncode == 130
    assert "repeat the command to go on" in errors
    files = list(tmp_path.glob("data/*.json"))
    assert files
    assert all(json.loads(file.read_text(encoding="utf-8"))["streams"] for file in files)


def test_numbers_survive_the_file(tmp_path):
    value = {"a": [1, 0.1234567891, float("nan")], "b": {"c": None, "d": "ρ"}, "e": {}}
    write_json(tmp_path / "x.json", value)
    assert (
        read_json(tmp_path / "x.json")
        == plain(value)
        == {"a": [1, 0.123457, None], "b": {"c": None, "d": "ρ"}, "e": {}}
    )


@pytest.fixture(scope="module")
def findings(finished):
    return Findings(finished)


def test_chunks_are_put_together_in_order(findings):
    _, missing = pair_of(findings.run, "flights", "rho-0.5")
    decoded = findings.decoded("flights", "rho-0.5", "smoothing", 12)
    assert len(findings.parts("flights", "rho-0.5", "smoothing", 12)) == 3  # of five streams at most
    assert decoded.missing.tolist() == missing.lengths.tolist()


def test_a_chunk_that_is_absent_leaves_no_number(finished):
    file = finished.result("impute/flights.rho-0.5.smoothing.12.0005")
    content = file.read_bytes()
    file.unlink()
    try:
        partial = Findings(finished)
        assert partial.decoded("flights", "rho-0.5", "smoothing", 12) is None
        assert partial.decoded("flights", "rho-0.5", MOST_PROBABLE, 12) is None
        assert partial.decoded("flights", "rho-0.5", "smoothing", 6) is not None
    finally:
        file.write_bytes(content)


def test_predicting_nothing_costs_an_insertion_for_each_missing_event(findings):
    _, missing = pair_of(findings.run, "flights", "deterministic")
    decoded = findings.decoded("flights", "deterministic", NOTHING, 6)
    for cost, distance in zip(COSTS, decoded.distance, strict=True):
        np.testing.assert_allclose(distance, transport_score(missing, nothing(missing), cost).distance_by_stream)


def test_distances_and_log_q_are_those_of_the_package(findings):
    run, cell = findings.run, ("flights", "rho-0.5")
    observed, missing = pair_of(run, *cell)
    smoother = rd.load_proposal(run.model("flights", "ours-rho-0.5"))
    posterior = rd.impute(observed[:10], smoother, particles=6)  # a chunk: its streams choose the ensemble together
    expected = [transport_score(missing[:10], posterior.consensus(cost), cost).distance_by_stream for cost in COSTS]
    np.testing.assert_allclose(findings.decoded(*cell, "smoothing", 6).distance[:, :10], expected, rtol=1e-4)
    log_q = findings.result("log-q/flights.rho-0.5")["smoothing"]
    np.testing.assert_allclose(log_q, log_probs(smoother, observed, missing), rtol=1e-4, atol=1e-4)


def test_every_baseline_is_in_every_table(findings):
    table = summarise(findings)["decoding"]
    for dataset in (*TINY.datasets, "synthetic"):
        for setting in SETTINGS:
            words = " ".join(table[dataset][setting]["methods"])
            for label in ("predict nothing", "constant rate", "most probable", "configuration, smoothing"):
                assert label in words
    assert "median time" in " ".join(table["flights"]["deterministic"]["methods"])


def test_synthetic_sets_together_are_the_mean_of_each(findings):
    table = summarise(findings)["decoding"]
    each = [table[f"synthetic-{i}"]["rho-0.5"]["methods"]["filtering, M = 6"] for i in (0, 1)]
    np.testing.assert_allclose(table["synthetic"]["rho-0.5"]["methods"]["filtering, M = 6"], np.mean(each, 0))


def test_more_quadrature_points_are_more_accurate_than_random_ones(findings):
    errors = {name: row["log_weight_rms"] for name, row in findings.result("integrals/flights")["rules"].items()}
    assert errors["quadrature 8"] < errors["quadrature 2"] < errors["Monte Carlo 1"]
    assert errors["quadrature 8"] < errors["Monte Carlo 20"] < errors["Monte Carlo 1"]


def test_figures_and_the_page(finished):
    written = collect(finished)
    figures = {path.stem for path in written if path.suffix == ".png"}
    assert figures == {f"results-{name}" for name in ("log-q", "distance", "baselines", "sensitivity")}
    assert all(path.read_bytes().startswith(b"\x89PNG") for path in written if path.suffix == ".png")
    page = (finished.folder / "results.md").read_text(encoding="utf-8")
    assert "Not measured" not in page
    assert "this is a tiny run" in page.lower()
    assert len(page.splitlines()) < 250
    for line in page.splitlines():
        if line.startswith("!["):
            assert (finished.folder / line.rsplit("(", 1)[1].rstrip(")")).exists()
    summary = read_json(finished.folder / "summary.json")
    distance = summary["decoding"]["flights"]["rho-0.5"]["methods"]["smoothing, M = 12"][3]
    assert f"{distance:.4g}" in page


def test_a_page_of_nothing_says_so(tmp_path):
    assert [path.name for path in collect(Run(tmp_path, TINY))] == ["summary.json", "results.md"]
    page = (tmp_path / "results.md").read_text(encoding="utf-8")
    assert "Not measured, log q: NYC Flights (deterministic; ρ = 0.5), Synthetic (deterministic; ρ = 0.5)." in page
    assert "Not measured, distances: NYC Flights (deterministic; ρ = 0.5; ρ = 0.9)" in page


def test_what_fell_short_is_said():
    log_q = {"synthetic": {"rho-0.5": {"smoothing_higher": 0.7, "exact_higher": 0.72}}}
    methods = {"predict nothing": [2.0, 2.5], "filtering, M = 6": [0.0, 0.0], "smoothing, M = 6": [1.0, 3.0]}
    bad = {"costs": [0.1, 0.5], "methods": methods, "tests": {"6": {"dominates": False, "p": 0.2}}}
    good = {"costs": [0.1, 0.5], "methods": methods, "tests": {"6": {"dominates": True, "p": 0.001}}}
    decoding = {f"synthetic-{i}": {"deterministic": good, "rho-0.5": bad} for i in range(3)}
    decoding |= {"synthetic": {"deterministic": good, "rho-0.5": good}, "taxi": {"deterministic": None, "rho-0.5": bad}}
    cut = {"ended": "time was up", "epochs": 10, "best_epoch": 10}
    smoothers = {"taxi": {"ours-rho-0.5": cut, "ours-deterministic": {**cut, "best_epoch": 5}, "paper-rho-0.5": cut}}
    ess = {"taxi": {"rho-0.5": {"smoothing unresampled": 0.1, "filtering unresampled": 0.2}}}
    text = shortfalls({"smoothers": smoothers, "log_q": log_q, "decoding": decoding, "ess": ess})
    assert "Not measured, distances: NYC Taxi (deterministic)." in text
    assert "Smoothers whose training ran out of time while dev still improved: NYC Taxi (1 of 2)." in text
    assert any("95% of the streams: Synthetic (ρ = 0.5: 70.0%, the exact posterior 72.0%)." in line for line in text)
    assert any("is no larger than filtering's: NYC Taxi (ρ = 0.5)." in line for line in text)
    alone = "Synthetic (3 of 3 sets alone, ρ = 0.5)."
    assert any(f"left of filtering's: NYC Taxi (ρ = 0.5, M = 6), {alone}" in line for line in text)
    assert any(f"p < 0.01: NYC Taxi (ρ = 0.5, M = 6: p = 0.2), {alone}" in line for line in text)
    assert any("NYC Taxi (ρ = 0.5 at 0.5: predict nothing)" in line for line in text)


def test_data_sets_are_named_in_few_words():
    assert places([("taxi", "a"), ("flights", "b"), ("taxi", "c")]) == "NYC Taxi (a; c), NYC Flights (b)"
