"""Impute the test streams, decode at every cost, and measure the distance to the truth (section 5.4)."""

from __future__ import annotations

import time
from typing import Any

import numpy as np

from retrodict.decode import most_probable
from retrodict.evaluate import TransportScore, transport_score
from retrodict.events.stream_set import StreamSet
from retrodict.experiments.baselines import best_rules, median_rules
from retrodict.experiments.data import TEST_MASK, mechanism, test_pair
from retrodict.experiments.jobs import Job
from retrodict.experiments.methods import METHODS
from retrodict.experiments.place import Place
from retrodict.experiments.plan import data_job, model_job, smoother_job
from retrodict.experiments.scale import DETERMINISTIC, SETTINGS, Scale, costs_of, kind_of
from retrodict.smc.impute import impute
from retrodict.smc.posterior import Posterior


def jobs(scale: Scale) -> list[Job]:
    """Every method on every data set in both settings; the median rule where one type follows another."""
    found = [
        job
        for dataset in scale.datasets
        for setting in SETTINGS
        for method, particles in compared(scale, dataset)
        for job in impute_jobs(scale, dataset, setting, method, particles)
    ]
    rules = [
        Job(
            f"decoding/{dataset}.{DETERMINISTIC}.median-rule",
            "measure",
            "decoding:median_rule",
            {"dataset": dataset},
            (data_job(dataset),),
            on_cpu=True,
        )
        for dataset in scale.datasets
        if kind_of(dataset) in ("taxi", "flights")
    ]
    return found + rules


def compared(scale: Scale, dataset: str) -> list[tuple[str, int]]:
    """Methods and their numbers of particles, those that take longest first."""
    counts = scale.particles[kind_of(dataset)]
    ours = [(method, M) for M in sorted(counts, reverse=True) for method in ("smoothing", "filtering")]
    others = ("paper-smoothing", "paper-filtering", "data-smoothing", "constant-rate")
    return ours + [(method, counts[0]) for method in others]


def impute_jobs(scale: Scale, dataset: str, setting: str, method: str, particles: int) -> list[Job]:
    """Jobs of ``scale.chunk`` particles each, which together do all test streams."""
    chosen = METHODS[method]
    needs = {
        "smoothing": (model_job(dataset), smoother_job(dataset, setting, chosen.way)),
        "filtering": (model_job(dataset),),
        "constant rate": (data_job(dataset),),
    }[chosen.proposal]
    sizes = scale.sizes[kind_of(dataset)]
    count = min(sizes[2] if sizes else scale.test_streams, scale.test_streams)
    step = max(1, scale.chunk // particles)
    return [
        Job(
            f"decoding/{dataset}.{setting}.{method}.{particles}.{first:04d}",
            "measure",
            "decoding:measure",
            {
                "dataset": dataset,
                "setting": setting,
                "method": method,
                "particles": particles,
                "first": first,
                "stop": min(first + step, count),
            },
            needs,
        )
        for first in range(0, count, step)
    ]


def measure(
    place: Place, device: str, dataset: str, setting: str, method: str, particles: int, first: int, stop: int
) -> dict[str, Any]:
    """Impute test streams ``first`` to ``stop`` and compare the decodes with what is missing, stream by stream."""
    observed, missing = (part[first:stop] for part in test_pair(place, dataset, setting))
    if not len(observed):
        return {"missing": []}
    chosen = METHODS[method]
    proposal, options = chosen.prepare(place, dataset, setting, device), dict(chosen.options)
    impute(observed[:2], proposal, particles, seed=place.scale.seed, **options)  # kernels compile here, off the clock
    began = time.perf_counter()
    posterior = impute(observed, proposal, particles, seed=place.scale.seed, **options)
    imputed = time.perf_counter()
    answers = [posterior.consensus(cost, method=chosen.decode) for cost in costs_of(dataset)]
    decoded = time.perf_counter()
    result = {
        "missing": missing.lengths,
        "observed": observed.lengths,
        "consensus": _parts([_score(missing, answer, dataset, i) for i, answer in enumerate(answers)]),
        "impute_seconds": imputed - began,
        "decode_seconds": decoded - imputed,
        **diagnosed(posterior),
    }
    if method == "smoothing":
        heaviest = _most_probable(posterior)
        scores = [_score(missing, heaviest, dataset, i) for i in range(len(answers))]
        result["most_probable"] = _parts(scores)
    return result


def median_rule(place: Place, device: str, dataset: str) -> dict[str, Any]:
    """The rule that puts a hidden event the median time before each seen one; its variant is chosen on dev."""
    train, dev, _ = place.splits(dataset)
    missing = mechanism(DETERMINISTIC, dataset, train.types)
    costs = costs_of(dataset)
    best = best_rules(median_rules(train, missing), *missing.censor(dev, seed=TEST_MASK), costs)
    observed, truth = test_pair(place, dataset, DETERMINISTIC)
    scores = [_score(truth, rule.impute(observed), dataset, i) for i, rule in enumerate(best)]
    chosen = [
        {
            "delays": rule.delay[rule.hidden >= 0],
            "after_previous": rule.after_previous,
            "first_at_start": rule.first_at_start,
        }
        for rule in best
    ]
    return {"missing": truth.lengths, "consensus": _parts(scores), "rules": chosen}


def diagnosed(posterior: Posterior) -> dict[str, Any]:
    """What the particles say of themselves, by stream: evidence, effective sizes, distinct histories, counts."""
    half = posterior.observed.starts + 0.5 * posterior.observed.durations
    return {
        "log_evidence": posterior.log_evidence,
        "final_ess": posterior.diagnostics.final_ess,
        "mean_ess": np.nanmean(posterior.diagnostics.ess, axis=1),
        "resamplings": posterior.diagnostics.resamplings,
        "distinct_histories": posterior.distinct_histories(half),
        "expected_count": posterior.expected_count(),
    }


def _most_probable(posterior: Posterior) -> StreamSet:
    streams = [most_probable(posterior.particles(i), posterior.weights(i)) for i in range(len(posterior))]
    return StreamSet(streams, posterior.observed.types, posterior.observed.axis)


def _score(missing: StreamSet, answer: StreamSet, dataset: str, cost: int) -> TransportScore:
    return transport_score(missing, answer, costs_of(dataset)[cost])


def _parts(scores: list[TransportScore]) -> dict[str, Any]:
    """The terms of the distance, [cost][stream]."""
    return {
        "inserted": [score.inserted.sum(1) for score in scores],
        "deleted": [score.deleted.sum(1) for score in scores],
        "moved": [score.moved.sum(1) for score in scores],
    }
