"""How probable the truth is under each proposal: log q(z* | x) / |z*|, one cloud a data set (section 5.3)."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from retrodict.events.combine import combine
from retrodict.events.stream_set import StreamSet
from retrodict.experiments.data import mechanism, test_pair
from retrodict.experiments.jobs import Job
from retrodict.experiments.place import Place
from retrodict.experiments.plan import model_job, smoother_job
from retrodict.experiments.scale import AVERSE, LOOKAHEAD, SETTINGS, Scale, kind_of
from retrodict.experiments.training import between
from retrodict.proposals.base import Proposal
from retrodict.proposals.filtering import Filtering
from retrodict.proposals.smoothing import Smoothing
from retrodict.smc.impute import impute

AT_ONCE = 50  # streams
NAMES = {
    "ours": "smoothing",
    "data": "data_smoothing",
    LOOKAHEAD: "lookahead_smoothing",
    AVERSE: "averse_smoothing",
    "paper": "paper_smoothing",
}


def jobs(scale: Scale) -> list[Job]:
    """One for each data set and setting."""
    return [
        Job(
            f"log-q/{dataset}.{setting}",
            "measure",
            "log_q:measure",
            {"dataset": dataset, "setting": setting},
            (model_job(dataset), *(smoother_job(dataset, setting, way) for way in scale.ways(dataset))),
        )
        for dataset in scale.datasets
        for setting in SETTINGS
    ]


def measure(place: Place, device: str, dataset: str, setting: str) -> dict[str, Any]:
    """log q of what is missing from each test stream, under filtering and under smoothers trained in several ways.

    The averse one also appears as it was before it was trained to be so, and damped; where there is none, the one
    taught by data is damped. Where the model is the true process, its exact posterior too: log p(x, z) - log p(x), the
    latter by filtering with many particles.
    """
    observed, missing = test_pair(place, dataset, setting)
    ways = place.scale.ways(dataset)
    smoothers = {NAMES[way]: place.smoother(dataset, setting, way, device) for way in ways}
    filtering = Filtering(place.model(dataset, device), mechanism(setting, dataset, observed.types))
    best = smoothers[NAMES[AVERSE if AVERSE in ways else "data"]]
    assert isinstance(best, Smoothing)
    proposals = {"filtering": filtering, **smoothers, "damped_smoothing": best.damped(place.scale.damping)}
    if AVERSE in ways:
        proposals["between_smoothing"] = between(smoothers[NAMES[LOOKAHEAD]], place.scale.aversion)
    result: dict[str, Any] = {"missing": missing.lengths}
    result |= {name: log_probs(proposal, observed, missing) for name, proposal in proposals.items()}
    if kind_of(dataset) == "synthetic":
        result["exact_posterior"] = _exact(filtering, observed, missing, place.scale.evidence_particles)
    return result


@torch.no_grad()
def log_probs(proposal: Proposal, observed: StreamSet, missing: StreamSet) -> NDArray[np.float64]:
    """log q(z | x) of each stream, [N]."""
    parts = [
        proposal.log_prob(missing[i : i + AT_ONCE], observed[i : i + AT_ONCE]).double().cpu().numpy()
        for i in range(0, len(observed), AT_ONCE)
    ]
    return np.concatenate(parts)


@torch.no_grad()
def _exact(filtering: Filtering, observed: StreamSet, missing: StreamSet, particles: int) -> NDArray[np.float64]:
    complete, _ = combine(observed, missing)
    joint = filtering.model.log_likelihood(complete).double().cpu().numpy()
    joint = joint + filtering.missingness.log_prob(observed, missing).numpy()
    return joint - impute(observed, filtering, particles, seed=2).log_evidence
