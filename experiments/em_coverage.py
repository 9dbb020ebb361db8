"""Do 95 % intervals of learned missing rates hold the truth in 95 % of the data sets?

    python -m experiments.em_coverage --sets 100 --workers 16 --out runs/em/coverage.json

Each set has 100 streams of a Hawkes process of three types: one excites itself and another, one comes alone as in a
Poisson process. Events go missing at rates 0.6, 0.2 and 0.4. ``rd.learn_missing`` starts from 0.5 for every type and
knows the model. Written are the share of the intervals that hold the true rate, by type and for all types, the mean
standard error beside the spread of the estimates, and how many rates were called not identified.
"""

from __future__ import annotations

import argparse
import warnings
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np
import torch

import retrodict as rd
from experiments.store import write_json

TRUTH = np.array([0.6, 0.2, 0.4])
MODEL = rd.Hawkes([0.4, 0.2, 0.3], [[0.3, 0.5, 0.0], [0.0, 0.2, 0.0], [0.0, 0.0, 0.0]], 2.0)


def one_set(seed: int, streams: int, rounds: int, particles: int) -> dict[str, Any]:
    """Rates, standard errors and intervals from one data set."""
    torch.set_num_threads(1)
    complete = rd.simulate(MODEL, streams, end=20.0, seed=10_000 + seed)
    seen, _ = rd.ByType(TRUTH.tolist()).censor(complete, seed=20_000 + seed)
    start = rd.Filtering(MODEL, rd.ByType([0.5] * len(TRUTH)))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", rd.SuspicionNotice)
        found = rd.learn_missing(start, seen, rounds=rounds, particles=particles, seed=seed).rates
    assert found is not None
    return {
        "rates": found.rates,
        "standard_errors": found.standard_errors,
        "intervals": found.intervals(),
        "monte_carlo": found.monte_carlo,
        "unknown": found.unknown,
    }


def summary(sets: list[dict[str, Any]]) -> dict[str, Any]:
    """Coverage and standard errors over all sets; rates that are not identified do not count as covered."""
    rates, errors, ends = (np.array([s[name] for s in sets]) for name in ("rates", "standard_errors", "intervals"))
    known = ~np.isnan(errors)
    covered = (ends[..., 0] <= TRUTH) & (ends[..., 1] >= TRUTH) & known
    return {
        "sets": len(sets),
        "truth": TRUTH,
        "coverage": covered.sum() / known.sum(),
        "coverage_by_type": covered.sum(0) / known.sum(0),
        "mean_rate": rates.mean(0),
        "spread_of_rates": rates.std(0, ddof=1),
        "mean_standard_error": np.nanmean(errors, 0),
        "monte_carlo_share": np.mean([s["monte_carlo"] for s in sets], 0),
        "not_identified": (~known).sum(0),
    }


def main() -> None:
    """Run all sets on several cores."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--sets", type=int, default=100)
    parser.add_argument("--streams", type=int, default=100)
    parser.add_argument("--rounds", type=int, default=30)
    parser.add_argument("--particles", type=int, default=50)
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--out", type=Path, default=Path("runs/em/coverage.json"))
    given = parser.parse_args()
    run = partial(one_set, streams=given.streams, rounds=given.rounds, particles=given.particles)
    with ProcessPoolExecutor(given.workers, mp_context=get_context("spawn")) as pool:
        sets = list(pool.map(run, range(given.sets)))
    write_json(given.out, {"summary": summary(sets), "sets": sets})
    for name, value in summary(sets).items():
        print(f"{name:22}", np.round(value, 4))


if __name__ == "__main__":
    main()
