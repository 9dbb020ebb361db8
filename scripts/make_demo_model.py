"""Train the small model and smoother that the demo ships with, on the training part of the embedded flights.

    python scripts/make_demo_model.py

Writes src/retrodict/datasets/flights_smoother. The demo imputes streams of the test part, which this never sees.
"""

from __future__ import annotations

import argparse
import shutil
import tempfile
from functools import partial
from pathlib import Path

import torch

import retrodict as rd
from retrodict.datasets import flights_sample
from retrodict.datasets.flights_demo import hidden_departures, sample_splits

TARGET = Path(__file__).parents[1] / "src" / "retrodict" / "datasets" / "flights_smoother"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--hidden", type=int, default=48)
    parser.add_argument("--output", type=Path, default=TARGET)
    options = parser.parse_args()
    train, dev, _ = sample_splits(flights_sample())
    make = partial(rd.NeuralHawkes.from_streams, hidden_size=options.hidden)
    model = rd.fit(make, train, dev, epochs=200, patience=12, learning_rate=5e-3)
    torch.manual_seed(0)
    # As the shipped smoother was made: in the paper's form, trained on data and simulated streams.
    smoother = rd.Smoothing(model, hidden_departures(train.types), options.hidden, mixing=0)
    rd.fit(smoother, train, dev, epochs=100, patience=12, learning_rate=5e-3, learn_from="both", redraw=1)
    with tempfile.TemporaryDirectory() as folder:
        smoother.save(folder)
        shutil.rmtree(options.output, ignore_errors=True)
        shutil.copytree(folder, options.output)


if __name__ == "__main__":
    main()
