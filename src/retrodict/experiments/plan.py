"""The jobs that everything else needs: streams, models, smoothers; and how experiments are put together."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from importlib import import_module

from retrodict.errors import DataError
from retrodict.experiments.jobs import STAGES, Job
from retrodict.experiments.scale import AVERSE, LOOKAHEAD, SETTINGS, WAYS, Scale, kind_of

# Each is a file with a function ``jobs(scale)``; the sentence says what it shows.
EXPERIMENTS: Mapping[str, str] = {
    "log-q": "how probable the truth is under smoothing and under filtering: one cloud a data set",
    "decoding": "optimal transport distance of smoothing, filtering, the baselines and the paper's configuration",
    "sensitivity": "the same at missing rates 0.1, 0.3, 0.5, 0.7 and 0.9",
    "ess": "effective sample sizes with and without resampling",
    "runtime": "time per event against the number of particles and the length of streams",
    "integrals": "how many points an integral needs",
}


def data_job(dataset: str) -> str:
    """The name of the job that makes a data set."""
    return f"data/{dataset}"


def model_job(dataset: str) -> str:
    """The name of the job after which p is there: of synthetic sets it comes with the data."""
    return data_job(dataset) if kind_of(dataset) == "synthetic" else f"models/{dataset}"


def smoother_job(dataset: str, setting: str, way: str) -> str:
    """The name of the job that trains q."""
    return f"smoothers/{dataset}.{setting}.{way}"


def all_jobs(names: Iterable[str], scale: Scale, sources: Mapping[str, str], seconds: float | None = None) -> list[Job]:
    """The jobs of some experiments and all that these need, in the order of stages; each once."""
    measures: dict[str, Job] = {}
    for name in names:
        if name not in EXPERIMENTS:
            raise DataError(f"there is no experiment {name!r}", remedy=f"use one of {', '.join(EXPERIMENTS)}")
        module = import_module(f"retrodict.experiments.{name.replace('-', '_')}")
        measures |= {job.name: job for job in module.jobs(scale)}
    base = {job.name: job for job in _base_jobs(scale, sources, seconds)}
    wanted = dict.fromkeys(need for job in measures.values() for need in job.needs)
    frontier = list(wanted)
    while frontier:
        more = [need for name in frontier for need in base[name].needs if need not in wanted]
        wanted |= dict.fromkeys(more)
        frontier = more
    chosen = [job for name, job in base.items() if name in wanted] + list(measures.values())
    return sorted(chosen, key=lambda job: STAGES.index(job.stage))


def only(jobs: Sequence[Job], names: Sequence[str]) -> list[Job]:
    """The jobs of some data sets, given by name or kind."""
    known = {job.options["dataset"] for job in jobs}
    for name in names:
        if name not in known and name not in map(kind_of, known):
            raise DataError(f"there is no data set {name!r} in this", remedy=f"use one of {', '.join(sorted(known))}")
    return [job for job in jobs if job.options["dataset"] in names or kind_of(job.options["dataset"]) in names]


def until(jobs: Sequence[Job], stage: str | None) -> list[Job]:
    """The jobs up to a stage."""
    if stage is None:
        return list(jobs)
    if stage not in STAGES:
        raise DataError(f"there is no stage {stage!r}", remedy=f"use one of {', '.join(STAGES)}")
    return [job for job in jobs if STAGES.index(job.stage) <= STAGES.index(stage)]


def _base_jobs(scale: Scale, sources: Mapping[str, str], seconds: float | None) -> Iterable[Job]:
    extra = {} if seconds is None else {"seconds": seconds}
    for dataset in scale.datasets:
        kind = kind_of(dataset)
        source = {"source": sources[kind]} if kind in sources else {}
        yield Job(data_job(dataset), "data", "data:prepare", {"dataset": dataset}, on_cpu=True, extra=source)
        if kind != "synthetic":
            options = {"dataset": dataset}
            yield Job(model_job(dataset), "models", "training:train_model", options, (data_job(dataset),), extra=extra)
    # Ours first, since without them nothing can be measured; then those that are compared with them.
    for way in (*WAYS, LOOKAHEAD, AVERSE):
        for dataset in scale.datasets:
            if way not in scale.ways(dataset):
                continue
            for setting in scale.settings(dataset) if way == "ours" else SETTINGS:
                first = (smoother_job(dataset, setting, LOOKAHEAD),) if way == AVERSE else ()
                yield Job(
                    smoother_job(dataset, setting, way),
                    "smoothers",
                    "training:train_smoother",
                    {"dataset": dataset, "setting": setting, "way": way},
                    (model_job(dataset), *first),
                    extra=extra,
                )
