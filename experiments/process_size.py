"""How hard the paper's synthetic sets are, by the number of cells of the process they are drawn from.

    python experiments/process_size.py

The paper does not say how many cells its processes had. For each size: on what share of test streams the exact
posterior gives the truth more probability than filtering does (its log q is log p(x, z) - log p(x), with log p(x) by
filtering with many particles), both in nats per missing event, and filtering's effective sample size without
resampling, as a share of 50 particles. Results go to ``process_size.json`` beside this file.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path

import numpy as np
import torch

import retrodict as rd
from retrodict.datasets.synthetic import DETERMINISTIC, STOCHASTIC, synthetic

SETTINGS = {"deterministic": DETERMINISTIC, "stochastic": STOCHASTIC}


@torch.no_grad()
def measure(model: rd.NeuralHawkes, streams: rd.StreamSet, missing: rd.ByType, particles: int) -> dict[str, float]:
    """Of one set, in one setting."""
    filtering = rd.Filtering(model, missing)
    observed, hidden = missing.censor(streams, seed=1)
    filtered = filtering.log_prob(hidden, observed).double().numpy()
    joint = model.log_likelihood(streams).double().numpy() + filtering.missingness.log_prob(observed, hidden).numpy()
    exact = joint - rd.impute(observed, filtering, particles, seed=2).log_evidence
    some = hidden.lengths > 0
    ess = rd.impute(observed, filtering, 50, resample=None, seed=3).diagnostics.final_ess
    return {
        "exact_posterior_better": round(float(np.mean(exact[some] > filtered[some])), 3),
        "exact_posterior": round(float(exact.sum()) / hidden.num_events, 3),
        "filtering": round(float(filtered.sum()) / hidden.num_events, 3),
        "filtering_ess_share": round(float(ess.mean()) / 50, 3),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sizes", type=int, nargs="*", default=[32, 64, 128, 256])
    parser.add_argument("--sets", type=int, nargs="*", default=[0, 1, 2])
    parser.add_argument("--streams", type=int, default=200)
    parser.add_argument("--particles", type=int, default=2000, help="for log p(x)")
    parser.add_argument("--out", type=Path, default=Path(__file__).with_suffix(".json"))
    options = parser.parse_args()
    torch.set_num_threads(1)
    found: dict[str, dict[str, dict[str, float]]] = {}
    for size in options.sizes:
        of_size = found[f"{size} cells"] = {}
        for seed in options.sets:
            model, (_, _, test) = synthetic(seed, size, (1, 1, options.streams))
            for setting, missing in SETTINGS.items():
                of_size[f"set {seed}, {setting}"] = result = measure(model, test, missing, options.particles)
                print(size, seed, setting, json.dumps(result), flush=True)
    options.out.write_text(json.dumps(found, indent=1) + "\n")


if __name__ == "__main__":
    main()
