"""Monte Carlo EM on a Hawkes process of which half of the events are hidden: are the parameters recovered?

    python experiments/hawkes_em.py

800 streams; the process is fitted by EM to what is left, to the same as if it were all (naive), and to the complete
streams. Standard errors come from the information Σ s sᵀ of each stream's score s at the estimate; for EM a stream's
score is the mean of the complete-data score over draws of its missing events (Fisher's identity). They are of the
logarithms of the parameters, which are what is estimated. Results go to ``hawkes_em.json`` beside this file.
"""

from __future__ import annotations

import argparse
import json
import warnings
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray

import retrodict as rd
from retrodict.train.mechanism import completions

TRUTH = rd.Hawkes([0.4, 0.3], [[0.3, 0.4], [0.2, 0.2]], 2.0)
NAMES = ["base 0", "base 1", "0 -> 0", "0 -> 1", "1 -> 0", "1 -> 1", "decay"]


def logs(model: rd.Hawkes) -> NDArray[np.float64]:
    parts = (model.log_base, model.log_excitation.reshape(-1), model.log_decay.reshape(-1))
    return torch.cat(parts).detach().double().numpy()


def scores(model: rd.Hawkes, streams: rd.StreamSet) -> NDArray[np.float64]:
    """The gradient of each stream's log-likelihood, [N, 7]."""
    rows = []
    for stream in range(len(streams)):
        model.zero_grad()
        model.log_likelihood(streams[stream : stream + 1]).sum().backward()
        grads = (model.log_base.grad, model.log_excitation.grad.reshape(-1), model.log_decay.grad.reshape(-1))
        rows.append(torch.cat(grads).double().numpy())
    return np.array(rows)


def report(model: rd.Hawkes, by_stream: NDArray[np.float64]) -> dict[str, list[float]]:
    """Estimates, standard errors, and how many of these they are from the truth."""
    error = np.sqrt(np.diag(np.linalg.inv(by_stream.T @ by_stream)))
    return {
        "estimate": np.round(np.exp(logs(model)), 4).tolist(),
        "standard_error": np.round(np.exp(logs(model)) * error, 4).tolist(),
        "errors_from_truth": np.round((logs(model) - logs(TRUTH)) / error, 2).tolist(),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--streams", type=int, default=800)
    parser.add_argument("--epochs", type=int, default=40)
    parser.add_argument("--particles", type=int, default=60)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--runs", type=Path, default=Path("runs/hawkes_em"))
    parser.add_argument("--out", type=Path, default=Path(__file__).with_suffix(".json"))
    options = parser.parse_args()
    torch.set_num_threads(1)
    warnings.simplefilter("ignore", rd.DataNotice)
    missing = rd.ByType(0.5)
    complete = rd.simulate(TRUTH, options.streams, end=20.0, seed=options.seed)
    seen, _ = missing.censor(complete, seed=options.seed + 100)
    common = {
        "epochs": options.epochs, "patience": options.epochs, "learning_rate": 0.03, "averaging": 0.99,
        "progress": False, "device": "cpu",
    }  # fmt: skip
    fitted = rd.fit_incomplete(
        rd.Hawkes, seen, missing, seen, filtering=True, particles=options.particles, draws=2,
        directory=options.runs / "em", **common,
    )  # fmt: skip
    posterior = rd.impute(seen, rd.Filtering(fitted.model, missing), particles=300, seed=1)
    expected = np.mean([scores(fitted.model, part.streams) for part in completions(posterior, 4, 1)], 0)
    naive = rd.fit(rd.Hawkes, seen, seen, directory=options.runs / "naive", **common)
    whole = rd.fit(rd.Hawkes, complete, complete, directory=options.runs / "complete", **common)
    result: dict[str, object] = {
        "streams": options.streams,
        "particles": options.particles,
        "parameters": NAMES,
        "truth": np.round(np.exp(logs(TRUTH)), 4).tolist(),
        "em": report(fitted.model, expected),
        "naive": report(naive, scores(naive, seen)),
        "complete": report(whole, scores(whole, complete)),
        "evidence": [round(row["train_evidence"], 4) for row in fitted.history],
    }
    options.out.write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")
    for name in ("em", "naive", "complete"):
        print(name, result[name])


if __name__ == "__main__":
    main()
