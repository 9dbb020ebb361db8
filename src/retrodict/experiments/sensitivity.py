"""The same comparison at other missing rates (section 5.5)."""

from __future__ import annotations

from retrodict.experiments.decoding import impute_jobs
from retrodict.experiments.jobs import Job
from retrodict.experiments.scale import Scale, kind_of, setting_of


def jobs(scale: Scale) -> list[Job]:
    """Smoothing, filtering and the constant rate at every missing rate; those at 0.5 are also in ``decoding``."""
    return [
        job
        for dataset in scale.datasets
        if kind_of(dataset) in scale.sensitivity_kinds
        for rho in scale.rhos
        for method in ("smoothing", "filtering", "constant-rate")
        for job in impute_jobs(scale, dataset, setting_of(rho), method, scale.particles[kind_of(dataset)][0])
    ]
