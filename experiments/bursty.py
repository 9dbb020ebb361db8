"""Hawkes processes with kernels of many scales, beside one exponential and Poisson: bursty and other streams.

    python -m experiments.bursty                                        # simulated, three seeds
    python -m experiments.bursty TRAIN DEV TEST                         # files of streams, first event not scored
    python -m experiments.bursty weights                                # errors of log weights in imputation

Simulated streams come from a process of two types with a mean gap of 1 whose kernels decay at rates 1, 100 and 10,000.
Scores are nats per event. Everything is chosen on dev; test is scored once.
"""

from __future__ import annotations

import sys
import time
import warnings
from typing import Any

import numpy as np
import torch

import retrodict as rd
from experiments.integrals import log_weights

SEEDS = (0, 1, 2)
SIZES, END = (160, 40, 80), 250.0
TRUTH = rd.Hawkes(
    [0.1, 0.15],
    [[[0.1, 0.2], [0.1, 0.1]], [[0.2, 0.0], [0.0, 0.2]], [[0.2, 0.1], [0.1, 0.2]]],
    [1e4, 1e2, 1.0],
)


def score(model: rd.Model, streams: rd.StreamSet, first: bool) -> float:
    """Nats per event, with or without the first event of each stream."""
    events = streams.num_events - (0 if first else int((streams.lengths > 0).sum()))
    with torch.no_grad():
        return float(model.log_likelihood(streams, score_first=first, score_end=False).double().sum()) / events


def fits(train: rd.StreamSet, dev: rd.StreamSet) -> dict[str, tuple[rd.Model, float]]:
    """Each model, and the seconds that its fit took."""
    one: dict[str, Any] = {"epochs": 300, "patience": 15, "batch_size": 500, "device": "cpu", "progress": False}
    makers = {
        "Poisson": lambda: rd.Poisson.from_streams(train),
        "Hawkes, one exponential": lambda: rd.fit(rd.Hawkes, train, dev, **one),
        "Hawkes, scales": lambda: rd.fit(rd.Hawkes.from_streams(train, "auto"), train, dev, progress=False),
    }
    fitted = {}
    for name, make in makers.items():
        began = time.perf_counter()
        model = make()
        fitted[name] = model, time.perf_counter() - began
    return fitted


def simulated() -> None:
    """Three seeds: mean, and the standard deviation over seeds."""
    table: dict[str, list[list[float]]] = {}
    for seed in SEEDS:
        parts = [rd.simulate(TRUTH, n, end=END, seed=10 * seed + i) for i, n in enumerate(SIZES)]
        best = score(TRUTH, parts[2], True)
        table.setdefault("the true process", []).append([best, 0.0, 0.0])
        for name, (model, seconds) in fits(*parts[:2]).items():
            value = score(model, parts[2], True)
            table.setdefault(name, []).append([value, best - value, seconds])
        print(f"seed {seed}: {parts[0].num_events:,} training events", file=sys.stderr, flush=True)
    print("| model | test | below the true process | seconds |\n|---|---|---|---|")
    for name, rows in table.items():
        mean, spread = np.mean(rows, 0), np.std(rows, 0, ddof=1)
        cells = f"{mean[0]:.4f} ± {spread[0]:.4f} | {mean[1]:.4f} ± {spread[1]:.4f}"
        print(f"| {name} | {cells} | {mean[2]:.1f} |", flush=True)


def given(files: list[str]) -> None:
    """Training, dev and test streams from files."""
    train = rd.read_events(files[0])
    dev, test = (rd.read_events(file, unit=train.axis.unit) for file in files[1:])
    print("| model | dev | test | seconds |\n|---|---|---|---|")
    for name, (model, seconds) in fits(train, dev).items():
        scores = " | ".join(f"{score(model, streams, False):.4f}" for streams in (dev, test))
        print(f"| {name} | {scores} | {seconds:.1f} |", flush=True)


def weights(seconds: float = 120.0) -> None:
    """Root mean square errors of log weights a stream, by eight nodes in each panel and by eight nodes a piece.

    They are compared with 40 nodes in each panel. Without resampling, thinning draws the same particles whatever the
    rule.
    """
    complete, missing = rd.simulate(TRUTH, 8, end=END / 2, seed=7), rd.ByType([0.5, 0.5])
    observed, _ = missing.censor(complete, seed=7)
    train, dev = (rd.simulate(TRUTH, n, end=END, seed=i) for i, n in enumerate((80, 20)))
    how: dict[str, Any] = {"seconds": seconds, "device": "cpu", "progress": False}
    neural = rd.fit(lambda streams: rd.NeuralHawkes.from_streams(streams, 32), train, dev, **how)
    space = rd.fit(lambda streams: rd.StateSpace.from_streams(streams, 32), train, dev, **how)
    trained = rd.fit(rd.Smoothing(TRUTH, missing, 32), train, dev, **how)
    with torch.random.fork_rng():
        torch.manual_seed(0)
        untrained = [rd.Smoothing(model, missing, 32) for model in (TRUTH, neural, space)]
    proposals = {
        "Hawkes, filtering": rd.Filtering(TRUTH, missing),
        "Hawkes, untrained smoother": untrained[0],
        "Hawkes, trained smoother": trained,
        f"neural Hawkes ({score(neural, dev, True):.3f} on dev), filtering": rd.Filtering(neural, missing),
        "neural Hawkes, untrained smoother": untrained[1],
        f"state space ({score(space, dev, True):.3f} on dev), filtering": rd.Filtering(space, missing),
        "state space, untrained smoother": untrained[2],
    }
    print("| proposal | 8 nodes in each panel | 8 nodes a piece |\n|---|---|---|")
    for name, proposal in proposals.items():
        best, *others = (
            log_weights(rd.impute(observed, proposal, 20, resample=None, sampler="thinning", integral=rule))
            for rule in (rd.GaussLegendre(40), rd.GaussLegendre(8), rd.GaussLegendre(8, graded=False))
        )
        errors = (float(np.sqrt(np.nanmean(np.square(found - best)))) for found in others)
        print(f"| {name} | {next(errors):.1e} | {next(errors):.1e} |", flush=True)


def main() -> None:
    """Simulated streams, the files given, or log weights."""
    torch.set_num_threads(1)
    for kind in (rd.DataNotice, rd.SuspicionNotice):
        warnings.simplefilter("ignore", kind)
    if sys.argv[1:] == ["weights"]:
        weights()
    else:
        given(sys.argv[1:]) if len(sys.argv) == 4 else simulated()


if __name__ == "__main__":
    main()
