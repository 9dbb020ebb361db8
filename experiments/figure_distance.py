"""Edits against time moved, one point a cost, with Pareto frontiers (figures eval-5, eval and diff_rhos)."""

from __future__ import annotations

from typing import Any

import numpy as np

from experiments.findings import Decoded, Findings
from experiments.frontier import frontier
from experiments.sizes import RHOS, SETTINGS, kind_of
from experiments.style import FILTERING, NAMES, SMOOTHING, panels, setting_name
from experiments.summary import methods_of

Pair = tuple[Decoded, Decoded]


def draw(findings: Findings, settings: tuple[str, ...] = SETTINGS) -> Any:
    """Rows are settings, columns kinds of data sets, all synthetic streams together; None without results."""
    kinds = {name: kind for name, kind in findings.run.scale.kinds.items() if settings == SETTINGS or kind.rhos}
    pairs = {(k, s): pair for k in kinds for s in settings if (pair := _pair(findings, k, s))}
    rows = [s for s in settings if any(setting == s for _, setting in pairs)]
    columns = list(dict.fromkeys(kind for kind, _ in pairs))
    if not pairs:
        return None
    figure, axes = panels(len(rows), len(columns), height=2.7 if settings == SETTINGS else 2.1)
    for i, setting in enumerate(rows):
        for j, kind in enumerate(columns):
            if (kind, setting) in pairs:
                _panel(axes[i, j], pairs[kind, setting])
            axes[i, j].set_title(f"{NAMES[kind]}, {setting_name(setting)}")
    next(place for place in axes.flat if place.lines).legend(frameon=False, fontsize=8, loc="upper right")
    figure.supxlabel("insertions and deletions per missing event", fontsize=9)
    figure.supylabel("time moved per missing event", fontsize=9)
    return figure


def draw_sensitivity(findings: Findings) -> Any:
    """The same at all missing rates, of the data sets on which they are tried."""
    return draw(findings, tuple(f"rho-{rho:g}" for rho in RHOS))


def _pair(findings: Findings, kind: str, setting: str) -> Pair | None:
    """Filtering and smoothing with the fewest particles."""
    datasets = [d for d in findings.run.scale.datasets if kind_of(d) == kind]
    methods = methods_of(findings, datasets, setting)
    M = findings.run.scale.kinds[kind].particles[0]
    names = [f"filtering, M = {M}", f"smoothing, M = {M}"]
    return (methods[names[0]], methods[names[1]]) if all(name in methods for name in names) else None


def _panel(axes: Any, pair: Pair) -> None:
    """Arrows from filtering to smoothing at the same cost, each with its frontier."""
    for decoded, colour, label in zip(pair, (FILTERING, SMOOTHING), ("filtering", "smoothing"), strict=True):
        x, y = decoded.edits_per_event, decoded.moved_per_event
        edge = frontier(x, y)
        axes.plot(edge.x, edge.y, color=colour, lw=1.1, alpha=0.8, zorder=2)
        axes.plot(x, y, "o", ms=4, color=colour, label=label, zorder=3)
    before, after = pair
    arrow = {"arrowstyle": "->", "color": SMOOTHING, "lw": 0.9, "alpha": 0.7, "shrinkA": 2, "shrinkB": 2}
    for i in range(len(before.costs)):
        start = (before.edits_per_event[i], before.moved_per_event[i])
        axes.annotate("", (after.edits_per_event[i], after.moved_per_event[i]), start, arrowprops=arrow, zorder=2)
    for i in {0, len(before.costs) - 1, len(before.costs) // 2}:
        spot = (before.edits_per_event[i], before.moved_per_event[i])
        offset = {"xytext": (5, 4), "textcoords": "offset points", "fontsize": 7, "color": FILTERING}
        axes.annotate(f"C = {before.costs[i]:g}", spot, **offset)
    axes.set_ylim(bottom=min(0.0, float(np.min(after.moved_per_event))))
    axes.margins(x=0.12, y=0.12)
