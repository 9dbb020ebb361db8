"""What looking ahead gains over mixing past and future, for smoothers taught by the model itself.

    python experiments/lookahead.py

A random neural Hawkes process (parameters uniform in [-1, 1], 4 types) is the model; its streams are censored in two
ways. Both kinds of smoother learn from as many streams that the model draws. Reported for test streams: log q per
missing event, on which share of them it is higher than under filtering, the effective sample size of 50 particles
without resampling as a share of them, and the seconds that training and imputing took. Results go to ``lookahead.json``
beside this file.
"""

from __future__ import annotations

import argparse
import json
import time
from pathlib import Path

import numpy as np
import torch

import retrodict as rd
from retrodict.datasets.synthetic import DETERMINISTIC, STOCHASTIC, random_neural_hawkes

SETTINGS = {"two types hidden": DETERMINISTIC, "half of all events hidden": STOCHASTIC}


def measure(proposal: rd.Proposal, observed: rd.StreamSet, missing: rd.StreamSet, base: np.ndarray | None) -> dict:
    """log q, and how well particles do."""
    with torch.no_grad():
        parts = [proposal.log_prob(missing[i : i + 20], observed[i : i + 20]) for i in range(0, len(observed), 20)]
    log_q, some = torch.cat(parts).double().numpy(), missing.lengths > 0
    began = time.perf_counter()
    sizes = rd.impute(observed, proposal, particles=50, resample=None, seed=0).diagnostics.final_ess
    found = {
        "log_q": round(float(log_q.sum() / missing.num_events), 3),
        "ess": round(float(sizes.mean()) / 50, 3),
        "impute_seconds": round(time.perf_counter() - began, 1),
    }
    if base is not None:
        found["better"] = round(float(np.mean(log_q[some] > base[some])), 3)
    return found | {"by_stream": log_q}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cells", type=int, default=128, help="of the process")
    parser.add_argument("--end", type=float, default=4.0)
    parser.add_argument("--streams", type=int, default=1000, help="that the model draws for an epoch")
    parser.add_argument("--test", type=int, default=100)
    parser.add_argument("--epochs", type=int, default=25)
    parser.add_argument("--units", type=int, default=128)
    options = parser.parse_args()
    torch.set_num_threads(1)
    model = random_neural_hawkes(4, options.cells, seed=1)
    streams = rd.simulate(model, options.streams + 200 + options.test, end=options.end, seed=1)
    train, dev, test = (streams[i:j] for i, j in ((0, options.streams), (options.streams, options.streams + 200),
                                                 (options.streams + 200, None)))  # fmt: skip
    results: dict = {"options": vars(options), "mean_length": round(float(streams.lengths.mean()), 2)}
    for setting, mechanism in SETTINGS.items():
        observed, missing = mechanism.censor(test, seed=1)
        rows = {"filtering": measure(rd.Filtering(model, mechanism), observed, missing, None)}
        kinds = {
            "mixing": lambda mechanism=mechanism: rd.Smoothing(model, mechanism, 64, mixing=options.units),
            "lookahead": lambda mechanism=mechanism: rd.Lookahead(model, mechanism, 64, options.units),
        }
        for name, make in kinds.items():
            torch.manual_seed(0)
            began = time.perf_counter()
            smoother = rd.fit(make(), train, dev, epochs=options.epochs, progress=False)
            took = time.perf_counter() - began
            rows[name] = measure(smoother, observed, missing, rows["filtering"]["by_stream"])
            rows[name]["train_seconds"] = round(took, 1)
        results[setting] = {name: {k: v for k, v in row.items() if k != "by_stream"} for name, row in rows.items()}
        print(setting, json.dumps(results[setting]), flush=True)
    Path(__file__).with_suffix(".json").write_text(json.dumps(results, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
