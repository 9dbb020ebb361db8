"""Other constants than the default ones, on processes that were not looked at when those were chosen.

    python -m experiments.constants --workers 16 --out constants.json

Families that a segment of the lagged ensemble keeps (``genealogy.FAMILIES``), the pseudo-count of a consensus event
(``decision.PSEUDO_COUNT``), the threshold of resampling, and each ensemble alone. One constant is moved at a time. For
each the distance relative to predicting nothing, at five costs, how many 90 % intervals hold the truth at the
middle one, and how far probabilities are from what happened: the mean over imputed events of the difference of their
bin, case by case, at the middle cost and above.

Where all numbers of families were tried, a second table has the distance if their number is chosen for each cost, or
for each cost and type, on one half of the streams of a case and used on the other, and the other way round.
"""

from __future__ import annotations

import argparse
import json
from concurrent.futures import ProcessPoolExecutor
from itertools import product
from multiprocessing import get_context
from typing import Any

import numpy as np
import torch

import retrodict as rd
from experiments.honest import SETTINGS, make_case, score_of, streams_of
from experiments.page import table
from retrodict.evaluate import transport_score
from retrodict.smc import decision, genealogy

PROCESSES = ("neural-106", "neural-107", "hawkes-d")
TRIED: dict[str, dict[str, Any]] = {
    "default": {},
    **{f"{n} families": {"families": float(n)} for n in (5, 20, 40, 80)},
    **{f"pseudo-count {a:g}": {"pseudo": a} for a in (0.0, 0.5, 2.0)},
    **{f"resampling below {e:g}": {"ess": e} for e in (0.05, 0.25, 0.75, 0.95)},
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
    distances = [transport_score(truth, d.streams, c).distance / c for d, c in zip(found, costs, strict=True)]
    found = {"distance": relative, "covered": covered, "off": off, "imputed": [sum(s["events"]) for s in scores[2:]]}
    found |= {"distances": np.round(distances, 6).tolist(), "missing": truth.num_events}  # [costs, streams, types]
    return {"process": process, "setting": setting, "name": name, **found}


def choose_families(results: list[dict[str, Any]]) -> list[list[str]]:
    """Distances, relative to predicting nothing, with the number of families chosen on other streams."""
    tried = [name for name in TRIED if name == "default" or "families" in TRIED[name]]
    totals: dict[str, list[Any]] = {"10 families": [], "chosen by cost": [], "chosen by cost and type": []}
    for process, setting in product(PROCESSES, SETTINGS):
        own = {r["name"]: r for r in results if (r["process"], r["setting"]) == (process, setting)}
        if not all(name in own for name in tried):
            return []
        distances = np.array([own[name]["distances"] for name in tried])  # [names, costs, streams, types]
        sums = np.stack([distances[:, :, half::2].sum(2) for half in (0, 1)])  # [halves, names, costs, types]
        default = tried.index("default")
        by_cost = sums.sum(-1).argmin(1)[:, None, :, None]
        by_type = sums.argmin(1)[:, None]
        chosen = (np.full_like(by_cost, default), by_cost, by_type)
        for name, which in zip(totals, chosen, strict=True):
            used = np.take_along_axis(sums[::-1], np.broadcast_to(which, by_type.shape), 1)  # on the other half
            totals[name].append(used.sum((0, 1, 3)) / own["default"]["missing"])
    return [[name, " ".join(f"{d:.4f}" for d in np.mean(found, 0))] for name, found in totals.items()]


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
    if chosen := choose_families(results):
        print("\n" + table(["families", "distance"], chosen))


if __name__ == "__main__":
    main()
