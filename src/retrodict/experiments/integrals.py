"""How many points the survival integrals need: what each rule does to weights, evidence and distance (appendix C.3)."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from retrodict.evaluate import transport_score
from retrodict.experiments.data import test_pair
from retrodict.experiments.jobs import Job
from retrodict.experiments.place import Place
from retrodict.experiments.plan import model_job, smoother_job
from retrodict.experiments.scale import MIDDLE, STOCHASTIC, Scale, costs_of, kind_of
from retrodict.smc.compensator import Quadrature, Rule, SharedPoints
from retrodict.smc.impute import impute
from retrodict.smc.posterior import Posterior

RULES: dict[str, Rule] = {f"quadrature-{n}": Quadrature(n) for n in (1, 2, 4, 8)} | {
    f"monte-carlo-{n}": SharedPoints(n) for n in (1, 5, 20)
}
ACCURATE = Quadrature(32)


def jobs(scale: Scale) -> list[Job]:
    """One for each rule."""
    return [
        Job(
            f"integrals/{dataset}.{rule}",
            "measure",
            "integrals:measure",
            {"dataset": dataset, "rule": rule},
            (model_job(dataset), smoother_job(dataset, STOCHASTIC, "ours")),
        )
        for dataset in scale.integral_kinds
        for rule in RULES
    ]


def measure(place: Place, device: str, dataset: str, rule: str) -> dict[str, Any]:
    """Errors of the log weights of the same particles, of the evidence, and the distance at the middle cost.

    Without resampling the particles do not depend on the rule, so that their weights differ by the integrals alone. The
    evidence is compared with that of many particles and an accurate rule.
    """
    scale = place.scale
    observed, missing = (part[: scale.integral_streams] for part in test_pair(place, dataset, STOCHASTIC))
    smoother = place.smoother(dataset, STOCHASTIC, "ours", device)
    M = scale.particles[kind_of(dataset)][0]
    same: dict[str, Any] = {"particles": M, "seed": scale.seed, "engine": "torch", "sampler": "thinning"}
    error = _log_weights(impute(observed, smoother, resample=None, integral=RULES[rule], **same)) - _log_weights(
        impute(observed, smoother, resample=None, integral=ACCURATE, **same)
    )
    posterior = impute(observed, smoother, integral=RULES[rule], **same)
    reference = impute(observed, smoother, scale.reference_particles, seed=scale.seed + 1).log_evidence
    cost = costs_of(dataset)[MIDDLE]
    return {
        "log_weight_rms": float(np.sqrt(np.nanmean(np.square(error)))),
        "log_evidence_error": posterior.log_evidence - reference,
        "final_ess": posterior.diagnostics.final_ess,
        "cost": cost,
        "distance": transport_score(missing, posterior.consensus(cost), cost).distance_by_stream,
    }


def _log_weights(posterior: Posterior) -> NDArray[np.float64]:
    """Unnormalised log weights [N, M]; NaN where a weight is too small to be told from nothing."""
    weights = np.where(posterior.all_weights > 1e-290, posterior.all_weights, np.nan)
    return np.log(weights) + posterior.log_evidence[:, None] + np.log(posterior.num_particles)
