"""What imputation experiments share: smoothers of the paper's form, trained in several ways, and log q of the truth."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import torch

import retrodict as rd

WAYS: dict[str, dict[str, Any]] = {
    "one mask": {"fresh_masks": False, "learn_from": "data"},
    "fresh masks": {"learn_from": "data"},
    "fresh masks, simulated": {"learn_from": "both", "redraw": 1},
    "streams of the model": {"learn_from": "model"},
    "exclusive by a tenth": {"beta": 0.9, "learn_from": "data"},
}


def usual_ways(deterministic: bool) -> list[str]:
    """Those worth comparing: where it is certain which events are hidden, a fresh mask is the same mask."""
    return ["fresh masks", "fresh masks, simulated"] if deterministic else ["one mask", "fresh masks"]


def train_smoothers(
    model: rd.Model,
    missing: rd.ByType,
    train: rd.StreamSet,
    dev: rd.StreamSet,
    folder: Path,
    hidden: int,
    ways: list[str],
    device: str = "cpu",
) -> tuple[dict[str, rd.Smoothing], dict[str, Any]]:
    """A smoother for each way of training it, and log q per missing dev event of each; fits are resumed."""
    fitted, report = {}, {}
    for name in ways:
        torch.manual_seed(0)
        place = folder / name.replace(", ", "_").replace(" ", "_")
        smoother = rd.Smoothing(model, missing, hidden, mixing=0)
        fitted[name] = rd.fit(smoother, train, dev, directory=place, device=device, progress=False, **WAYS[name])
        observed, hidden_events = missing.bind(dev.types).censor(dev, seed=3)
        record = fitted[name].training_record
        report[name] = {
            **{f"dev_{k}": v for k, v in log_q(fitted[name], observed, hidden_events).items()},
            "epochs": record["epochs"],
            "seconds": record["seconds"],
        }
    return fitted, report


def log_q(smoother: rd.Proposal, observed: rd.StreamSet, missing: rd.StreamSet) -> dict[str, float]:
    """log q of the truth, nats per missing event, and on which share of the streams smoothing does better."""
    filtering = rd.Filtering(smoother.model, smoother.given_missingness)
    with torch.no_grad():
        ours, theirs = (q.log_prob(missing, observed).double().cpu().numpy() for q in (smoother, filtering))
    some = missing.lengths > 0
    return {
        "smoothing": round(float(ours.sum() / missing.num_events), 4),
        "filtering": round(float(theirs.sum() / missing.num_events), 4),
        "smoothing_better": round(float(np.mean(ours[some] > theirs[some])), 4),
    }
