"""Tasks: done once, in the order of their needs, the same by any number of workers, safe to interrupt."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from dataclasses import replace

import pytest

from experiments.__main__ import main
from experiments.plan import Task, data_tasks, known, measure_tasks, smoother_tasks
from experiments.pool import run_tasks
from experiments.sizes import FULL, QUICK, RHOS, SETTINGS
from experiments.store import ROOT, Run, plain, read_json, record_of, write_json
from experiments.training import OUT_OF_TIME, fit_smoother
from retrodict.errors import DataError
from tests.experiments.conftest import TINY, all_tasks, silent


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
            write_json(task.target, {**record, "of": task.versions()})
            if limit:
                assert (record["epochs"], record["ended"]) == (1, OUT_OF_TIME)
                write_json(later.target, {"of": later.versions()})
                assert later.is_done()
        assert task.is_done()
        assert not later.is_done()
        records.append(record)
    assert records[0]["epochs"] == records[1]["epochs"] == 3
    assert records[0]["dev_log_q"] == records[1]["dev_log_q"]
    assert records[1]["train_seconds"] > 0


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
