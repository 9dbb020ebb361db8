"""Learning how events go missing, the model being known: rates by type, delays, and a network over the history.

    python -m experiments.em_mechanism

200 incomplete streams of a Hawkes process. Standard errors are those of the estimate from eight disjoint parts of the
streams. In the last part events of type 0 are hidden nine times out of ten within half a unit of time after an event of
type 1, and one time out of ten otherwise: a contextual mechanism and rates by type are both learned from the incomplete
streams, and 200 others are imputed with each, and with the truth. Results go to runs/em/mechanism.json.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

import retrodict as rd
from experiments.em_hawkes import TRUTH as MODEL
from experiments.store import write_json
from retrodict.evaluate import paired_permutation_test, transport_score

STREAMS, ROUNDS, COSTS = 200, 40, (0.1, 0.3, 1.0)
Estimate = Callable[[rd.StreamSet], tuple[NDArray[np.float64], list[float]]]


def streams(seed: int) -> rd.StreamSet:
    """Complete streams."""
    return rd.simulate(MODEL, STREAMS, end=20.0, seed=seed)


def learn(start: rd.Missingness, seen: rd.StreamSet, rounds: int, particles: int) -> tuple[Any, list[float]]:
    """A mechanism learned from incomplete streams, and the evidence of every round."""
    learned = rd.learn_missing(rd.Filtering(MODEL, start), seen, rounds=rounds, particles=particles, seed=1)
    return learned.missing, learned.evidence


def rates(seen: rd.StreamSet) -> tuple[NDArray[np.float64], list[float]]:
    """Missing rates by type."""
    found, evidence = learn(rd.ByType([0.4, 0.4]), seen, 25, 30)
    return found.rates(torch.zeros(())).numpy(), evidence


def delays(seen: rd.StreamSet) -> tuple[NDArray[np.float64], list[float]]:
    """Mean delays by type."""
    found, evidence = learn(rd.ReportingDelay("exponential", mean={"0": 2.2, "1": 2.2}), seen, ROUNDS, 20)
    return np.array([found.config()["mean"][k] for k in ("0", "1")]), evidence


def compare(truth: rd.Missingness, values: tuple[float, float], seed: int, estimate: Estimate) -> dict[str, Any]:
    """The estimate from all streams, with standard errors from eight parts of them."""
    seen, _ = truth.censor(streams(seed), seed=seed + 1)
    whole, evidence = estimate(seen)
    parts = np.array([estimate(seen[i::8])[0] for i in range(8)])
    error = parts.std(0, ddof=1) / np.sqrt(len(parts))
    from_truth = (whole - values) / error
    return {"estimate": whole, "standard_error": error, "errors_from_truth": from_truth, "evidence": evidence}


def context() -> dict[str, Any]:
    """Evidence, expected counts and distances with rates by type, a contextual mechanism, and the truth."""
    truth = rd.After("1", within=0.5, rates={"0": 0.9}, otherwise={"0": 0.1})
    seen, _ = truth.censor(streams(5), seed=6)
    test, hidden = truth.censor(streams(7), seed=8)
    network = rd.Contextual(["0", "1"], scales=[0.2, 1.0, 5.0], rate=0.2)
    result: dict[str, Any] = {"missing": int((hidden.event_types == 0).sum())}
    distances = {}
    for name, start in {"rates by type": rd.ByType({"0": 0.3}), "contextual": network, "truth": truth}.items():
        found, evidence = (start, []) if name == "truth" else learn(start, seen, ROUNDS // 2, 20)
        posterior = rd.impute(test, rd.Filtering(MODEL, found), particles=100, seed=9)
        distances[name] = [transport_score(hidden, posterior.consensus(c), c).distance_by_stream for c in COSTS]
        result[name] = {
            "evidence": evidence,
            "test_evidence_per_event": float(posterior.log_evidence.sum()) / test.num_events,
            "expected_missing": float(posterior.expected_count("0").sum()),
            "distance": [float(distance.mean()) for distance in distances[name]],
        }
    result["p_value"] = paired_permutation_test(distances["contextual"][1], distances["rates by type"][1]).p_value
    return result


def main(folder: Path = Path("runs/em")) -> None:
    """Learn all three."""
    torch.set_num_threads(1)
    delay = rd.ReportingDelay("exponential", mean={"0": 3.0, "1": 1.5})
    result = {
        "context": context(),
        "rates": compare(rd.ByType([0.6, 0.2]), (0.6, 0.2), 1, rates),
        "delays": compare(delay, (3.0, 1.5), 3, delays),
    }
    write_json(folder / "mechanism.json", result)
    print((folder / "mechanism.json").read_text(encoding="utf-8"))


if __name__ == "__main__":
    main()
