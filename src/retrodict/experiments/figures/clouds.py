"""Scatterplots of log q(z* | x) / |z*|: smoothing on y, filtering on x, one point a test stream (figure cloud-5)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

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
from retrodict.experiments.findings import Findings
from retrodict.experiments.scale import SETTINGS, kind_of

_TONES = ("#4477aa", "#ee6677", "#228833", "#ccbb44", "#66ccee", "#aa3377", "#bb8844", "#5566aa", "#44aa88", "#997700")

Cloud = tuple[NDArray[np.float64], NDArray[np.float64]]


def draw(findings: Findings, folder: Path) -> list[Path]:
    """For each setting one figure of all data sets, as in the paper, and one of the synthetic sets by themselves."""
    paths = []
    for setting in SETTINGS:
        clouds = {d: cloud for d in findings.place.scale.datasets if (cloud := _cloud(findings, d, setting))}
        synthetic = {d: cloud for d, cloud in clouds.items() if kind_of(d) == "synthetic"}
        groups = ([synthetic] if synthetic else []) + [{d: c} for d, c in clouds.items() if d not in synthetic]
        if groups:
            paths.append(save(_figure(groups, setting, 4), folder / f"clouds-{setting}.png"))
        if len(synthetic) > 1:
            each = [{d: c} for d, c in synthetic.items()]
            paths.append(save(_figure(each, setting, 5), folder / f"clouds-synthetic-{setting}.png"))
    return paths


def _cloud(findings: Findings, dataset: str, setting: str) -> Cloud | None:
    found = findings.result(f"log-q/{dataset}.{setting}")
    if found is None:
        return None
    missing = np.array(found["missing"])
    x, y = (
        np.array(found[name], dtype=float)[missing > 0] / missing[missing > 0] for name in ("filtering", "smoothing")
    )
    fine = np.isfinite(x) & np.isfinite(y)
    return x[fine], y[fine]


def _figure(groups: list[dict[str, Cloud]], setting: str, most: int) -> Any:
    rows, columns = grid_of(len(groups), most)
    figure, axes = panels(rows, columns)
    for place, group in zip(axes.flat, groups, strict=False):
        _panel(place, group)
    for place in list(axes.flat)[len(groups) :]:
        place.set_visible(False)
    figure.suptitle(f"log q(z* | x) / |z*|, {setting_name(setting)}", fontsize=10)
    figure.supxlabel("particle filtering", fontsize=9, color=FILTERING)
    figure.supylabel("particle smoothing", fontsize=9, color=SMOOTHING)
    return figure


def _panel(axes: Any, group: dict[str, Cloud]) -> None:
    """Points and their density; black dots are centroids, and an arrow shows the largest mean improvement."""
    every = np.concatenate([np.concatenate(cloud) for cloud in group.values()])
    low, high = np.quantile(every, [0.004, 0.998])
    low, high = low - 0.08 * (high - low), high + 0.08 * (high - low)
    axes.plot([low, high], [low, high], color=OTHER, lw=1, ls="--", zorder=1)
    for (x, y), tone in zip(group.values(), _TONES, strict=False):
        colour = tone if len(group) > 1 else SMOOTHING
        axes.scatter(x, y, s=3, color=colour, alpha=0.2 if len(group) > 1 else 0.35, lw=0, zorder=2)
        _density(axes, x, y, colour, (low, high))
        axes.scatter(x.mean(), y.mean(), s=22, color="black", zorder=5)
    x, y = max(group.values(), key=lambda cloud: float((cloud[1] - cloud[0]).mean()))
    arrow = {"arrowstyle": "<->", "color": "black", "lw": 1.2, "shrinkA": 0, "shrinkB": 0, "mutation_scale": 8}
    axes.annotate("", (x.mean(), y.mean()), (x.mean(), x.mean()), arrowprops=arrow, zorder=4)
    above = np.mean(np.concatenate([b > a for a, b in group.values()]))
    axes.text(0.97, 0.04, f"{above:.1%} above", transform=axes.transAxes, ha="right", fontsize=8)
    title = name_of(next(iter(group)))
    axes.set_title(title if len(group) == 1 else f"Synthetic, {len(group)} sets")
    axes.set(xlim=(low, high), ylim=(low, high), aspect="equal")


def _density(
    axes: Any, x: NDArray[np.float64], y: NDArray[np.float64], colour: str, limits: tuple[float, float]
) -> None:
    """Contours of a kernel density estimate that hold about 50 and 90 % of the points."""
    from scipy.stats import gaussian_kde

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
        axes.contourf(side, side, grid, levels=[*levels, grid.max() + levels[1]], colors=[colour], alpha=0.12, zorder=2)
        axes.contour(side, side, grid, levels=levels, colors=[colour], linewidths=0.9, zorder=3)
