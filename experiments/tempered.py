"""How good could a proposal between filtering and the posterior be on the paper's synthetic sets?

    python experiments/tempered.py

Filtering's particles with their weights raised to a power α stand for draws from p_α(z | x) ∝ f(z | x) w(z)^α, w being
p(x, z) / f(z | x): filtering for α = 0, the posterior for 1. For each set and setting and several α: on which share of
the test streams log p_α of what is missing is higher than log f. Normalisers are averages over the particles of
filtering. Results go to ``tempered.json`` beside this file.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

import numpy as np
import torch
from scipy.special import logsumexp

import retrodict as rd
from retrodict.datasets.synthetic import DETERMINISTIC, STOCHASTIC, synthetic

SETTINGS = {"deterministic": DETERMINISTIC, "stochastic": STOCHASTIC}
POWERS = (0.02, 0.1, 0.2, 0.3, 0.4, 0.5, 0.7, 1.0)


@torch.no_grad()
def shares(filtering: rd.Filtering, test: rd.StreamSet, particles: int) -> dict[str, float]:
    """On which share of the streams the truth is more probable than under filtering, by power."""
    observed, missing = filtering.missingness.censor(filtering.model.matched(test), seed=1)
    complete, _ = rd.combine(observed, missing)
    joint = filtering.model.log_likelihood(complete).double().numpy()
    joint = joint + filtering.missingness.log_prob(observed, missing).numpy()
    truth = joint - filtering.log_prob(missing, observed).double().numpy()
    posterior = rd.impute(observed, filtering, particles, seed=5, resample=None)
    with np.errstate(divide="ignore"):  # a weight may be zero
        drawn = np.log(posterior.all_weights * particles) + posterior.log_evidence[:, None]
    some = missing.lengths > 0
    found = {}
    for power in POWERS:
        gain = power * truth - (logsumexp(power * drawn, axis=1) - np.log(particles))
        found[f"{power:g}"] = round(float(np.mean(gain[some] > 0)), 4)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sets", type=int, nargs="*", default=list(range(10)))
    parser.add_argument("--particles", type=int, default=500)
    options = parser.parse_args()
    torch.set_num_threads(1)
    report: dict[str, Any] = {"particles": options.particles}
    for number in options.sets:
        model, (train, _, test) = synthetic(number)
        model.adapt(train)
        for setting, missing in SETTINGS.items():
            name = f"set {number}, {setting}"
            report[name] = shares(rd.Filtering(model, missing), test, options.particles)
            print(name, json.dumps(report[name]), flush=True)
            Path(__file__).with_suffix(".json").write_text(json.dumps(report, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
