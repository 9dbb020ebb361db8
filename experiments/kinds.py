"""Kinds of models side by side on flights or on elevator streams: nats per event on dev and on test.

    python -m experiments.kinds flights ../shared/data/nyc_flights_2013/all.jsonl.gz --share 0.2 --seconds 240
    python -m experiments.kinds elevator --share 0.2 --seconds 240

Eight of ten streams are for training, one is dev and one is test; of each a share. By 16 nodes a panel, whole streams,
without what their ends add. One seed; neural models stop after so many seconds, if not before. "Today's model" is the
neural Hawkes process of 64 cells.
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Callable
from functools import partial

import torch

import retrodict as rd
from experiments.bursty import score
from retrodict.datasets import elevator

KINDS: dict[str, Callable[[rd.StreamSet], rd.Model]] = {
    "Poisson": rd.Poisson.from_streams,
    "Hawkes, scales": partial(rd.Hawkes.from_streams, scales="auto"),
    "state space, 1 layer of 32": partial(rd.StateSpace.from_streams, size=32),
    "state space, 2 layers of 32": partial(rd.StateSpace.from_streams, size=32, layers=2),
    "neural Hawkes, 64 cells": partial(rd.NeuralHawkes.from_streams, hidden_size=64),
}
MADE = (500, 100, 100)  # elevator streams at a share of 1


def parts(source: str, file: str | None, share: float) -> list[rd.StreamSet]:
    """Train, dev and test."""
    if source == "elevator":
        made = elevator(sizes=tuple(max(2, round(share * n)) for n in MADE))  # type: ignore[arg-type]
        return list(made)
    return [part[: round(share * len(part))] for part in rd.read_events(file).split(0.8, 0.1, seed=0)]


def main() -> None:
    """A row a kind."""
    parser = argparse.ArgumentParser()
    parser.add_argument("source", choices=("flights", "elevator"))
    parser.add_argument("file", nargs="?")
    parser.add_argument("--share", type=float, default=1.0)
    parser.add_argument("--seconds", type=float, default=240.0)
    parser.add_argument("--kinds", nargs="+", choices=KINDS, default=list(KINDS))
    given = parser.parse_args()
    torch.set_num_threads(1)
    for kind in (rd.DataNotice, rd.SuspicionNotice):
        warnings.simplefilter("ignore", kind)
    train, dev, test = parts(given.source, given.file, given.share)
    print(f"{train.num_events:,} training events, {dev.num_events:,} of dev, {test.num_events:,} of test\n")
    print("| model | dev | test | seconds | epochs | ended |\n|---|---|---|---|---|---|")
    for name in given.kinds:
        began = time.perf_counter()
        limit = 1 if name == "Poisson" else None  # it starts at its maximum
        model = rd.fit(KINDS[name], train, dev, epochs=limit, seconds=given.seconds, device="cpu", progress=False)
        seconds = time.perf_counter() - began
        scores = " | ".join(f"{score(model, streams, True):.4f}" for streams in (dev, test))
        record = model.training_record
        print(f"| {name} | {scores} | {seconds:.0f} | {record.get('epochs', '')} | {record['ended']} |", flush=True)


if __name__ == "__main__":
    main()
