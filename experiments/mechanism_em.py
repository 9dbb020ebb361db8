"""Learning how events go missing, the model being known: rates by type, delays, and a network over the history.

    python experiments/mechanism_em.py

200 incomplete streams of a Hawkes process. Standard errors are those of the estimate from eight disjoint parts of the
streams. In the last part events of type 0 are hidden nine times out of ten within half a unit of time after an event of
type 1, and one time out of ten otherwise: a contextual mechanism and rates by type are both learned from the incomplete
streams, and 200 others are imputed with each, and with the truth. Results go to ``mechanism_em.json`` beside this file.
"""

from __future__ import annotations

import argparse
import json
import time
from pathlib import Path

import numpy as np
import torch

import retrodict as rd
from retrodict.evaluate import paired_permutation_test
from retrodict.missingness.base import Missingness

MODEL = rd.Hawkes([0.4, 0.3], [[0.3, 0.4], [0.2, 0.2]], 2.0)
COSTS = (0.1, 0.3, 1.0)


def streams(count: int, seed: int) -> rd.StreamSet:
    return rd.simulate(MODEL, count, end=20.0, seed=seed)


def learn(start: Missingness, seen: rd.StreamSet, rounds: int, particles: int) -> tuple[Missingness, list[float]]:
    learned = rd.learn_missing(rd.Filtering(MODEL, start), seen, rounds=rounds, particles=particles, seed=1)
    return learned.missing, learned.evidence


def rates() -> dict[str, object]:
    truth = np.array([0.6, 0.2])
    seen, _ = rd.ByType(truth).censor(streams(200, 1), seed=2)

    def estimate(some: rd.StreamSet) -> tuple[np.ndarray, list[float]]:
        found, evidence = learn(rd.ByType([0.4, 0.4]), some, 25, 30)
        return found.rates(torch.zeros(())).numpy(), evidence

    whole, evidence = estimate(seen)
    parts = np.array([estimate(seen[i::8])[0] for i in range(8)])
    return report(truth, whole, parts, evidence)


def delays(rounds: int) -> dict[str, object]:
    truth = np.array([3.0, 1.5])
    names = {"0": 3.0, "1": 1.5}
    seen, _ = rd.ReportingDelay("exponential", mean=names).censor(streams(200, 3), seed=4)

    def estimate(some: rd.StreamSet) -> tuple[np.ndarray, list[float]]:
        start = rd.ReportingDelay("exponential", mean=dict.fromkeys(names, 2.2))
        found, evidence = learn(start, some, rounds, 20)
        return np.array([found.config()["mean"][k] for k in names]), evidence

    whole, evidence = estimate(seen)
    parts = np.array([estimate(seen[i::8])[0] for i in range(8)])
    return report(truth, whole, parts, evidence)


def report(truth: np.ndarray, whole: np.ndarray, parts: np.ndarray, evidence: list[float]) -> dict[str, object]:
    error = parts.std(0, ddof=1) / np.sqrt(len(parts))
    return {
        "truth": truth.tolist(),
        "estimate": np.round(whole, 4).tolist(),
        "standard_error": np.round(error, 4).tolist(),
        "errors_from_truth": np.round((whole - truth) / error, 2).tolist(),
        "evidence": np.round(evidence, 5).tolist(),
    }


def context(rounds: int) -> dict[str, object]:
    truth = rd.After("1", within=0.5, rates={"0": 0.9}, otherwise={"0": 0.1})
    seen, _ = truth.censor(streams(200, 5), seed=6)
    test, hidden = truth.censor(streams(200, 7), seed=8)
    starts: dict[str, Missingness] = {
        "rates by type": rd.ByType({"0": 0.3}),
        "contextual": rd.Contextual(["0", "1"], scales=[0.2, 1.0, 5.0], rate=0.2),
    }
    result: dict[str, object] = {"hidden_share": round(hidden.num_events / (hidden.num_events + test.num_events), 3)}
    distances = {}
    for name, start in [*starts.items(), ("truth", truth)]:
        began = time.perf_counter()
        found, evidence = (start, []) if name == "truth" else learn(start, seen, rounds, 20)
        posterior = rd.impute(test, rd.Filtering(MODEL, found), particles=100, seed=9)
        scores = [rd.score(hidden, posterior.consensus(cost), [cost], 0.5).transport[0] for cost in COSTS]
        distances[name] = [t.distance_by_stream for t in scores]
        result[name] = {
            "evidence": np.round(evidence, 5).tolist(),
            "test_evidence_per_event": round(float(posterior.log_evidence.sum()) / test.num_events, 4),
            "expected_missing_of_type_0": round(float(posterior.expected_count("0").sum()), 1),
            "missing_of_type_0": int((hidden.event_types == 0).sum()),
            "distance": {
                f"{c:g}": round(float(np.mean(t.distance_by_stream)), 4) for c, t in zip(COSTS, scores, strict=True)
            },
            "seconds": round(time.perf_counter() - began, 1),
        }
        print(name, json.dumps(result[name])[:400], flush=True)
    test_of = paired_permutation_test(distances["contextual"][1], distances["rates by type"][1])
    result["p_value_of_the_distance"] = test_of.p_value
    return result


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=40)
    parser.add_argument("--out", type=Path, default=Path(__file__).with_suffix(".json"))
    options = parser.parse_args()
    torch.set_num_threads(1)
    result = {"context": context(options.rounds // 2), "rates": rates(), "delays": delays(options.rounds)}
    options.out.write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")
    for name in ("rates", "delays"):
        print(name, {k: v for k, v in result[name].items() if k != "evidence"})


if __name__ == "__main__":
    main()
