"""The tasks of a run, each of which leaves one JSON file; the longest come first."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

from experiments import imputing, integrals, log_q, runtime
from experiments.data import prepare, source_of
from experiments.imputing import METHODS
from experiments.sizes import DETERMINISTIC, SETTINGS, STOCHASTIC, kind_of
from experiments.store import Run, read_json, record_of
from experiments.training import OUT_OF_TIME, fit_model, fit_smoother

MEDIAN_RULE = ("taxi", "flights")  # where one type of event follows another


class Task(NamedTuple):
    """Calls ``function`` with the run and ``arguments`` once the files it ``needs`` are there; leaves ``target``.

    A ``limited`` one also takes ``seconds``, after which it ends by itself.
    """

    target: Path
    function: Callable[..., dict[str, Any] | None]
    arguments: dict[str, Any]
    needs: tuple[Path, ...] = ()
    limited: bool = False

    @property
    def name(self) -> str:
        """As progress shows it."""
        return "/".join(self.target.with_suffix("").parts[-3:])

    def is_done(self) -> bool:
        """Whether the result is there and of models as they are now; a fit that ran out of time goes on."""
        if not self.target.exists():
            return False
        found = read_json(self.target)
        return found.get("ended") != OUT_OF_TIME and found["of"] == self.versions()

    def versions(self) -> list[int | None]:
        """The epochs of each model among what it needs."""
        return [read_json(path).get("epochs") if path.exists() else None for path in self.needs]

    def is_ready(self) -> bool:
        """Whether all it needs is there."""
        return all(path.exists() for path in self.needs)


def known(run: Run, only: list[str] | None = None) -> list[str]:
    """The data sets of a run, without taxi where its streams are not at hand; ``only`` some, by name or kind."""
    there = [d for d in run.scale.datasets if d != "taxi" or source_of("taxi") or record_of(run.data("taxi")).exists()]
    return there if only is None else [d for d in there if d in only or kind_of(d) in only]


def data_tasks(run: Run, datasets: list[str]) -> Iterator[Task]:
    """Make the streams."""
    for dataset in datasets:
        yield Task(record_of(run.data(dataset)), prepare, {"dataset": dataset})


def model_tasks(run: Run, datasets: list[str], device: str) -> Iterator[Task]:
    """Train p; of synthetic sets it comes with the data."""
    for dataset in datasets:
        if kind_of(dataset) != "synthetic":
            target = record_of(run.model(dataset))
            arguments = {"dataset": dataset, "device": device}
            yield Task(target, fit_model, arguments, (record_of(run.data(dataset)),), limited=True)


def smoother_tasks(run: Run, datasets: list[str], device: str) -> Iterator[Task]:
    """Train q: the paper's smoothers of synthetic sets are quick and wait for no model, so they come first."""
    synthetic = [d for d in datasets if kind_of(d) == "synthetic"]
    real = [d for d in datasets if kind_of(d) != "synthetic"]
    cases = [(d, "paper", setting) for d in synthetic for setting in SETTINGS]
    cases += [(d, form, setting) for form in ("ours", "paper") for d in real for setting in SETTINGS]
    cases += [(d, "ours", setting) for setting in SETTINGS for d in synthetic]
    cases += [(d, "ours", setting) for d in real for setting in run.kind(d).other_settings]
    for dataset, form, setting in cases:
        target = record_of(run.model(dataset, f"{form}-{setting}"))
        arguments = {"dataset": dataset, "setting": setting, "form": form, "device": device}
        yield Task(target, fit_smoother, arguments, (_model_of(run, dataset),), limited=True)


def measure_tasks(run: Run, datasets: list[str], device: str) -> Iterator[Task]:
    """Everything that is measured, but for time."""
    for dataset in datasets:
        if run.kind(dataset).integrals:
            arguments = {"dataset": dataset, "device": device}
            needs = _needs(run, dataset, STOCHASTIC, "ours")
            yield Task(run.result(f"integrals/{dataset}"), integrals.measure, arguments, needs)
        if kind_of(dataset) in MEDIAN_RULE:
            target = result_of(run, dataset, DETERMINISTIC, "median-rule", 0, 0)
            yield Task(target, imputing.median_rule, {"dataset": dataset}, (record_of(run.data(dataset)),))
    for dataset, setting, method, particles in comparisons(run, datasets):
        same = {"dataset": dataset, "setting": setting, "method": method, "particles": particles, "device": device}
        needs = _needs(run, dataset, setting, METHODS[method].proposal)
        for first, stop in chunks(run, dataset, particles):
            target = result_of(run, dataset, setting, method, particles, first)
            yield Task(target, imputing.impute, {**same, "first": first, "stop": stop}, needs)
    for dataset in datasets:
        for setting in SETTINGS:
            arguments = {"dataset": dataset, "setting": setting, "device": device}
            needs = _needs(run, dataset, setting, "ours", "paper")
            yield Task(run.result(f"log-q/{dataset}.{setting}"), log_q.measure, arguments, needs)


def comparisons(run: Run, datasets: list[str]) -> list[tuple[str, str, str, int]]:
    """Data set, setting, method and M: every method, then other missing rates and more particles of two of them."""
    kinds, two = [(d, run.kind(d)) for d in datasets], ("smoothing", "filtering")
    return [
        *((d, s, method, kind.particles[0]) for d, kind in kinds for s in SETTINGS for method in METHODS),
        *((d, s, method, kind.particles[0]) for d, kind in kinds for s in kind.other_settings for method in two),
        *((d, s, method, M) for d, kind in kinds for s in SETTINGS for M in kind.particles[1:] for method in two),
    ]


def timing_tasks(run: Run, datasets: list[str], device: str) -> Iterator[Task]:
    """What must run alone."""
    dataset = run.scale.timed_on
    if dataset in datasets:
        needs = _needs(run, dataset, STOCHASTIC, "ours")
        yield Task(run.result("runtime"), runtime.measure, {"device": device}, needs)


def result_of(run: Run, dataset: str, setting: str, method: str, particles: int, first: int) -> Path:
    """The file of some imputed streams."""
    return run.result(f"impute/{dataset}.{setting}.{method}.{particles}.{first:04d}")


def chunks(run: Run, dataset: str, particles: int) -> list[tuple[int, int]]:
    """The first and last test stream of each task that imputes."""
    kind = run.kind(dataset)
    step = max(1, run.scale.chunk // particles)
    return [(first, min(first + step, kind.imputed)) for first in range(0, kind.imputed, step)]


def _model_of(run: Run, dataset: str) -> Path:
    return record_of(run.data(dataset) if kind_of(dataset) == "synthetic" else run.model(dataset))


def _needs(run: Run, dataset: str, setting: str, *proposals: str) -> tuple[Path, ...]:
    """The records of a data set, its model, and the smoothers among the proposals."""
    smoothers = [record_of(run.model(dataset, f"{name}-{setting}")) for name in proposals if name in ("ours", "paper")]
    return (record_of(run.data(dataset)), _model_of(run, dataset), *smoothers)
