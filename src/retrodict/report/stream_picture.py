"""A picture of one imputed stream: what was seen, what is believed, the one answer, and the truth where it is known."""

from __future__ import annotations

from typing import Any

import numpy as np

from retrodict.report.stream_view import StreamView
from retrodict.report.style import (
    GREY,
    IMPUTED,
    OBSERVED,
    TRUTH,
    Picture,
    label_times,
    legend_below,
    new_picture,
    on_paper,
    short,
    tidy,
)

_MOST_LINES = 3  # of numbers above a row


def draw_stream(view: StreamView, title: str | None = None) -> Picture:
    """One row for each type, and the effective families below, over the same time."""
    shown = view.rows()
    row = {k: len(shown) - 1 - i for i, k in enumerate(shown)}
    heights = [max(0.68 * len(shown), 0.8), 0.75]
    figure = new_picture(11, sum(heights) + 1.3)
    axes, below = figure.subplots(2, sharex=True, height_ratios=heights)
    _draw_windows(axes, view, row)
    _draw_belief(axes, view, row)
    _draw_draws(axes, view, row)
    seen = view.observed
    level = [row[int(k)] for k in seen.types]
    axes.scatter(_x(view, seen.times), level, marker="s", s=40, color=OBSERVED, label="observed", zorder=3)
    _draw_answer(axes, view, row)
    if view.truth is not None:
        level = [row[int(k)] for k in view.truth.types]
        axes.scatter(_x(view, view.truth.times), level, marker="|", s=190, linewidths=1.6, color=TRUTH,
                     label="truth", zorder=6, clip_on=False)  # fmt: skip
    axes.set_yticks(list(row.values()), [short(view.types[k]) for k in row])
    axes.set_ylim(-0.62, max(len(shown), 1) - 0.2)
    axes.tick_params(axis="x", length=0)
    name = "stream" if seen.id is None else f"stream {seen.id}"
    axes.set_title(short(name if title is None else title, 110), loc="left")
    tidy(axes, "top", "right", "left", "bottom")
    _draw_families(below, view)
    start, end = _x(view, np.array([seen.start, seen.end]))
    room = 0.01 * (end - start) or 0.5
    below.set_xlim(start - room, end + room)
    label_times(below, view.axis)
    legend_below(axes)
    return figure


def _x(view: StreamView, times: Any) -> Any:
    return on_paper(times, view.axis)


def _draw_windows(axes: Any, view: StreamView, row: dict[int, int]) -> None:
    """The windows in which more goes missing, as grey ground of the rows of the types that do."""
    label: str | None = "window: more missing"
    for window in view.windows:
        first, last = _x(view, np.array([window.start, window.end]))
        for k in set(window.types) & row.keys():
            axes.broken_barh(
                [(first, last - first)], (row[k] - 0.4, 1.0), color=GREY, alpha=0.22, lw=0, zorder=0, label=label
            )
            label = None


def _draw_belief(axes: Any, view: StreamView, row: dict[int, int]) -> None:
    """The expected rate of missing events, one filled curve above the line of each type."""
    edges = np.linspace(view.observed.start, view.observed.end, len(view.rates) + 1)
    heights = view.heights()
    label: str | None = "belief (expected rate)"
    for k in row:
        if heights[:, k].any():
            level, x = row[k] + 0.6 * heights[:, k], _x(view, edges)
            axes.stairs(level, x, baseline=row[k], fill=True, color=IMPUTED, alpha=0.3, lw=0, label=label)
            label = None
    for line in row.values():
        axes.axhline(line, color=GREY, lw=0.5, alpha=0.5, zorder=0)


def _draw_draws(axes: Any, view: StreamView, row: dict[int, int]) -> None:
    """Each draw as faint ticks on a line of its own, below the line of the type."""
    step = 0.36 / max(len(view.draws), 1)
    label: str | None = f"{len(view.draws)} draws"
    for number, draw in enumerate(view.draws):
        known = np.array([int(k) in row for k in draw.types], dtype=bool)
        top = np.array([row[int(k)] for k in draw.types[known]]) - 0.12 - number * step
        if len(top):
            x = _x(view, draw.times[known])
            axes.vlines(x, top - max(step, 0.035), top, color=IMPUTED, alpha=0.55, lw=1.1, label=label)
            label = None


def _draw_answer(axes: Any, view: StreamView, row: dict[int, int]) -> None:
    """The consensus: a dot for each event, as dark as it is probable, on its time interval."""
    imputed = view.imputed
    if not len(imputed):
        return
    level = [row[int(k)] for k in imputed.types]
    if {"earliest", "latest"} <= imputed.columns.keys():
        first, last = (_x(view, imputed.columns[side]) for side in ("earliest", "latest"))
        axes.hlines(level, first, last, color=IMPUTED, lw=2.2, alpha=0.8, zorder=4, label="90 % interval")
    shade = imputed.columns.get("probability", np.ones(len(imputed)))
    x = _x(view, imputed.times)
    axes.scatter(x, level, marker="o", s=60, color="white", zorder=4.5)
    axes.scatter(x, level, marker="o", s=60, color=IMPUTED, alpha=np.clip(shade, 0.15, 1.0), zorder=5, label="imputed")
    axes.scatter(x, level, marker="o", s=60, facecolors="none", edgecolors=IMPUTED, zorder=5)
    if len(imputed) <= 40:
        for at, height, chance, lift in zip(x, level, shade, _lifts(view, level), strict=True):
            axes.annotate(
                f"{chance:.2f}", (at, height), (0, 7 + 8 * lift), textcoords="offset points", ha="center", fontsize=7
            )


def _lifts(view: StreamView, level: list[int]) -> list[int]:
    """How many lines higher the number of each imputed event stands, so that close neighbours can be read."""
    width = 0.027 * (view.observed.end - view.observed.start)  # of a number
    last: dict[tuple[int, int], float] = {}  # (row, line): where its last number stands
    lifts = []
    for row, at in zip(level, view.imputed.times, strict=True):
        free = (line for line in range(_MOST_LINES) if at - last.get((row, line), -np.inf) >= width)
        lifts.append(next(free, 0))
        last[row, lifts[-1]] = at
    return lifts


def _draw_families(axes: Any, view: StreamView) -> None:
    """Effective families of each segment; below ``few`` what is imputed looks surer than it is."""
    edges = np.concatenate([[view.observed.start], view.observed.times, [view.observed.end]])
    axes.axhspan(0.5, view.few, color=GREY, alpha=0.25, lw=0)
    axes.stairs(np.maximum(view.families, 0.5), _x(view, edges), baseline=None, color="black", lw=1.2)
    axes.set_yscale("log")
    axes.set_ylim(0.8, max(100.0, 2 * float(np.max(view.families, initial=1.0))))
    axes.set_ylabel("effective\nfamilies", fontsize=8)
    axes.tick_params(axis="y", labelsize=8)
    tidy(axes)
