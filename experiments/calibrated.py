"""Does a check on dev streams mend the probabilities of test streams, where no model is true?

    python -m experiments.calibrated --folder reproduced --only taxi flights --settings deterministic rho-0.5

The one smoother of each (``experiments/universal.py``), the middle cost, default settings otherwise. Written are, for
imputed events in bins of the probability that was given, the mean probability as given and calibrated, and the share
that happened.
"""

from __future__ import annotations

import argparse
import warnings
from itertools import pairwise, product
from pathlib import Path

import numpy as np
import torch

import retrodict as rd
from experiments.data import TEST_MASK, mechanism
from experiments.honest import smoother_of
from experiments.page import table
from experiments.sizes import FULL, MIDDLE
from experiments.store import Run
from retrodict.decode.transport import as_cost
from retrodict.evaluate.matching import pair_streams

EDGES = np.array([0.0, 0.6, 0.7, 0.8, 0.9, 1.0])


def measure(folder: Path, data: str, setting: str, streams: int) -> list[list[str]]:
    """One row for each bin of a case."""
    run, cost = Run(folder, FULL), FULL.kind(data).costs[MIDDLE]
    splits = run.splits(data)
    missing = mechanism(setting, data, splits.test.types)
    smoother = rd.load_proposal(smoother_of(folder, data)).given(missing)
    check = rd.check(smoother, splits.dev[:streams], costs=[cost])
    observed, hidden = missing.censor(splits.test[:streams], seed=TEST_MASK)
    posterior = rd.impute(observed, smoother)
    answers = [each.consensus(cost) for each in (posterior, check.calibrate(posterior))]
    happened = ~np.isnan(pair_streams(hidden, answers[0]).aligned_times(as_cost(cost)))
    given, calibrated = (answer.columns["probability"] for answer in answers)
    rows = []
    for low, high in pairwise(EDGES):
        own = (given > low) & (given <= high)
        means = [f"{x[own].mean():.3f}" for x in (given, calibrated, happened)] if own.any() else ["-"] * 3
        rows.append([data, setting, f"{own.sum():,}", *means])
    return rows


def main() -> None:
    """All cases."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--folder", type=Path, default=Path("reproduced"))
    parser.add_argument("--only", nargs="+", default=["taxi", "flights"])
    parser.add_argument("--settings", nargs="+", default=["deterministic", "rho-0.5"])
    parser.add_argument("--streams", type=int, default=100)
    options = parser.parse_args()
    torch.set_num_threads(1)
    warnings.simplefilter("ignore", rd.SuspicionNotice)
    cases = product(options.only, options.settings)
    rows = [row for case in cases for row in measure(options.folder, *case, options.streams)]
    print(table(["data", "missing", "events", "given", "calibrated", "happened"], rows))


if __name__ == "__main__":
    main()
