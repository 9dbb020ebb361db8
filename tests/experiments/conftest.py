"""All experiments at a size that takes seconds, run once."""

from __future__ import annotations

from dataclasses import replace

import pytest

from retrodict.experiments.place import Place
from retrodict.experiments.plan import EXPERIMENTS, all_jobs
from retrodict.experiments.pool import run_jobs
from retrodict.experiments.scale import QUICK

TINY = replace(
    QUICK,
    name="tiny",
    kinds=("flights", "synthetic"),
    synthetic_sets=1,
    sizes={"synthetic": (20, 4, 12), "flights": (20, 4, 12)},
    hidden={"synthetic": 4, "flights": 4},
    particles={"synthetic": (6,), "flights": (6, 12)},
    epochs_p={"flights": 1},
    epochs_q={"synthetic": 1, "flights": 1},
    epochs_ours={"synthetic": 1, "flights": 1},
    more_streams=20,
    rhos=(0.5, 0.9),
    chunk=60,
    evidence_particles=20,
    runtime_kind="flights",
    runtime_particles=(5, 10),
    runtime_shares=(0.5, 1.0),
    integral_streams=5,
    reference_particles=20,
)


def silent(*_: object) -> None:
    """A report that goes nowhere."""


@pytest.fixture(scope="session")
def finished(tmp_path_factory):
    """A folder in which all experiments have run."""
    place = Place(tmp_path_factory.mktemp("tiny"), TINY)
    place.claim()
    jobs = all_jobs(EXPERIMENTS, TINY, {})
    outcome = run_jobs(jobs, place, workers=1, device="cpu", report=silent)
    assert not outcome.failed, next(iter(outcome.failed.values()))
    return place, jobs, outcome
