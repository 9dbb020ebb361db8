"""How many points the survival integrals need: what each rule does to weights, evidence and distance (appendix C.3)."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

import retrodict as rd
from experiments.data import test_pair
from experiments.imputing import METHODS
from experiments.sizes import MIDDLE, STOCHASTIC
from experiments.store import Run
from retrodict.evaluate import transport_score
from retrodict.models.quadrature import Integral

RULES: dict[str, Integral] = {f"quadrature {n}": rd.GaussLegendre(n, graded=False) for n in (1, 2, 4, 8)}
RULES |= {f"Monte Carlo {n}": rd.MonteCarlo(n) for n in (1, 5, 20)}
ACCURATE = rd.GaussLegendre(32)


def measure(run: Run, dataset: str, device: str) -> dict[str, Any]:
    """For each rule the errors of log weights, the effective size, and the distance at the middle cost.

    Without resampling the particles do not depend on the rule, so their weights differ by the integrals alone.
    """
    observed, missing = (part[: run.scale.integral_streams] for part in test_pair(run, dataset, STOCHASTIC))
    smoother = METHODS["smoothing"].prepare(run, dataset, STOCHASTIC, device)
    kind = run.kind(dataset)
    cost = kind.costs[MIDDLE]
    same: dict[str, Any] = {"particles": kind.particles[0], "engine": "torch", "sampler": "thinning"}

    def weights(rule: Integral) -> NDArray[np.float64]:
        return log_weights(rd.impute(observed, smoother, resample=None, integral=rule, **same))

    accurate = weights(ACCURATE)
    rows = {}
    for name, rule in RULES.items():
        posterior = rd.impute(observed, smoother, integral=rule, **same)
        rows[name] = {
            "log_weight_rms": float(np.sqrt(np.nanmean(np.square(weights(rule) - accurate)))),
            "ess": float(posterior.diagnostics.final_ess.mean()) / kind.particles[0],
            "distance": float(transport_score(missing, posterior.consensus(cost), cost).distance_by_stream.mean()),
        }
    return {"cost": cost, "rules": rows}


def log_weights(posterior: rd.Posterior) -> NDArray[np.float64]:
    """Unnormalised log weights [N, M]; NaN where a weight is too small to be told from nothing."""
    weights = np.where(posterior.all_weights > 1e-290, posterior.all_weights, np.nan)
    return np.log(weights) + posterior.log_evidence[:, None] + np.log(posterior.num_particles)
