"""Is the default honest? Distances, coverage, reliability and reported risks where the model is exactly true.

    python -m experiments.honest train --folder honest       smoothers of all processes (a GPU pays)
    python -m experiments.honest measure --folder honest     impute, decode, compare; one JSON file a case
    python -m experiments.honest show --folder honest        the tables of docs/honest.md

Processes: random neural Hawkes processes of 256 cells, as in appendix G.3 but with a fixed horizon, so that the model
is exactly true, and two Hawkes processes. Constants of the package were chosen on ``TUNING``; ``REPORTED`` were not
looked at before.
"""

from __future__ import annotations

import argparse
import multiprocessing
import time
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch

import retrodict as rd
from retrodict.datasets.synthetic import random_neural_hawkes

TUNING = ("neural-99", "neural-100", "hawkes-a")
REPORTED = (*(f"neural-{seed}" for seed in range(101, 106)), "hawkes-b", "hawkes-c")
SETTINGS = ("deterministic", "half")
STREAMS = 200
_HAWKES = {
    "hawkes-a": ([0.3, 0.2, 0.1], [[0.2, 0.5, 0.0], [0.0, 0.2, 0.6], [0.5, 0.0, 0.1]], 2.0),
    "hawkes-b": ([0.2, 0.3], [[0.3, 0.5], [0.4, 0.2]], 1.0),
    "hawkes-c": ([0.1, 0.1, 0.1, 0.3], [[0, 0.6, 0, 0], [0, 0, 0.6, 0], [0.2, 0, 0, 0.2], [0.1, 0.1, 0.1, 0.1]], 4.0),
}


class Case(NamedTuple):
    """A process, its unit of time, and what goes missing from it."""

    model: rd.Model
    horizon: float  # about 16 events
    missing: rd.ByType


def make_case(process: str, setting: str) -> Case:
    """The process of a name, with the horizon up to which it has 16 events on average."""
    if process.startswith("neural"):
        model: rd.Model = random_neural_hawkes(4, 256, int(process.split("-")[1]))
    else:
        model = rd.Hawkes(*_HAWKES[process])
    K = model.num_types
    horizon = float(np.mean(rd.simulate(model, 200, num_events=16, seed=12).ends))
    hidden = [0.0] * (K - K // 2) + [1.0] * (K // 2)
    return Case(model, horizon, rd.ByType(hidden if setting == "deterministic" else 0.5))


def streams_of(case: Case, count: int, seed: int) -> rd.StreamSet:
    """Streams that end at the horizon, whatever happens."""
    return rd.simulate(case.model, count, end=case.horizon, seed=seed)


def train(folder: Path, process: str, setting: str, seconds: float, device: str) -> str:
    """The smoother that a user gets by default."""
    torch.set_num_threads(1)
    case = make_case(process, setting)
    began = time.perf_counter()
    smoother = rd.fit(
        rd.Smoothing(case.model, case.missing),
        streams_of(case, 2000, 1),
        streams_of(case, 200, 2),
        directory=folder / "smoothers" / f"{process}-{setting}",
        seconds=seconds,
        device=device,
        progress=False,
        redraw=5,
    )
    record: dict[str, Any] = smoother.training_record
    return f"{process}, {setting}: {record['epochs']} epochs, {record['ended']}, {time.perf_counter() - began:.0f} s"


def main(arguments: list[str] | None = None) -> None:
    """Run a stage."""
    parser = argparse.ArgumentParser()
    parser.add_argument("stage", choices=["train", "measure", "show"])
    parser.add_argument("--folder", type=Path, default=Path("honest"))
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--seconds", type=float, default=300.0)
    parser.add_argument("--device", default="auto")
    parser.add_argument("--only", nargs="*", default=[*TUNING, *REPORTED])
    options = parser.parse_args(arguments)
    cases = [(process, setting) for process in options.only for setting in SETTINGS]
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(options.workers, mp_context=context) as pool:
        if options.stage == "train":
            jobs = [pool.submit(train, options.folder, *case, options.seconds, options.device) for case in cases]
        for job in jobs:
            print(job.result(), flush=True)


if __name__ == "__main__":
    main()
