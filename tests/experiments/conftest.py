"""All experiments at a size that takes seconds, run once."""

from __future__ import annotations

from dataclasses import replace

import pytest

from experiments.plan import data_tasks, known, measure_tasks, model_tasks, smoother_tasks, timing_tasks
from experiments.pool import run_tasks
from experiments.sizes import QUICK
from experiments.store import Run

_SMALL = {"streams": (20, 4, 12), "imputed": 12, "hidden": 4, "epochs": (1, 1, 1)}
TINY = replace(
    QUICK,
    name="tiny",
    kinds={
        "flights": replace(QUICK.kinds["flights"], particles=(6, 12), rhos=(0.5, 0.9), **_SMALL),
        "synthetic": replace(QUICK.kinds["synthetic"], particles=(6,), **_SMALL),
    },
    synthetic_sets=2,
    chunk=60,
    evidence_particles=20,
    timed_on="flights",
    timed_particles=(5, 6),
)


def silent(_: str) -> None:
    """Progress that goes nowhere."""


def all_tasks(run: Run) -> list:
    """Every task of a run, on the CPU."""
    datasets = known(run)
    tasks = list(data_tasks(run, datasets))
    for make in (model_tasks, smoother_tasks, measure_tasks, timing_tasks):
        tasks += make(run, datasets, "cpu")
    return tasks


@pytest.fixture(scope="session")
def finished(tmp_path_factory):
    """A folder in which all experiments have run."""
    run = Run(tmp_path_factory.mktemp("tiny"), TINY)
    run.claim()
    said: list[str] = []
    outcome = run_tasks(run, all_tasks(run), workers=1, say=said.append)
    assert not outcome.is_incomplete, "\n".join(said)
    return run
