"""How probable the truth is under each proposal: log q(z* | x) of every test stream (section 5.3)."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

import retrodict as rd
from experiments.data import test_pair
from experiments.imputing import METHODS
from experiments.sizes import kind_of
from experiments.store import Run

AT_ONCE = 50  # streams


def measure(run: Run, dataset: str, setting: str, device: str) -> dict[str, Any]:
    """log q of what is missing, by stream, under filtering, our smoother and the paper's.

    Where the model is the true process, of the streams that are imputed also the exact posterior's: log p(x, z) - log
    p(x), the latter by filtering with many particles.
    """
    observed, missing = test_pair(run, dataset, setting)
    names = {"filtering": "filtering", "smoothing": "smoothing", "paper": "paper-smoothing"}
    proposals = {name: METHODS[method].prepare(run, dataset, setting, device) for name, method in names.items()}
    result: dict[str, Any] = {"missing": missing.lengths}
    result |= {name: log_probs(proposal, observed, missing) for name, proposal in proposals.items()}
    if kind_of(dataset) == "synthetic":
        some = slice(run.kind(dataset).imputed)
        particles = run.scale.evidence_particles
        result["exact"] = _exact(proposals["filtering"], observed[some], missing[some], particles)
    return result


@torch.no_grad()
def log_probs(proposal: rd.Proposal, observed: rd.StreamSet, missing: rd.StreamSet) -> NDArray[np.float64]:
    """log q(z | x) of each stream, [N]."""
    parts = [slice(i, i + AT_ONCE) for i in range(0, len(observed), AT_ONCE)]
    values = [proposal.log_prob(missing[part], observed[part]).double().cpu().numpy() for part in parts]
    return np.concatenate(values)


@torch.no_grad()
def _exact(
    filtering: rd.Proposal, observed: rd.StreamSet, missing: rd.StreamSet, particles: int
) -> NDArray[np.float64]:
    complete, _ = rd.combine(observed, missing)
    joint = filtering.model.log_likelihood(complete).double().cpu().numpy()
    joint = joint + filtering.missingness.log_prob(observed, missing).numpy()
    return joint - rd.impute(observed, filtering, particles, seed=2).log_evidence
