"""A check as plain tables: what JSON keeps, what the command prints and what the picture shows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from retrodict.evaluate.calibration import BINS, RELIABILITY, SCOPES, Calibration
from retrodict.evaluate.findings import mean_finding
from retrodict.evaluate.goodness import Goodness
from retrodict.evaluate.observed import Observed
from retrodict.evaluate.scores import INTERVAL_LEVEL


def summarise(
    types: Sequence[str],
    costs: Sequence[float],
    goodness: Goodness,
    calibration: Calibration | None,
    observed: Observed | None,
) -> dict[str, Any]:
    """All tables; those of parts that were not checked are absent."""
    tables: dict[str, Any] = {"goodness": _goodness(goodness)}
    if calibration is not None:
        c = calibration
        tables["counts"] = [
            {"type": name, **_counts(c.hidden[:, k], c.expected[:, k], c.variance[:, k])}
            for k, name in enumerate([*types, None])
        ]
        covered = c.coverage()
        tables["coverage"] = {
            "cost": costs[len(costs) // 2],
            "nominal": INTERVAL_LEVEL,
            "aligned": int(c.aligned.sum()),
            "value": covered.value,
            "error": covered.error,
            "by_type": _coverage(c, types),
        }
        tables["reliability"] = _reliability(c)
        tables["ranks"] = {name: _histogram(*c.scope(number)) for number, name in enumerate(SCOPES)}
        tables["distance"] = [
            {
                "cost": cost,
                "share_of_nothing": _ratio(c.distance[:, i], cost * c.hidden[:, -1]),
                "constant_rates": _ratio(c.constant[:, i], cost * c.hidden[:, -1]),
            }
            for i, cost in enumerate(costs)
        ]
        tables["families"] = float(np.median(c.families))
    if observed is not None:
        o = observed
        tables["observed"] = [
            {"type": name, **_counts(o.counts[:, k], o.predicted[:, k], o.variance[:, k])}
            for k, name in enumerate(o.types)
        ]
    return tables


def _ratio(rows: NDArray[Any], per: NDArray[Any]) -> dict[str, float]:
    """A ratio of sums over streams, with its standard error."""
    found = mean_finding("", "", rows, per, tolerance=0.0)
    return {"value": found.value, "error": found.error}


def _counts(true: NDArray[Any], expected: NDArray[Any], variance: NDArray[Any]) -> dict[str, float]:
    """Sums over streams, and the standard error of their difference."""
    error = float(np.sqrt(max(((expected - true) ** 2).sum(), variance.sum())))
    return {"true": int(true.sum()), "expected": float(expected.sum()), "error": error}


def _goodness(g: Goodness) -> dict[str, Any]:
    """Counts by type, and how many rescaled gaps lie below each level of the exponential distribution."""
    levels = np.linspace(0.0, 1.0, 2 * BINS + 1)
    below = [float((-np.expm1(-g.gaps) <= level).mean()) if len(g.gaps) else float("nan") for level in levels]
    rows = [
        {"type": name, **_counts(g.counts[:, k], g.expected[:, k], g.expected[:, k])} for k, name in enumerate(g.types)
    ]
    return {"counts": rows, "gaps": len(g.gaps), "levels": levels.tolist(), "share_below": below}


def _reliability(c: Calibration) -> list[dict[str, Any]]:
    """Imputed events by probability: mean probability, and the share that was there, with its standard error."""
    rows = []
    for b in np.unique(c.bins):
        inside = c.bins == b
        share = {"value": float(c.found[inside].mean()), "error": c.excess_of(inside, RELIABILITY).error}
        rows.append({"events": int(inside.sum()), "probability": float(c.probability[inside].mean()), **share})
    return rows


def _coverage(c: Calibration, types: Sequence[str]) -> list[dict[str, Any]]:
    """Of the imputed events of each type that are aligned to a true one: the share whose interval holds it."""
    rows = []
    for k in np.unique(c.kind[c.found]):
        aligned = c.found & (c.kind == k)
        share = _ratio(c.by_stream((aligned & c.held).astype(float)), c.by_stream(aligned.astype(float)))
        rows.append({"type": types[k], "events": int(aligned.sum()), **share})
    return rows


def _histogram(ranks: NDArray[np.float64], weights: NDArray[np.float64]) -> list[float]:
    """Shares of the ranks in equal bins; they add up to one."""
    total = weights.sum()
    counts, _ = np.histogram(ranks, bins=BINS, range=(0.0, 1.0), weights=weights)
    return (counts / total if total else counts).tolist()
