"""Jobs: done once, in the order of their needs, the same by any number of workers, safe to interrupt."""

from __future__ import annotations

from dataclasses import replace

import pytest

from retrodict.errors import DataError
from retrodict.experiments.jobs import STAGES, Job
from retrodict.experiments.place import Place, plain, read_json, write_json
from retrodict.experiments.plan import EXPERIMENTS, all_jobs, only, until
from retrodict.experiments.pool import run_jobs
from retrodict.experiments.scale import FULL, QUICK, SETTINGS
from retrodict.experiments.training import train_smoother
from tests.experiments.conftest import TINY, silent

LOST = Job("data/lost", "data", "data:prepare", {"dataset": "elevator-of-nowhere"})


def without_times(place, name):
    """What a job found, less what differs from run to run."""
    result = read_json(place.job_file(name))["result"]
    return {key: value for key, value in result.items() if "seconds" not in key}


def some_jobs():
    jobs = {job.name: job for job in all_jobs(["decoding"], TINY, {})}
    wanted = ["decoding/flights.rho-0.5.constant-rate.6.0000", "decoding/synthetic-0.rho-0.5.filtering.6.0000"]
    needed = [need for name in wanted for need in jobs[name].needs]
    return [jobs[name] for name in needed + wanted]


def test_every_job_is_done_once(finished):
    place, jobs, outcome = finished
    assert sorted(outcome.done) == sorted(job.name for job in jobs)
    again = run_jobs(jobs, place, workers=1, device="cpu", report=silent)
    assert (again.done, again.failed, again.left) == ([], {}, [])


def test_only_what_is_absent_is_done_again(finished):
    place, jobs, _ = finished
    name = "decoding/flights.rho-0.5.smoothing.6.0000"
    before = without_times(place, name)
    place.job_file(name).unlink()
    again = run_jobs(jobs, place, workers=1, device="cpu", report=silent)
    assert again.done == [name]
    assert without_times(place, name) == before


def test_a_job_with_other_options_is_not_taken_for_done(finished):
    place, jobs, _ = finished
    job = next(job for job in jobs if job.name.startswith("runtime/"))
    assert job.is_done(place)
    assert not replace(job, options={**job.options, "particles": 99}).is_done(place)
    assert replace(job, extra={"seconds": 5}).is_done(place)


def test_two_workers_find_what_one_finds_and_time_that_is_up_loses_nothing(finished, tmp_path):
    here, jobs = Place(tmp_path, TINY), some_jobs()
    outcome = run_jobs(jobs, here, workers=2, device="cpu", seconds=0.0, report=silent)
    assert not outcome.done
    assert sorted(outcome.left) == sorted(job.name for job in jobs)
    outcome = run_jobs([*jobs, LOST], here, workers=2, device="cpu", report=silent)
    assert sorted(outcome.done) == sorted(job.name for job in jobs)
    assert list(outcome.failed) == ["data/lost"]
    for job in jobs:
        assert without_times(here, job.name) == without_times(finished[0], job.name)


@pytest.mark.parametrize("workers", [1, 2])
def test_what_needs_a_failed_job_is_left(workers, tmp_path):
    follower = Job("data/later", "data", "data:prepare", {"dataset": "synthetic-0"}, needs=("data/lost",))
    apart = Job("data/synthetic-0", "data", "data:prepare", {"dataset": "synthetic-0"}, alone=True)
    outcome = run_jobs([apart, LOST, follower], Place(tmp_path, TINY), workers=workers, device="cpu", report=silent)
    assert "KeyError" in outcome.failed["data/lost"]
    assert outcome.left == ["data/later"]
    assert outcome.done == ["data/synthetic-0"]
    assert [path.name for path in tmp_path.glob("jobs/*/*")] == ["synthetic-0.json"]


def test_a_smoother_whose_time_was_up_ends_as_one_that_had_time(finished, tmp_path):
    scale = replace(TINY, epochs_ours={"synthetic": 3})
    found = []
    for folder, limits in (("whole", [None]), ("parts", [1e-3, None])):
        place = Place(tmp_path / folder, scale)
        run_jobs(all_jobs(["log-q"], TINY, {})[:2], place, workers=1, device="cpu", report=silent)
        records = [train_smoother(place, "cpu", "synthetic-0", "rho-0.5", "ours", seconds=s) for s in limits]
        found.append(records[-1])
        if len(limits) > 1:
            assert (records[0]["epochs"], records[0]["ended"]) == (1, "time was up")
    assert found[0]["epochs"] == found[1]["epochs"] == 3
    assert found[0]["dev_log_q"] == found[1]["dev_log_q"]


def test_a_folder_that_does_not_know_a_size_is_refused(tmp_path):
    write_json(tmp_path / "run.json", {k: v for k, v in TINY.to_dict().items() if k != "mixing"})
    with pytest.raises(DataError, match="a run with another mixing"):
        Place(tmp_path, TINY).claim()


def test_a_folder_of_another_scale_is_refused(finished):
    with pytest.raises(DataError, match="a run with another name"):
        Place(finished[0].folder, QUICK).claim()


@pytest.mark.parametrize("scale", [FULL, QUICK, TINY])
def test_all_needs_are_planned_and_come_earlier(scale):
    for names in ([name] for name in EXPERIMENTS):
        jobs = all_jobs(names, scale, {})
        place = {job.name: i for i, job in enumerate(jobs)}
        assert len(place) == len(jobs)
        assert all(place[need] < place[job.name] for job in jobs for need in job.needs)
        assert [job.stage for job in until(jobs, "models")] == [j.stage for j in jobs if j.stage in STAGES[:2]]


def test_the_full_scale_is_the_papers():
    jobs = all_jobs(EXPERIMENTS, FULL, {})
    cells = {(job.options["dataset"], job.options["setting"]) for job in jobs if job.name.startswith("log-q/")}
    assert len({dataset for dataset, _ in cells}) == 13
    assert {setting for _, setting in cells} == set(SETTINGS)
    rates = {job.options["setting"] for job in jobs if job.name.startswith("smoothers/taxi")}
    assert rates == {"deterministic", *(f"rho-{rho}" for rho in (0.1, 0.3, 0.5, 0.7, 0.9))}


def test_only_some_data_sets():
    jobs = only(all_jobs(EXPERIMENTS, FULL, {}), ["taxi", "synthetic-3"])
    assert {job.options["dataset"] for job in jobs} == {"taxi", "synthetic-3"}


def test_numbers_survive_the_file(tmp_path):
    value = {"a": [1, 0.1234567891, float("nan")], "b": {"c": None, "d": "ρ"}, "e": {}}
    write_json(tmp_path / "x.json", value)
    assert (
        read_json(tmp_path / "x.json")
        == plain(value)
        == {"a": [1, 0.123457, None], "b": {"c": None, "d": "ρ"}, "e": {}}
    )
