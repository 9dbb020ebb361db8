"""All numbers of the results page, from what the jobs found."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from retrodict.evaluate import paired_permutation_test
from retrodict.experiments.ess import COMPARED
from retrodict.experiments.findings import MEDIAN, MOST_PROBABLE, NOTHING, Decoded, Findings
from retrodict.experiments.frontier import dominates, frontier
from retrodict.experiments.published import TAXI
from retrodict.experiments.scale import DETERMINISTIC, MIDDLE, SETTINGS, costs_of, kind_of, setting_of

LABELS = {
    NOTHING: "predict nothing",
    "constant-rate": "constant rate (Poisson)",
    MEDIAN: "median time before each seen event",
    "paper-filtering": "paper's configuration, filtering",
    "paper-smoothing": "paper's configuration, smoothing",
    MOST_PROBABLE: "most probable particle",
    "filtering": "filtering",
    "data-smoothing": "smoothing taught by data",
    "smoothing": "smoothing",
}


def summarise(findings: Findings) -> dict[str, Any]:
    """Everything but the clouds' points; None where a job has not run."""
    scale = findings.place.scale
    other_rates = [setting_of(rho) for rho in scale.rhos]
    return {
        "scale": scale.name,
        "aversion": scale.aversion,
        "damping": scale.damping,
        "data": {dataset: findings.result(f"data/{dataset}") for dataset in scale.datasets},
        "models": {dataset: findings.result(f"models/{dataset}") for dataset in scale.datasets},
        "smoothers": findings.under("smoothers/"),
        "log_q": _table(findings, SETTINGS, log_q),
        "decoding": _table(findings, SETTINGS, decoding),
        "pooled": {setting: pooled(findings, setting) for setting in SETTINGS},
        "sensitivity": {
            dataset: {setting: decoding(findings, dataset, setting) for setting in other_rates}
            for dataset in scale.datasets
            if kind_of(dataset) in scale.sensitivity_kinds
        },
        "ess": _table(findings, SETTINGS, ess),
        "taxi": {str(count): first_streams(findings, count) for count in TAXI} if "taxi" in scale.kinds else None,
        "runtime": list(findings.under("runtime/").values()) or None,
        "integrals": {dataset: integrals(findings, dataset) for dataset in scale.integral_kinds},
        "machines": machines(findings),
    }


# On which share of the streams a proposal beats filtering.
BETTER = {
    "smoothing": "smoothing_better",
    "data_smoothing": "data_better",
    "lookahead_smoothing": "lookahead_better",
    "between_smoothing": "between_better",
    "averse_smoothing": "averse_better",
    "damped_smoothing": "damped_better",
    "paper_smoothing": "paper_better",
    "exact_posterior": "exact_better",
}


def _table(findings: Findings, settings: tuple[str, ...], cell: Any) -> dict[str, Any]:
    datasets = findings.place.scale.datasets
    return {dataset: {setting: cell(findings, dataset, setting) for setting in settings} for dataset in datasets}


def log_q(findings: Findings, dataset: str, setting: str) -> dict[str, Any] | None:
    """Mean log q per missing event, and on which share of the streams one proposal beats another."""
    found = findings.result(f"log-q/{dataset}.{setting}")
    if found is None:
        return None
    missing = np.array(found["missing"])
    some = missing > 0
    values = {name: np.array(found[name], dtype=float) for name in ("filtering", *BETTER) if name in found}
    result: dict[str, Any] = {"streams": int(some.sum())}
    result |= {name: float(value.sum() / max(missing.sum(), 1)) for name, value in values.items()}
    for name, key in BETTER.items():
        if name in values:
            result[key] = float(np.mean(values[name][some] > values["filtering"][some]))
    return result


def methods_of(findings: Findings, dataset: str, setting: str) -> dict[str, Decoded]:
    """Every method that has run on all test streams, by label; the baselines first, the best last."""
    counts = findings.place.scale.particles[kind_of(dataset)]
    found = {}
    for method, label in LABELS.items():
        for M in counts if method in ("filtering", "smoothing", MOST_PROBABLE) else counts[:1]:
            decoded = findings.decoded(dataset, setting, method, M)
            if decoded is not None:
                found[label if method in (NOTHING, MEDIAN) else f"{label}, M = {M}"] = decoded
    return found


def decoding(findings: Findings, dataset: str, setting: str) -> dict[str, Any] | None:
    """Mean distance per stream of every method at every cost, frontiers, and tests at the middle cost."""
    methods = methods_of(findings, dataset, setting)
    if not methods:
        return None
    counts = findings.place.scale.particles[kind_of(dataset)]
    result: dict[str, Any] = {"costs": costs_of(dataset), "particles": counts}
    result["methods"] = {
        label: {
            "distance": decoded.distance.mean(1),
            "edits_per_event": decoded.edits_per_event,
            "moved_per_event": decoded.moved_per_event,
            "seconds_per_stream": _seconds(decoded),
        }
        for label, decoded in methods.items()
    }
    result["tests"] = {}
    for label in (*(f"smoothing, M = {M}" for M in counts), f"{LABELS['data-smoothing']}, M = {counts[0]}"):
        other = f"filtering, {label.split(', ')[1]}"
        ours, theirs = methods.get(label), methods.get(other)
        if ours is not None and theirs is not None:
            left, right = (frontier(one.edits_per_event, one.moved_per_event) for one in (ours, theirs))
            result["tests"][label] = {
                "against": other,
                "dominates": dominates(left, right, ours.costs),
                **_test(ours, theirs),
            }
    best = methods.get(f"smoothing, M = {counts[-1]}")
    paper = methods.get(f"{LABELS['paper-smoothing']}, M = {counts[0]}")
    if best is not None and paper is not None:
        gain = 1 - best.distance.mean(1) / paper.distance.mean(1)
        result["against_paper"] = {"below_by": gain, **_test(best, paper)}
    return result


def pooled(findings: Findings, setting: str) -> dict[str, Any]:
    """The tests at the middle cost for the streams of all synthetic sets together."""
    scale = findings.place.scale
    names = [dataset for dataset in scale.datasets if kind_of(dataset) == "synthetic"]
    found = {}
    for method in ("smoothing", "data-smoothing"):
        M = scale.particles["synthetic"][0]
        pairs = [[findings.decoded(name, setting, m, M) for m in (method, "filtering")] for name in names]
        if pairs and all(one is not None for pair in pairs for one in pair):
            ours, theirs = (
                np.concatenate([one.distance[MIDDLE] for one in side if one]) for side in zip(*pairs, strict=True)
            )
            found[f"{LABELS[method]}, M = {M}"] = {"sets": len(names), **_compare(ours, theirs)}
    return found


def _test(a: Decoded, b: Decoded) -> dict[str, Any]:
    return _compare(a.distance[MIDDLE], b.distance[MIDDLE])


def _compare(a: NDArray[np.float64], b: NDArray[np.float64]) -> dict[str, Any]:
    test = paired_permutation_test(a, b, alternative="less")
    return {"difference": test.difference, "relative": test.difference / b.mean(), "p": test.p_value}


def _seconds(decoded: Decoded) -> float | None:
    seconds = decoded.about.get("impute_seconds")
    return None if seconds is None else seconds / max(len(decoded.missing), 1)


def ess(findings: Findings, dataset: str, setting: str) -> dict[str, Any] | None:
    """Mean effective sample size at the end as a share of M, with and without resampling."""
    M = findings.place.scale.particles[kind_of(dataset)][0]
    result: dict[str, Any] = {}
    for method in COMPARED:
        without = findings.result(f"ess/{dataset}.{setting}.{method}")
        with_ = findings.decoded(dataset, setting, method, M)
        if without is not None:
            result[f"{method}, no resampling"] = float(np.mean(without["final_ess"])) / M
        if with_ is not None:
            result[method] = float(with_.about["final_ess"].mean()) / M
            result[f"{method}, distinct histories"] = float(with_.about["distinct_histories"].mean())
    return result or None


def first_streams(findings: Findings, count: int) -> dict[str, Any] | None:
    """Mean distance per stream on the first taxi test streams, pick-ups hidden, beside figures measured by others."""
    methods = methods_of(findings, "taxi", DETERMINISTIC)
    ours = {label: decoded.distance[:, :count].mean(1) for label, decoded in methods.items()}
    return {"here": ours, "others": TAXI[count]} if ours else None


def integrals(findings: Findings, dataset: str) -> dict[str, Any] | None:
    """What each rule does: errors of weights and evidence, effective size, distance."""
    found = findings.under(f"integrals/{dataset}.")
    rows = {
        name.rsplit(".", 1)[1]: {
            "log_weight_rms": row["log_weight_rms"],
            "evidence_bias": float(np.mean(row["log_evidence_error"])),
            "evidence_sd": float(np.std(row["log_evidence_error"])),
            "final_ess": float(np.mean(row["final_ess"])),
            "distance": float(np.mean(row["distance"])),
            "cost": row["cost"],
        }
        for name, row in found.items()
    }
    return rows or None


def machines(findings: Findings) -> list[dict[str, Any]]:
    """The machines that jobs ran on: how many jobs, and how many hours of them."""
    found: dict[str, dict[str, Any]] = {}
    for name, job in findings.jobs.items():
        about = job["machine"]
        label = f"{about['device']}, {about['cores']} cores, torch {about['torch']}"
        row = found.setdefault(label, {"machine": label, "jobs": 0, "hours": 0.0, "stages": {}})
        row["jobs"] += 1
        row["hours"] += job["seconds"] / 3600
        stage = name.split("/")[0]
        row["stages"][stage] = row["stages"].get(stage, 0.0) + job["seconds"] / 3600
    return list(found.values())
