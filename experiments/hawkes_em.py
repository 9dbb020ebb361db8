"""Monte Carlo EM on a Hawkes process of which half of the events are hidden: are the parameters recovered?

    python experiments/hawkes_em.py

Six disjoint sets of 200 streams; on each the process is fitted by EM to what is left, to the same as if it were all
(naive), and to the complete streams. Each parameter's estimate is the mean over the sets, its standard error their
standard deviation over the root of six. Results go to ``hawkes_em.json`` beside this file.
"""

from __future__ import annotations

import argparse
import json
import warnings
from pathlib import Path

import numpy as np
import torch

import retrodict as rd

TRUTH = rd.Hawkes([0.4, 0.3], [[0.3, 0.4], [0.2, 0.2]], 2.0)
NAMES = ["base 0", "base 1", "0 -> 0", "0 -> 1", "1 -> 0", "1 -> 1", "decay"]


def parameters(model: rd.Hawkes) -> list[float]:
    return torch.cat([model.base, model.excitation.reshape(-1), model.decay.reshape(-1)]).tolist()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sets", type=int, default=6)
    parser.add_argument("--streams", type=int, default=200)
    parser.add_argument("--epochs", type=int, default=100)
    parser.add_argument("--particles", type=int, default=100)
    parser.add_argument("--runs", type=Path, default=Path("runs/hawkes_em"))
    parser.add_argument("--out", type=Path, default=Path(__file__).with_suffix(".json"))
    options = parser.parse_args()
    torch.set_num_threads(1)
    warnings.simplefilter("ignore", rd.DataNotice)
    missing = rd.ByType(0.5)
    common = {
        "epochs": options.epochs, "patience": options.epochs, "learning_rate": 0.03, "averaging": 0.99,
        "progress": False, "device": "cpu",
    }  # fmt: skip
    found: dict[str, list[list[float]]] = {"em": [], "naive": [], "complete": []}
    evidence = []
    for number in range(options.sets):
        complete = rd.simulate(TRUTH, options.streams, end=20.0, seed=number)
        seen, _ = missing.censor(complete, seed=100 + number)
        folder = options.runs / str(number)
        fitted = rd.fit_incomplete(
            rd.Hawkes,
            seen,
            missing,
            seen[:40],
            filtering=True,
            particles=options.particles,
            draws=2,
            directory=folder / "em",
            **common,
        )
        found["em"].append(parameters(fitted.model))
        evidence.append([row["train_evidence"] for row in fitted.history])
        found["naive"].append(parameters(rd.fit(rd.Hawkes, seen, seen, directory=folder / "naive", **common)))
        found["complete"].append(parameters(rd.fit(rd.Hawkes, complete, complete, directory=folder / "all", **common)))
        print(number, {k: np.round(v[-1], 3).tolist() for k, v in found.items()}, flush=True)
    truth = np.array(parameters(TRUTH))
    result: dict[str, object] = {
        "sets": options.sets,
        "streams": options.streams,
        "truth": dict(zip(NAMES, truth.tolist(), strict=True)),
    }
    for name, rows in found.items():
        values = np.array(rows)
        mean, error = values.mean(0), values.std(0, ddof=1) / np.sqrt(len(values))
        result[name] = {
            "mean": np.round(mean, 4).tolist(),
            "standard_error": np.round(error, 4).tolist(),
            "errors_from_truth": np.round((mean - truth) / error, 2).tolist(),
        }
        print(name, result[name])
    result["evidence"] = np.round(evidence, 4).tolist()
    options.out.write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
