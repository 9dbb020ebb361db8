"""The paper's synthetic sets: is log q of the truth higher under smoothing than under filtering, and by how much?

    python experiments/synthetic.py --sets 0 1

Each set is drawn from a neural Hawkes process with parameters uniform in [-1, 1] (``retrodict/datasets/synthetic.py``):
5000 training, 500 dev and 500 test streams of 11 to 20 events, censored in two ways. The model is the process itself.
Smoothers are trained in several ways, kept in --runs and resumed; the one with the best log q on dev is used.

Beside the smoother stands the best any proposal could do on streams whose end is no event: the exact posterior, its
log q being log p(x, z) - log p(x), with log p(x) by filtering with many particles (a little too low on average, by half
the variance of its logarithm, which flatters the posterior). A filter that proposes from λ^p without the factor ρ, as
the paper's section 3.1 has it (its appendix C.6 adds the factor), is reported too.
Results go to ``synthetic.json`` beside this file.
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
from retrodict.datasets.synthetic import DETERMINISTIC, STOCHASTIC, synthetic

SETTINGS = {"deterministic": DETERMINISTIC, "stochastic": STOCHASTIC}


@torch.no_grad()
def bounds(smoother: rd.Smoothing, observed: rd.StreamSet, missing: rd.StreamSet, particles: int) -> dict[str, float]:
    """The exact posterior against filtering, and the smoother against a filter that knows nothing of ρ."""
    model, mechanism = smoother.model, smoother.missingness
    filtering = rd.Filtering(model, smoother.given_missingness)
    ours, theirs = (q.log_prob(missing, observed).double().numpy() for q in (smoother, filtering))
    complete, _ = rd.combine(observed, missing)
    joint = model.log_likelihood(complete).double().numpy() + mechanism.log_prob(observed, missing).numpy()
    evidence = rd.impute(observed, filtering, particles=particles, seed=2).log_evidence
    exact = joint - evidence
    # Without ρ every event of the model may be proposed: log q is log p of the missing events and of none other.
    everything = rd.Filtering(model, rd.ByType(1.0))
    printed = everything.log_prob(missing, observed).double().numpy()
    some = missing.lengths > 0
    return {
        "exact_posterior": round(float(exact.sum() / missing.num_events), 4),
        "exact_posterior_better": round(float(np.mean(exact[some] > theirs[some])), 4),
        "printed_filter": round(float(printed.sum() / missing.num_events), 4),
        "smoothing_better_than_printed_filter": round(float(np.mean(ours[some] > printed[some])), 4),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sets", type=int, nargs="*", default=[0, 1])
    parser.add_argument("--settings", nargs="*", default=list(SETTINGS))
    parser.add_argument("--ways", nargs="*", default=None, help="of training (smoothers.py)")
    parser.add_argument("--size", type=int, default=64, help="hidden cells of the random process")
    parser.add_argument("--hidden", type=int, default=64, help="right-to-left cells")
    parser.add_argument("--particles", type=int, default=2000, help="for log p(x) of the exact posterior")
    parser.add_argument("--only-train", action="store_true")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--runs", type=Path, default=Path("runs/synthetic"))
    parser.add_argument("--out", type=Path, default=Path(__file__).with_suffix(".json"))
    options = parser.parse_args()
    torch.set_num_threads(1)
    warnings.simplefilter("ignore", rd.DataNotice)
    report: dict[str, Any] = {"size": options.size, "hidden": options.hidden, "date": time.strftime("%Y-%m-%d")}
    for seed in options.sets:
        model, (train, dev, test) = synthetic(seed, options.size)
        for setting in options.settings:
            missing = SETTINGS[setting]
            ways = options.ways or usual_ways(setting == "deterministic")
            folder = options.runs / f"{options.size}_{seed}_{setting}"
            fitted, trained = train_smoothers(model, missing, train, dev, folder, options.hidden, ways, options.device)
            print(seed, setting, json.dumps(trained), flush=True)
            if options.only_train:
                continue
            best = max(trained, key=lambda way: trained[way]["dev_smoothing"])
            smoother = fitted[best]
            observed, hidden = missing.censor(test, seed=1)
            part = report[f"set {seed}, {setting}"] = {"training": trained, "used": best}
            part["log_q"] = {
                **log_q(smoother, observed, hidden),
                **bounds(smoother, observed, hidden, options.particles),
            }
            part["ess_share_without_resampling"] = {
                name: round(float(rd.impute(observed, q, resample=None, seed=1).diagnostics.final_ess.mean()) / 50, 4)
                for name, q in {"filtering": rd.Filtering(model, missing), **fitted}.items()
            }
            print(json.dumps({k: part[k] for k in ("used", "log_q", "ess_share_without_resampling")}), flush=True)
            options.out.write_text(json.dumps(report, indent=1) + "\n")


if __name__ == "__main__":
    main()
