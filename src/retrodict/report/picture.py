"""A picture of one imputed stream: what was seen, what is believed, the one answer, and the truth where it is known."""

from __future__ import annotations

import os
from typing import Any

import numpy as np

from retrodict.events.atomic import atomic_file
from retrodict.events.stream import EventStream
from retrodict.smc.posterior import Posterior

_SEEN, _GUESS, _TRUTH = "#5b3a8e", "#1b7f5a", "#c0392b"


def draw_imputation(
    posterior: Posterior,
    decoded: EventStream,
    index: int,
    path: str | os.PathLike[str],
    *,
    truth: EventStream | None = None,
    title: str = "",
    cells: int = 240,
) -> None:
    """Draw stream ``index`` with its consensus ``decoded`` into a PNG, PDF or SVG file."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    observed = posterior.observed[index]
    types = posterior.observed.types
    shown = sorted(
        {*observed.types.tolist(), *decoded.types.tolist(), *([] if truth is None else truth.types.tolist())}
    )
    row = {k: len(shown) - 1 - i for i, k in enumerate(shown)}
    figure = Figure(figsize=(11, 1.2 + 0.55 * len(shown)), layout="constrained")
    FigureCanvasAgg(figure)
    axes = figure.subplots()
    _draw_belief(axes, posterior, index, row, cells)
    axes.scatter(
        observed.times, [row[k] for k in observed.types], marker="s", s=42, color=_SEEN, label="observed", zorder=3
    )
    if truth is not None:
        axes.scatter(truth.times, [row[k] for k in truth.types], marker="|", s=170, linewidths=2, color=_TRUTH,
                     label="truth (hidden)", zorder=4, clip_on=False)  # fmt: skip
    _draw_answer(axes, decoded, row)
    axes.set_yticks([row[k] for k in shown], [types[k] for k in shown])
    axes.set_ylim(-0.6, len(shown) - 0.2)
    axes.set_xlim(observed.start, observed.end + 0.01 * observed.duration)
    unit = posterior.observed.axis.unit
    axes.set_xlabel("time" if unit is None else f"time ({unit}s)")
    axes.set_title(title, loc="left")
    for side in ("top", "right", "left"):
        axes.spines[side].set_visible(False)
    axes.legend(loc="upper center", bbox_to_anchor=(0.5, -0.14 - 0.3 / len(shown)), ncols=4, frameon=False)
    suffix = os.path.splitext(os.fspath(path))[1].lstrip(".") or "png"
    with atomic_file(path) as file:
        figure.savefig(file, dpi=140, format=suffix)


def _draw_belief(axes: Any, posterior: Posterior, index: int, row: dict[int, int], cells: int) -> None:
    """The expected rate of missing events along the time axis, one filled curve for each type."""
    stream = posterior.observed[index]
    grid = np.linspace(stream.start, stream.end, cells + 1)
    rates = posterior.intensity(grid)[index]
    top = rates.max() or 1.0
    middle = 0.5 * (grid[1:] + grid[:-1])
    label: str | None = "belief (expected rate)"
    for k in np.flatnonzero(rates.max(0) > 0.01 * top).tolist():
        if k in row:
            axes.fill_between(
                middle, row[k], row[k] + 0.7 * rates[:, k] / top, color=_GUESS, alpha=0.25, lw=0, label=label
            )
            label = None


def _draw_answer(axes: Any, decoded: EventStream, row: dict[int, int]) -> None:
    """The consensus: a dot for each event, as dark as it is probable, with its time interval."""
    level = [row[k] for k in decoded.types]
    if {"earliest", "latest"} <= decoded.columns.keys():
        axes.hlines(level, decoded.columns["earliest"], decoded.columns["latest"], color=_GUESS, lw=1.5, zorder=2)
    shade = decoded.columns.get("probability", np.ones(len(decoded)))
    axes.scatter(
        decoded.times, level, marker="o", s=46, color=_GUESS, alpha=np.clip(shade, 0.15, 1.0), label="imputed", zorder=5
    )
