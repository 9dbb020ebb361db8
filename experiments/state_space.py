"""Likelihoods of state spaces of one and two layers on given streams, first event not scored.

    python -m experiments.state_space TRAIN DEV TEST

Nats per event by 16 nodes a gap. Training ends by dev; test is scored once.
"""

from __future__ import annotations

import sys
import warnings

import torch

import retrodict as rd
from experiments.bursty import score


def main() -> None:
    """One seed for each number of layers."""
    torch.set_num_threads(1)
    for kind in (rd.DataNotice, rd.SuspicionNotice):
        warnings.simplefilter("ignore", kind)
    train = rd.read_events(sys.argv[1])
    dev, test = (rd.read_events(file, unit=train.axis.unit) for file in sys.argv[2:4])
    print("| layers | dev | test | best epoch | seconds |\n|---|---|---|---|---|")
    for layers in (1, 2):
        torch.manual_seed(0)
        model = rd.fit(rd.StateSpace(train.num_types, layers=layers), train, dev, device="cpu", progress=False)
        record, scores = model.training_record, [f"{score(model, streams, False):.4f}" for streams in (dev, test)]
        print(f"| {layers} | {' | '.join(scores)} | {record['best_epoch']} | {record['seconds']:g} |", flush=True)


if __name__ == "__main__":
    main()
