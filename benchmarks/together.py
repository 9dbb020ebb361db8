"""How fast several processes train together: events a second of an epoch, beside one process.

    python benchmarks/together.py                       # one process with one and two threads, two processes
    python benchmarks/together.py --device cuda --devices 1 2 4 8 --batch 800 --hidden 256

A neural Hawkes process and its smoother, on streams of a Hawkes process, in steps of the same streams whoever takes
them. An epoch is all of it: steps, drawing and hiding streams for the smoother, the score on dev, the checkpoint. The
first epoch is left out, of the others the median counts; the start of the processes is printed by itself. On a CPU
each process has one thread, and one process is tried with as many threads as there are processes, too.
"""

from __future__ import annotations

import argparse
import csv
import json
import statistics
import tempfile
import time
from pathlib import Path
from typing import Any

import torch

import retrodict as rd

TRUTH = rd.Hawkes([0.3, 0.2], [[0.1, 0.6], [0.5, 0.0]], 2.0)


def epochs(what: Any, data: tuple[rd.StreamSet, rd.StreamSet], how: dict[str, Any]) -> tuple[float, float]:
    """Scored events a second in the median epoch but the first, and the seconds of the whole fit."""
    with tempfile.TemporaryDirectory() as folder:
        begin = time.perf_counter()
        rd.fit(what, *data, directory=folder, progress=False, patience=1000, **how)
        took = time.perf_counter() - begin
        with (Path(folder) / "metrics.csv").open() as file:
            rates = [float(row["events_per_second"]) for row in csv.DictReader(file)]
    return statistics.median(rates[1:]), took


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--devices", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--streams", type=int, default=1000)
    parser.add_argument("--batch", type=int, default=100)
    parser.add_argument("--hidden", type=int, default=64)
    parser.add_argument("--epochs", type=int, default=4)
    options = parser.parse_args()
    train = rd.simulate(TRUTH, options.streams, end=40.0, seed=1)
    dev = rd.simulate(TRUTH, max(options.streams // 10, 2), end=40.0, seed=2)
    ways = [(count, count) for count in options.devices]  # processes, and threads of all of them
    if options.device == "cpu":
        ways += [(1, count) for count in options.devices if count > 1]
    for kind in ("model", "smoother"):
        for count, threads in ways:
            torch.manual_seed(0)
            torch.set_num_threads(threads)
            model = rd.NeuralHawkes(2, options.hidden)
            model.adapt(train)
            how: dict[str, Any] = {"batch_size": options.batch, "device": options.device, "epochs": options.epochs}
            what, more = (
                (model, {}) if kind == "model" else (rd.Smoothing(model, rd.ByType(0.5)), {"learn_from": "data"})
            )
            rate, took = epochs(what, (train, dev), {**how, **more, "devices": count})
            row = {
                "what": kind,
                "processes": count,
                "threads": threads,
                "events/s": round(rate),
                "fit s": round(took, 1),
            }
            print(json.dumps(row), flush=True)


if __name__ == "__main__":
    main()
