"""Recipes of training side by side: dev chooses one for each line, and only that one is scored on test.

    python -m experiments.recipes --data ../shared/data --out runs/recipes --seconds 480 --workers 16
    python -m experiments.recipes --lines "taxi, several layers" "taxi, one layer" --seconds 480 --workers 16
    python -m experiments.recipes --lines "taxi, several layers" --recipes "2 layers of 32 units, dropout .2"

Every recipe is fitted with three seeds, each fit in a process of its own, and keeps its best on dev when time is up.
Nats per event by 16 nodes a panel, first event not scored. ``fits.json`` has all fits, ``table.md`` a row a recipe.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
import warnings
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import torch

import retrodict as rd
from experiments.bursty import score
from retrodict.datasets import taxi
from retrodict.events.stream_set import Splits

SEEDS = (0, 1, 2)
FILES = {
    "taxi": ("nyc_taxi_2013/train_long", "easytpp_taxi/dev", "easytpp_taxi/test"),
    "mathof": ("easytpp_mathof/train", "easytpp_mathof/dev", "easytpp_mathof/test"),
}
_LEAST = 15.0  # seconds under which no fit is begun
_AFTER = 30.0  # seconds kept for scores


@dataclass(frozen=True)
class Recipe:
    """A model and how it is trained; ``share`` is the part of the time that a fit may take at most."""

    model: type[rd.NeuralHawkes] | type[rd.StateSpace]
    size: int
    layers: int = 1
    device: str = "cpu"
    share: float = 1.0
    how: dict[str, Any] = field(default_factory=dict)

    def make(self, train: rd.StreamSet) -> rd.Model:
        """The model before training."""
        if self.model is rd.StateSpace:
            return rd.StateSpace.from_streams(train, self.size, self.layers)
        return rd.NeuralHawkes.from_streams(train, self.size)


_NEURAL, _SPACE, _DECAY = rd.NeuralHawkes, rd.StateSpace, {"weight_decay": 0.05}
# By line, its data set and its recipes. Fits are begun in this order.
LINES: dict[str, tuple[str, dict[str, Recipe]]] = {
    "Math Overflow": (
        "mathof",
        {
            "64 cells, GPU": Recipe(_NEURAL, 64, device="auto", share=0.5),
            "64 cells": Recipe(_NEURAL, 64, share=0.5),
            "64 cells, weight decay": Recipe(_NEURAL, 64, share=0.5, how=_DECAY),
        },
    ),
    "Math Overflow, state space": (
        "mathof",
        {
            "1 layer of 32 units": Recipe(_SPACE, 32, share=0.4),
            "2 layers of 32 units, dropout .1": Recipe(_SPACE, 32, 2, share=0.6, how={"dropout": 0.1}),
        },
    ),
    "paper's taxi": ("paper", {"128 cells, GPU": Recipe(_NEURAL, 128, device="auto", share=0.45)}),
    "taxi, neural Hawkes": ("taxi", {"64 cells": Recipe(_NEURAL, 64, share=0.45)}),
    "taxi, several layers": (
        "taxi",
        {
            "2 layers of 32 units": Recipe(_SPACE, 32, 2, share=0.4),
            "3 layers of 32 units": Recipe(_SPACE, 32, 3, share=0.4),
            "2 layers of 32 units, dropout .1": Recipe(_SPACE, 32, 2, share=0.6, how={"dropout": 0.1}),
            "2 layers of 32 units, dropout .2": Recipe(_SPACE, 32, 2, share=0.6, how={"dropout": 0.2}),
            "2 layers of 64 units, dropout .2": Recipe(_SPACE, 64, 2, share=0.6, how={"dropout": 0.2}),
            "3 layers of 32 units, dropout .1": Recipe(_SPACE, 32, 3, share=0.6, how={"dropout": 0.1}),
        },
    ),
    "taxi, one layer": (
        "taxi",
        {
            "32 units": Recipe(_SPACE, 32, share=0.25),
            "16 units": Recipe(_SPACE, 16, share=0.25),
            "32 units, dropout .1": Recipe(_SPACE, 32, share=0.35, how={"dropout": 0.1}),
        },
    ),
    "paper's taxi, several layers": (
        "paper",
        {
            "2 layers of 32 units, dropout .2": Recipe(_SPACE, 32, 2, share=0.6, how={"dropout": 0.2}),
            "2 layers of 64 units, dropout .2": Recipe(_SPACE, 64, 2, share=0.6, how={"dropout": 0.2}),
        },
    ),
}


def read(data: Path, name: str) -> Splits:
    """Training, dev and test streams."""
    if name == "paper":
        return taxi(data / "nyc_taxi_2013")
    files = [data / f"{file}.jsonl.gz" for file in FILES[name]]
    train = rd.read_events(files[0])
    return Splits(train, *(rd.read_events(file, unit=train.axis.unit) for file in files[1:]))


def fit_one(data: Path, folder: Path, line: str, recipe: str, seed: int, seconds: float) -> None:
    """Fit one recipe with one seed; the folder keeps the model and its score on dev."""
    torch.set_num_threads(1)
    _be_quiet()
    streams, made = read(data, LINES[line][0]), LINES[line][1][recipe]
    how: dict[str, Any] = {"seed": seed, "device": made.device, "seconds": seconds, "progress": False, **made.how}
    model = rd.fit(made.make, streams.train, streams.dev, **how)
    model.save(folder)
    kept = ("epochs", "best_epoch", "ended", "seconds", "train_log_likelihood_per_event")
    record = {name: model.training_record[name] for name in kept}
    about = {"line": line, "recipe": recipe, "seed": seed, "dev": score(model, streams.dev, False), **record}
    (folder / "fit.json").write_text(json.dumps(about))


def fit_all(
    lines: list[str], recipes: list[str], data: Path, out: Path, end: float, workers: int
) -> list[dict[str, Any]]:
    """All fits, ``workers`` at a time, until ``end`` of the clock; those that failed or had no time are left out."""

    def fit(job: tuple[str, str, int, float]) -> None:
        line, recipe, seed, share = job
        seconds = min(share * (end - began), end - time.time())
        folder = out / "models" / f"{line}-{recipe}-{seed}".replace(" ", "_").replace(",", "").replace("'", "")
        if seconds < _LEAST:
            return
        folder.mkdir(parents=True, exist_ok=True)
        args = ["--data", data, "--one", folder, line, recipe, seed, seconds]
        with (folder / "log.txt").open("w") as log:
            command = [sys.executable, "-m", "experiments.recipes", *map(str, args)]
            subprocess.run(command, env={**os.environ, "OMP_NUM_THREADS": "1"}, stdout=log, stderr=log)
        if not (folder / "fit.json").exists():
            print(f"{folder.name} failed:\n{(folder / 'log.txt').read_text()[-500:]}", flush=True)
            return
        done.append(json.loads((folder / "fit.json").read_text()) | {"folder": str(folder)})
        (out / "fits.json").write_text(json.dumps(done, indent=1))
        print(f"{folder.name}: dev {done[-1]['dev']:.4f} after {done[-1]['epochs']} epochs", flush=True)

    done: list[dict[str, Any]] = []
    began = time.time()
    named = [(line, name, made.share) for line in lines for name, made in LINES[line][1].items()]
    jobs = [(line, name, s, share) for line, name, share in named if not recipes or name in recipes for s in SEEDS]
    with ThreadPoolExecutor(workers) as pool:
        list(pool.map(fit, jobs))
    return done


def tabulate(lines: list[str], data: Path, fits: list[dict[str, Any]]) -> list[str]:
    """A row a recipe: mean and standard deviation over seeds, on test of the best on dev alone."""
    names = ("line", "recipe", "seeds", "training", "dev", "test", "epochs", "ended by time")
    rows = [f"| {' | '.join(names)} |", "|---" * len(names) + "|"]
    for line in lines:
        name, recipes = LINES[line]
        by = {recipe: [fit for fit in fits if (fit["line"], fit["recipe"]) == (line, recipe)] for recipe in recipes}
        by = {recipe: some for recipe, some in by.items() if some}
        best = max(by, key=lambda recipe: (len(by[recipe]), np.mean([fit["dev"] for fit in by[recipe]])), default=None)
        for recipe, some in by.items():
            tested = ""
            if recipe == best:
                test = read(data, name).test
                for fit in some:
                    fit["test"] = score(rd.load_model(fit["folder"]), test, False)
                tested = _spread([fit["test"] for fit in some])
            cells = [
                _spread([fit["train_log_likelihood_per_event"] for fit in some]),
                _spread([fit["dev"] for fit in some]),
                tested,
                f"{np.mean([fit['epochs'] for fit in some]):.0f}",
                str(sum(fit["ended"] == "time was up" for fit in some)),
            ]
            rows.append(f"| {line} | {recipe} | {len(some)} | {' | '.join(cells)} |")
    return rows


def _spread(values: list[float]) -> str:
    more = f" ± {np.std(values, ddof=1):.4f}" if len(values) > 1 else ""
    return f"{np.mean(values):.4f}{more}"


def _be_quiet() -> None:
    for kind in (rd.DataNotice, rd.SuspicionNotice):
        warnings.simplefilter("ignore", kind)


def main() -> None:
    """Fit everything, or, for a process of its own, one."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--data", type=Path, default=Path("../shared/data"))
    parser.add_argument("--out", type=Path, default=Path("runs/recipes"))
    parser.add_argument("--seconds", type=float, default=480.0)
    parser.add_argument("--workers", type=int, default=os.cpu_count())
    parser.add_argument("--lines", nargs="+", choices=LINES, default=list(LINES))
    parser.add_argument("--recipes", nargs="+", default=[], help="of these lines; by default all")
    parser.add_argument("--one", nargs=5)
    given = parser.parse_args()
    if given.one:
        folder, line, recipe, seed, seconds = given.one
        fit_one(given.data, Path(folder), line, recipe, int(seed), float(seconds))
        return
    _be_quiet()
    given.out.mkdir(parents=True, exist_ok=True)
    fits = fit_all(
        given.lines, given.recipes, given.data, given.out, time.time() + given.seconds - _AFTER, given.workers
    )
    rows = tabulate(given.lines, given.data, fits)
    (given.out / "fits.json").write_text(json.dumps(fits, indent=1))
    (given.out / "table.md").write_text("\n".join(rows) + "\n")
    print("\n".join(rows))


if __name__ == "__main__":
    main()
