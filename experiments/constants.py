"""Other constants than the default ones, on processes that were not looked at when those were chosen.

    python -m experiments.constants --workers 16 --out constants.json

Families that a segment of the lagged ensemble keeps (``genealogy.FAMILIES``), the pseudo-count of a consensus event
(``decision.PSEUDO_COUNT``), the threshold of resampling, and each ensemble alone. One constant is moved at a time. For
each the distance relative to predicting nothing, at five costs, how many 90 % intervals hold the truth at the
middle one, and how far probabilities are from what happened: the mean over imputed events of the difference of their
bin, case by case, at the middle cost and above.
"""

from __future__ import annotations

import argparse
import json
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from typing import Any

import numpy as np
import torch

import retrodict as rd
from experiments.honest import SETTINGS, make_case, score_of, streams_of
from experiments.page import table
from retrodict.smc import decision, genealogy

PROCESSES = ("neural-106", "neural-107", "hawkes-d")
TRIED: dict[str, dict[str, Any]] = {
    "default": {},
    **{f"{n} families": {"families": float(n)} for n in (5, 20, 40, 80)},
    **{f"pseudo-count {a:g}": {"pseudo": a} for a in (0.0, 0.5, 2.0)},
    **{f"resampling below {e:g}": {"ess": e} for e in (0.25, 0.75)},
    "full alone": {"ensemble": "full"},
    "lagged alone": {"ensemble": "lagged"},
}


def measure(process: str, setting: str, name: str, streams: int, device: str) -> dict[str, Any]:
    """One constant moved, on one case."""
    torch.set_num_threads(1)
    case, own = make_case(process, setting), TRIED[name]
    genealogy.FAMILIES = own.get("families", genealogy.FAMILIES)
    decision.PSEUDO_COUNT = own.get("pseudo", decision.PSEUDO_COUNT)
    observed, truth = case.missing.censor(streams_of(case, streams, 7), seed=7)
    costs = [case.horizon / 16 * share for share in (0.1, 0.3, 1.0, 3.0, 10.0)]
    proposal: rd.Proposal = rd.Filtering(case.model, case.missing)
    if isinstance(case.model, rd.NeuralHawkes):
        proposal = proposal.to(device)
    posterior = rd.impute(observed, proposal, ess_threshold=own.get("ess", 0.5))
    found = posterior.decide(costs, ensemble=own.get("ensemble"))
    scores = [score_of(truth, d.streams, cost) for d, cost in zip(found, costs, strict=True)]
    relative = [score["distance"] / cost / truth.num_events for score, cost in zip(scores, costs, strict=True)]
    covered = [scores[2]["covered"], scores[2]["aligned"]]
    off = [sum(abs(np.subtract(s["probability"], s["happened"]))) for s in scores[2:]]
    found = {"distance": relative, "covered": covered, "off": off, "imputed": [sum(s["events"]) for s in scores[2:]]}
    return {"process": process, "setting": setting, "name": name, **found}


def _work(job: tuple[str, str, str, int, str]) -> dict[str, Any]:
    return measure(*job)


def main() -> None:
    """All cases; means over them."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--streams", type=int, default=60)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--only", nargs="+", default=list(TRIED), choices=list(TRIED))
    parser.add_argument("--out", default="constants.json")
    options = parser.parse_args()
    jobs = [(p, s, name, options.streams, options.device) for p in PROCESSES for s in SETTINGS for name in options.only]
    # A worker for each job: constants are of a process.
    with ProcessPoolExecutor(options.workers, mp_context=get_context("spawn"), max_tasks_per_child=1) as pool:
        results = list(pool.map(_work, jobs))
    with open(options.out, "w") as file:
        json.dump(results, file, indent=1)
    rows = []
    for name in options.only:
        own = [r for r in results if r["name"] == name]
        distance = np.mean([r["distance"] for r in own], 0)
        hits, all_ = np.sum([r["covered"] for r in own], 0)
        off = np.sum([r["off"] for r in own], 0) / np.sum([r["imputed"] for r in own], 0)
        cells = [" ".join(f"{d:.4f}" for d in distance), f"{100 * hits / all_:.1f}", " ".join(f"{x:.3f}" for x in off)]
        rows.append([name, *cells])
    print(table(["constant", "distance", "covered, %", "probabilities off"], rows))


if __name__ == "__main__":
    main()
