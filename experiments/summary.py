"""All numbers of the results page, from what the tasks found."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from experiments.findings import MEDIAN, MOST_PROBABLE, NOTHING, Decoded, Findings
from experiments.frontier import dominates, frontier
from experiments.sizes import MIDDLE, SETTINGS, kind_of
from experiments.store import read_json
from retrodict.evaluate import paired_permutation_test

LABELS = {
    NOTHING: "predict nothing",
    "constant-rate": "constant rate (Poisson)",
    MEDIAN: "median time before each seen event",
    "paper-filtering": "paper's configuration, filtering",
    "paper-smoothing": "paper's configuration, smoothing",
    MOST_PROBABLE: "most probable particle",
    "filtering": "filtering",
    "smoothing": "smoothing",
}


def summarise(findings: Findings) -> dict[str, Any]:
    """Everything but the clouds' points; None where something was not measured. Synthetic sets also stand together."""
    run, file = findings.run, findings.run.folder / "run.json"
    datasets = run.scale.datasets
    groups = {dataset: [dataset] for dataset in datasets}
    if synthetic := [dataset for dataset in datasets if kind_of(dataset) == "synthetic"]:
        groups["synthetic"] = synthetic

    def table(cell: Callable[..., Any]) -> dict[str, Any]:
        return {name: {s: cell(findings, group, s) for s in SETTINGS} for name, group in groups.items()}

    decoding = table(_decoding)
    for dataset in datasets:
        others = run.kind(dataset).other_settings
        decoding[dataset] |= {setting: _decoding(findings, [dataset], setting) for setting in others}
    return {
        "run": read_json(file) if file.exists() else {"scale": run.scale.name, "commit": None, "date": None},
        "data": {dataset: findings.record(dataset) for dataset in datasets},
        "models": {d: findings.record(d, "p") for d in datasets if kind_of(d) != "synthetic"},
        "smoothers": {dataset: _smoothers(findings, dataset) for dataset in datasets},
        "log_q": table(_log_q),
        "decoding": decoding,
        "ess": table(_ess),
        "runtime": findings.result("runtime"),
        "integrals": {d: findings.result(f"integrals/{d}") for d in datasets if run.kind(d).integrals},
        "machines": _machines(findings),
    }


def _smoothers(findings: Findings, dataset: str) -> dict[str, Any]:
    others = [f"ours-{setting}" for setting in findings.run.kind(dataset).other_settings]
    names = [f"{form}-{setting}" for form in ("ours", "paper") for setting in SETTINGS] + others
    kept = ("epochs", "best_epoch", "ended", "train_seconds", "dev_log_q")
    records = {name: findings.record(dataset, name) for name in names}
    return {name: record and {key: record[key] for key in kept} for name, record in records.items()}


def _log_q(findings: Findings, datasets: list[str], setting: str) -> dict[str, Any] | None:
    """Mean log q per missing event, and the share of the streams on which it is higher than under filtering."""
    found = [findings.result(f"log-q/{d}.{setting}") for d in datasets]
    if not all(found):
        return None
    result: dict[str, Any] = {}
    for name in ("filtering", "smoothing", "paper", "exact"):
        parts = [one for one in found if one and name in one]
        if not parts:
            continue
        value, base, missing = (  # the exact posterior is that of the first streams only
            np.concatenate([np.array(one[key][: len(one[name])], dtype=float) for one in parts])
            for key in (name, "filtering", "missing")
        )
        some = missing > 0
        result[name] = value.sum() / max(missing.sum(), 1)
        result[f"{name}_higher"] = np.mean(value[some] > base[some])
    return result


def methods_of(findings: Findings, datasets: list[str], setting: str) -> dict[str, Decoded]:
    """Every method that imputed all streams of some data sets, by label; the baselines first, the best last."""
    counts = findings.run.kind(datasets[0]).particles
    found = {}
    for method, label in LABELS.items():
        for M in counts if method in ("filtering", "smoothing") else counts[:1]:
            parts = [findings.decoded(d, setting, method, M) for d in datasets]
            if all(part is not None for part in parts):
                name = label if method in (NOTHING, MEDIAN) else f"{label}, M = {M}"
                found[name] = _together([part for part in parts if part is not None])
    return found


def _together(parts: list[Decoded]) -> Decoded:
    arrays = [np.concatenate([getattr(part, name) for part in parts], -1) for name in ("missing", "edits", "moved")]
    return Decoded(tuple(parts[0].costs.tolist()), *arrays)


def _decoding(findings: Findings, datasets: list[str], setting: str) -> dict[str, Any] | None:
    """Mean distance of every method at every cost; tests against filtering and the paper's configuration."""
    methods = methods_of(findings, datasets, setting)
    if not methods:
        return None
    kind = findings.run.kind(datasets[0])
    result: dict[str, Any] = {"costs": kind.costs, "streams": len(next(iter(methods.values())).missing)}
    result["methods"] = {label: decoded.distance.mean(1) for label, decoded in methods.items()}
    result["tests"] = {}
    for M in kind.particles:
        ours, theirs = methods.get(f"smoothing, M = {M}"), methods.get(f"filtering, M = {M}")
        if ours is not None and theirs is not None:
            edges = [frontier(one.edits_per_event, one.moved_per_event) for one in (ours, theirs)]
            result["tests"][str(M)] = {
                "dominates": dominates(*edges, ours.costs),
                **_compare(ours.distance[MIDDLE], theirs.distance[MIDDLE]),
            }
    ours = methods.get(f"smoothing, M = {kind.particles[0]}")
    paper = methods.get(f"{LABELS['paper-smoothing']}, M = {kind.particles[0]}")
    if ours is not None and paper is not None:
        result["against_paper"] = _compare(ours.distance[MIDDLE], paper.distance[MIDDLE])
    return result


def _compare(a: NDArray[np.float64], b: NDArray[np.float64]) -> dict[str, Any]:
    """One-sided paired permutation test that a is below b."""
    test = paired_permutation_test(a, b, alternative="less")
    return {"relative": test.difference / b.mean(), "p": test.p_value}


def _ess(findings: Findings, datasets: list[str], setting: str) -> dict[str, Any]:
    """Mean effective size as a share of M, without and with resampling, and distinct histories up to the middle."""
    result: dict[str, Any] = {}
    for method in ("filtering", "smoothing"):
        for name, own, key in (
            ("unresampled", f"{method}-unresampled", "ess"),
            ("resampled", method, "ess"),
            ("histories", method, "histories"),
        ):
            M = findings.run.kind(datasets[0]).particles[0]
            means = [findings.mean(d, setting, own, M, key) for d in datasets]
            complete = [mean / M for mean in means if mean is not None]
            result[f"{method} {name}"] = np.mean(complete) if len(complete) == len(datasets) else None
    return result


def _machines(findings: Findings) -> dict[str, Any]:
    """Hours of tasks by machine."""
    hours: Counter[str] = Counter()
    for part in ("data", "models", "results"):
        for file in (findings.run.folder / part).glob("**/*.json"):
            record = read_json(file)
            if isinstance(record, dict) and "machine" in record:
                hours[f"{record['machine']}: {part}"] += record.get("train_seconds", record["seconds"]) / 3600
    return dict(hours)
