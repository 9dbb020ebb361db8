"""Edits against time moved, one point a cost, with Pareto frontiers (figures eval-5, eval and diff_rhos)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from retrodict.experiments.figures.style import (
    FILTERING,
    OTHER,
    SMOOTHING,
    grid_of,
    name_of,
    panels,
    save,
    setting_name,
)
from retrodict.experiments.findings import Decoded, Findings
from retrodict.experiments.frontier import frontier
from retrodict.experiments.scale import SETTINGS, kind_of, setting_of

Pair = tuple[Decoded, Decoded]


def draw(findings: Findings, folder: Path) -> list[Path]:
    """A figure of the real data sets and one of the synthetic ones for each setting; one of all missing rates."""
    paths, scale = [], findings.place.scale
    for setting in SETTINGS:
        found = {d: pair for d in scale.datasets if (pair := _pair(findings, d, setting))}
        real = {d: pair for d, pair in found.items() if kind_of(d) != "synthetic"}
        synthetic = {d: pair for d, pair in found.items() if kind_of(d) == "synthetic"}
        for name, group in (("tradeoff", real), ("tradeoff-synthetic", synthetic)):
            if group:
                paths.append(save(_figure(findings, group, setting), folder / f"{name}-{setting}.png"))
    if (figure := _sensitivity(findings)) is not None:
        paths.append(save(figure, folder / "sensitivity.png"))
    return paths


def _pair(findings: Findings, dataset: str, setting: str) -> Pair | None:
    """Filtering and smoothing with the paper's number of particles."""
    M = findings.place.scale.particles[kind_of(dataset)][0]
    pair = [findings.decoded(dataset, setting, method, M) for method in ("filtering", "smoothing")]
    return None if pair[0] is None or pair[1] is None else (pair[0], pair[1])


def _figure(findings: Findings, group: dict[str, Pair], setting: str) -> Any:
    rows, columns = grid_of(len(group))
    figure, axes = panels(rows, columns)
    for place, (dataset, pair) in zip(axes.flat, group.items(), strict=False):
        _panel(place, pair, name_of(dataset))
        place.set_ylabel(_moved(findings, dataset))
    for place in list(axes.flat)[len(group) :]:
        place.set_visible(False)
    axes[0, 0].legend(frameon=False, fontsize=8, loc="upper right")
    figure.supxlabel("insertions and deletions per missing event", fontsize=9)
    figure.suptitle(f"Optimal transport distance, {setting_name(setting)}", fontsize=10)
    return figure


def _sensitivity(findings: Findings) -> Any:
    """Rows are missing rates, columns data sets."""
    scale = findings.place.scale
    datasets = [d for d in scale.datasets if kind_of(d) in scale.sensitivity_kinds]
    pairs = {(rho, d): _pair(findings, d, setting_of(rho)) for rho in scale.rhos for d in datasets}
    if not any(pairs.values()):
        return None
    figure, axes = panels(len(scale.rhos), len(datasets), height=2.3)
    for i, rho in enumerate(scale.rhos):
        for j, dataset in enumerate(datasets):
            pair = pairs[rho, dataset]
            if pair is None:
                axes[i, j].text(0.5, 0.5, "not run yet", ha="center", transform=axes[i, j].transAxes, color=OTHER)
                continue
            _panel(axes[i, j], pair, f"{name_of(dataset)}, ρ = {rho:g}")
            axes[i, j].set_ylabel(_moved(findings, dataset))
    next(place for place in axes.flat if place.lines).legend(frameon=False, fontsize=8, loc="upper right")
    figure.supxlabel("insertions and deletions per missing event", fontsize=9)
    return figure


def _moved(findings: Findings, dataset: str) -> str:
    data = findings.result(f"data/{dataset}")
    unit = data["unit"] if data else None
    return "time moved per event" + (f" ({unit}s)" if unit else "")


def _panel(axes: Any, pair: Pair, title: str) -> None:
    """Blue dots to red dots of the same cost, each with its frontier."""
    for decoded, colour, label in zip(pair, (FILTERING, SMOOTHING), ("filtering", "smoothing"), strict=True):
        x, y = decoded.edits_per_event, decoded.moved_per_event
        edge = frontier(x, y)
        axes.plot(edge.x, edge.y, color=colour, lw=1.1, alpha=0.8, zorder=2)
        axes.plot(x, y, "o", ms=4.5, color=colour, label=label, zorder=3)
    before, after = pair
    arrow = {"arrowstyle": "->", "color": SMOOTHING, "lw": 0.9, "alpha": 0.7, "shrinkA": 2, "shrinkB": 2}
    for i in range(len(before.costs)):
        start = (before.edits_per_event[i], before.moved_per_event[i])
        axes.annotate("", (after.edits_per_event[i], after.moved_per_event[i]), start, arrowprops=arrow, zorder=2)
    for i in {0, len(before.costs) - 1, len(before.costs) // 2}:
        spot = (before.edits_per_event[i], before.moved_per_event[i])
        axes.annotate(f"C = {before.costs[i]:g}", spot, xytext=(5, 4), textcoords="offset points", fontsize=7,
                      color=FILTERING)  # fmt: skip
    axes.set_title(title)
    axes.set_ylim(bottom=min(0.0, float(np.min(after.moved_per_event))))
    axes.margins(x=0.12, y=0.12)
