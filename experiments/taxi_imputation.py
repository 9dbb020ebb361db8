"""Imputing the New York taxi streams: filtering, smoothing, and what each cure for degeneracy brings.

    python experiments/taxi_likelihood.py DIR --hidden 128 --runs runs/taxi_likelihood
    python experiments/taxi_imputation.py DIR --model runs/taxi_likelihood/neural_hawkes_128_0_None_0.0

The paper's two settings: all pick-ups hidden ("deterministic"), and every event hidden with probability 0.5
("stochastic"). Smoothers are trained first, in several ways (``smoothers.py``), kept in --runs and resumed; the best on
dev is used. Then every method imputes all streams, and every cure for degeneracy the first 100 of them. For each:
effective sample size, seconds, distinct histories up to T/4, T/2 and 3T/4, the mean error of the expected number of
missing events with its standard error, how often the truth lies in the central 90 % of that number's posterior, the
distance of the exact consensus to the truth (predicting nothing costs as much as a deletion), and how often its 90 %
intervals hold the event aligned to them. Results go to ``taxi_imputation.json`` beside this file, into what is there.
"""

from __future__ import annotations

import argparse
import json
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import torch
from smoothers import log_q, train_smoothers, usual_ways

import retrodict as rd
from retrodict.evaluate.scores import interval_coverage, transport_score

TRAIN = ("train_long", "test1", "extra_long")
COSTS = (0.1, 0.3, 1.0)
METHODS: dict[str, dict[str, Any]] = {
    "filtering, no resampling": {"proposal": "filtering", "resample": None},
    "filtering": {"proposal": "filtering"},
    "smoothing, no resampling": {"resample": None},
    "smoothing": {},
}
CURES: dict[str, dict[str, Any]] = {
    "filtering": {"proposal": "filtering"},
    "filtering, 500 particles": {"proposal": "filtering", "particles": 500},
    "smoothing": {},
    "smoothing, multinomial": {"resample": "multinomial"},
    "smoothing, 500 particles": {"particles": 500},
    "smoothing, 10 islands of 50": {"particles": 500, "islands": 10},
    "smoothing, 10 moves": {"rejuvenate": 10},
}


def settings(types: tuple[str, ...]) -> dict[str, rd.ByType]:
    """Which events go missing: pick-ups are types 5 to 9."""
    return {"deterministic": rd.ByType([0.0] * 5 + [1.0] * 5).bind(types), "stochastic": rd.ByType(0.5).bind(types)}


def covered(posterior: rd.Posterior, truth: rd.StreamSet) -> float:
    """How often the true number of missing events lies within the central 90 % of its posterior, ends included."""
    inside = []
    for i in range(len(truth)):
        counts = np.array([len(z) for z in posterior.particles(i)])
        order = np.argsort(counts)
        cumulative = posterior.weights(i)[order].cumsum()
        low, high = (counts[order][min(np.searchsorted(cumulative, q), len(order) - 1)] for q in (0.05, 0.95))
        inside.append(low <= len(truth[i]) <= high)
    return float(np.mean(inside))


def judge(posterior: rd.Posterior, truth: rd.StreamSet, seconds: float) -> dict[str, Any]:
    """All figures of one method."""
    M = posterior.num_particles
    error = posterior.expected_count() - truth.lengths
    starts, durations = posterior.observed.starts, posterior.observed.durations
    result: dict[str, Any] = {
        "streams": len(truth),
        "particles": M,
        "seconds_per_stream": round(seconds / len(truth), 4),
        "final_ess_share": round(float(posterior.diagnostics.final_ess.mean()) / M, 4),
        "log_evidence": round(float(posterior.log_evidence.mean()), 3),
        "distinct_histories": {
            name: round(float(posterior.distinct_histories(starts + share * durations).mean()), 1)
            for name, share in (("T/4", 0.25), ("T/2", 0.5), ("3T/4", 0.75))
        },
        "count_error": round(float(error.mean()), 3),
        "count_error_se": round(float(error.std() / np.sqrt(len(error))), 3),
        "count_90_covered": round(covered(posterior, truth), 3),
        "distance_per_event": {},
    }
    if not np.isnan(posterior.diagnostics.accepted).all():
        result["moves_accepted"] = round(float(np.mean(posterior.diagnostics.accepted)), 3)
    for cost in COSTS:
        decoded = posterior.consensus(cost)
        result["distance_per_event"][str(cost)] = round(transport_score(truth, decoded, cost).distance_per_event, 4)
        if cost == COSTS[1]:
            result["interval_90_covered"] = round(interval_coverage(truth, decoded, cost).covered, 3)
    return result


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path, help="folder with the prepared taxi streams")
    parser.add_argument("--model", type=Path, required=True, help="a trained model's folder")
    parser.add_argument("--hidden", type=int, default=128, help="right-to-left cells")
    parser.add_argument("--split", default="test")
    parser.add_argument("--streams", type=int, default=None, help="only the first so many")
    parser.add_argument("--particles", type=int, default=50)
    parser.add_argument("--methods", nargs="*", default=["methods", "cures"], help="either, both or none")
    parser.add_argument("--cures", nargs="*", default=None, help="only these")
    parser.add_argument("--cure-streams", type=int, default=100, help="cures are tried on the first so many streams")
    parser.add_argument("--settings", nargs="*", default=["deterministic", "stochastic"])
    parser.add_argument("--ways", nargs="*", default=None, help="of training smoothers (smoothers.py)")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--runs", type=Path, default=Path("runs/taxi_imputation"))
    parser.add_argument("--out", type=Path, default=Path(__file__).with_suffix(".json"))
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    warnings.simplefilter("ignore", rd.DataNotice)

    parts = [rd.read_events(options.data / f"{name}.jsonl.gz") for name in TRAIN]
    data = {"train": rd.StreamSet([s for part in parts for s in part], types=parts[0].types, axis=parts[0].axis)}
    data["dev"] = rd.read_events(options.data / "dev.jsonl.gz")
    streams = rd.read_events(options.data / f"{options.split}.jsonl.gz")[: options.streams]
    report: dict[str, Any] = json.loads(options.out.read_text()) if options.out.exists() else {}
    report |= {
        "split": options.split,
        "streams": len(streams),
        "cure_streams": options.cure_streams,
        "hidden": options.hidden,
        "device": options.device,
        "date": time.strftime("%Y-%m-%d"),
    }
    for name in options.settings:
        missing = settings(streams.types)[name]
        model = rd.load_model(options.model)
        ways = options.ways or usual_ways(name == "deterministic")
        fitted, trained = train_smoothers(
            model, missing, data["train"], data["dev"], options.runs / name, options.hidden, ways, options.device
        )
        print(name, json.dumps(trained), flush=True)
        if not options.methods:
            continue
        best = max(trained, key=lambda way: trained[way]["dev_smoothing"])
        smoother = fitted[best]
        observed, truth = missing.censor(streams, seed=1)
        part = report.setdefault(name, {})
        part |= {"missing_events": truth.num_events, "training": trained, "used": best}
        part["log_q"] = log_q(smoother, observed, truth)
        print(best, json.dumps(part["log_q"]), flush=True)
        smoother = smoother.to(options.device)
        proposals = {"smoothing": smoother, "filtering": rd.Filtering(smoother.model, missing)}
        cures = {cure: CURES[cure] for cure in options.cures or CURES}
        for group, choices, number in (("methods", METHODS, len(streams)), ("cures", cures, options.cure_streams)):
            part.setdefault(group, {})
            for method in choices if group in options.methods else ():
                choice = {"particles": options.particles, **choices[method]}
                proposal = proposals[choice.pop("proposal", "smoothing")]
                begin = time.perf_counter()
                posterior = rd.impute(observed[:number], proposal, seed=0, **choice)
                part[group][method] = judge(posterior, truth[:number], time.perf_counter() - begin)
                print(group, method, json.dumps(part[group][method]), flush=True)
                options.out.write_text(json.dumps(report, indent=1) + "\n")


if __name__ == "__main__":
    main()
