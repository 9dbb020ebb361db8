"""What each cure for degeneracy brings on taxi streams (docs/imputation.md), with the models of a finished run.

    python -m experiments.cures

For each: seconds a stream, distinct histories up to T/4, T/2 and 3T/4, distance per missing event at three costs, and
how often the consensus's 90 % intervals hold the event aligned to them.
"""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import torch

import retrodict as rd
from experiments.data import test_pair
from experiments.imputing import METHODS
from experiments.page import table
from experiments.sizes import FULL, SETTINGS
from experiments.store import Run
from retrodict.evaluate import interval_coverage, transport_score

STREAMS, COSTS = 100, (0.1, 0.3, 1.0)
CURES: dict[str, dict[str, Any]] = {
    "50 particles": {},
    "multinomial": {"resample": "multinomial"},
    "500 particles": {"particles": 500},
    "10 islands of 50": {"particles": 500, "islands": 10},
    "10 moves": {"rejuvenate": 10},
}


def judge(proposal: rd.Proposal, observed: rd.StreamSet, truth: rd.StreamSet, options: dict[str, Any]) -> list[str]:
    """The figures of one cure."""
    began = time.perf_counter()
    posterior = rd.impute(observed, proposal, **options)
    seconds = (time.perf_counter() - began) / len(observed)
    times = [observed.starts + share * observed.durations for share in (0.25, 0.5, 0.75)]
    histories = ", ".join(f"{posterior.distinct_histories(time).mean():.0f}" for time in times)
    answers = [posterior.consensus(cost) for cost in COSTS]
    scores = [transport_score(truth, *pair).distance_per_event for pair in zip(answers, COSTS, strict=True)]
    covered = interval_coverage(truth, answers[1], COSTS[1]).covered
    return [f"{seconds:.2f}", histories, ", ".join(f"{score:.3f}" for score in scores), f"{covered:.0%}"]


def main(folder: Path = Path("reproduced")) -> None:
    """A table for each setting."""
    torch.set_num_threads(1)
    run = Run(folder, FULL)
    for setting in SETTINGS:
        observed, truth = (part[:STREAMS] for part in test_pair(run, "taxi", setting))
        rows = []
        for method in ("filtering", "smoothing"):
            proposal = METHODS[method].prepare(run, "taxi", setting, "cpu")
            chosen = (
                CURES if method == "smoothing" else {name: CURES[name] for name in ("50 particles", "500 particles")}
            )
            rows += [[f"{method}, {name}", *judge(proposal, observed, truth, o)] for name, o in chosen.items()]
        print(table([setting, "seconds", "distinct histories", "distance", "covered"], rows) + "\n", flush=True)


if __name__ == "__main__":
    main()
