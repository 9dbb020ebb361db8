"""log q(z* | x) / |z*|: smoothing against filtering, one point a test stream (figures cloud-5 and cloud)."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.stats import gaussian_kde

from experiments.findings import Findings
from experiments.sizes import SETTINGS, kind_of
from experiments.style import FILTERING, NAMES, OTHER, SMOOTHING, panels, setting_name

_TONES = ("#4477aa", "#ee6677", "#228833", "#ccbb44", "#66ccee", "#aa3377", "#bb8844", "#5566aa", "#44aa88", "#997700")

Cloud = tuple[NDArray[np.float64], NDArray[np.float64]]


def draw(findings: Findings) -> Any:
    """Rows are settings, columns kinds of data sets, the synthetic sets in one panel; None without results."""
    clouds = {
        (kind_of(d), s, d): cloud
        for d in findings.run.scale.datasets
        for s in SETTINGS
        if (cloud := _cloud(findings, d, s))
    }
    kinds = list(dict.fromkeys(kind for kind, _, _ in clouds))
    if not kinds:
        return None
    figure, axes = panels(len(SETTINGS), len(kinds))
    for i, setting in enumerate(SETTINGS):
        for j, kind in enumerate(kinds):
            group = [cloud for (k, s, _), cloud in clouds.items() if (k, s) == (kind, setting)]
            if group:
                _panel(axes[i, j], group)
            axes[i, j].set_title(f"{NAMES[kind]}, {setting_name(setting)}")
    figure.supxlabel("particle filtering: log q(z* | x) / |z*|", fontsize=9, color=FILTERING)
    figure.supylabel("particle smoothing", fontsize=9, color=SMOOTHING)
    return figure


def _cloud(findings: Findings, dataset: str, setting: str) -> Cloud | None:
    found = findings.result(f"log-q/{dataset}.{setting}")
    if found is None:
        return None
    missing = np.array(found["missing"])
    some = missing > 0
    x, y = (np.array(found[name], dtype=float)[some] / missing[some] for name in ("filtering", "smoothing"))
    fine = np.isfinite(x) & np.isfinite(y)
    return x[fine], y[fine]


def _panel(axes: Any, group: list[Cloud]) -> None:
    """Points and their density; black dots are centroids, and an arrow shows the largest mean improvement."""
    every = np.concatenate([np.concatenate(cloud) for cloud in group])
    low, high = np.quantile(every, [0.004, 0.998])
    low, high = low - 0.08 * (high - low), high + 0.08 * (high - low)
    axes.plot([low, high], [low, high], color=OTHER, lw=1, ls="--", zorder=1)
    for (x, y), tone in zip(group, _TONES, strict=False):
        colour = tone if len(group) > 1 else SMOOTHING
        axes.scatter(x, y, s=3, color=colour, alpha=0.2 if len(group) > 1 else 0.35, lw=0, zorder=2)
        _density(axes, x, y, colour, (low, high))
        axes.scatter(x.mean(), y.mean(), s=22, color="black", zorder=5)
    x, y = max(group, key=lambda cloud: float((cloud[1] - cloud[0]).mean()))
    arrow = {"arrowstyle": "<->", "color": "black", "lw": 1.2, "shrinkA": 0, "shrinkB": 0, "mutation_scale": 8}
    axes.annotate("", (x.mean(), y.mean()), (x.mean(), x.mean()), arrowprops=arrow, zorder=4)
    above = np.mean(np.concatenate([b > a for a, b in group]))
    axes.text(0.97, 0.04, f"{above:.1%} above", transform=axes.transAxes, ha="right", fontsize=8)
    axes.set(xlim=(low, high), ylim=(low, high), aspect="equal")


def _density(
    axes: Any, x: NDArray[np.float64], y: NDArray[np.float64], colour: str, limits: tuple[float, float]
) -> None:
    """Contours of a kernel density estimate that hold about 50 and 90 % of the points."""
    if len(x) < 10:
        return
    try:
        density = gaussian_kde(np.stack([x, y]))
    except np.linalg.LinAlgError:  # all points on a line
        return
    side = np.linspace(*limits, 80)
    grid = density(np.stack([axis.ravel() for axis in np.meshgrid(side, side)])).reshape(80, 80)
    levels = np.quantile(density(np.stack([x, y])), [0.1, 0.5])
    if levels[0] < levels[1]:
        axes.contour(side, side, grid, levels=levels, colors=[colour], linewidths=0.9, zorder=3)
