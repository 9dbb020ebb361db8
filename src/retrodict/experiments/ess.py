"""Effective sample sizes without resampling; those with it come from ``decoding`` (section 5.4, footnote)."""

from __future__ import annotations

from typing import Any

from retrodict.experiments.data import test_pair
from retrodict.experiments.decoding import diagnosed, impute_jobs
from retrodict.experiments.jobs import Job
from retrodict.experiments.methods import METHODS
from retrodict.experiments.place import Place
from retrodict.experiments.plan import model_job, smoother_job
from retrodict.experiments.scale import SETTINGS, Scale, kind_of
from retrodict.smc.impute import impute

COMPARED = ("filtering", "data-smoothing", "smoothing")


def jobs(scale: Scale) -> list[Job]:
    """The proposals on every data set in both settings, and the runs with resampling that they stand beside."""
    found = []
    for dataset in scale.datasets:
        for setting in SETTINGS:
            for method in COMPARED:
                found.append(
                    Job(
                        f"ess/{dataset}.{setting}.{method}",
                        "measure",
                        "ess:measure",
                        {"dataset": dataset, "setting": setting, "method": f"{method}-no-resampling"},
                        (model_job(dataset), smoother_job(dataset, setting, METHODS[method].way)),
                    )
                )
                particles = scale.particles[kind_of(dataset)][0]
                found += impute_jobs(scale, dataset, setting, method, particles)
    return found


def measure(place: Place, device: str, dataset: str, setting: str, method: str) -> dict[str, Any]:
    """Impute without resampling: effective sample sizes and evidence by stream."""
    observed, _ = test_pair(place, dataset, setting)
    chosen, kind = METHODS[method], kind_of(dataset)
    particles = place.scale.particles[kind][0]
    proposal = chosen.prepare(place, dataset, setting, device)
    found = diagnosed(impute(observed, proposal, particles, seed=place.scale.seed, **dict(chosen.options)))
    kept = ("log_evidence", "final_ess", "expected_count")
    return {"particles": particles, **{name: found[name] for name in kept}}
