"""A check as a picture: fit of the model, counts, ranks, reliability, distance, coverage, and observed counts."""

from __future__ import annotations

import textwrap
from statistics import NormalDist
from typing import Any

import numpy as np

from retrodict.report.style import BAD, GREY, OTHER, OURS, Picture, new_picture, short, tidy

_MOST_TYPES = 12
_GAPS, _COUNTS, _PROBABILITY = 0.05, 0.1, 0.05  # what a check calls fine: a bar or band reaches at least so far


def draw_check(tables: dict[str, Any]) -> Picture:
    """Draw what ``Check.to_dict`` gives."""
    panels = [_draw_gaps]
    if "counts" in tables:
        panels += [_draw_counts, _draw_ranks, _draw_reliability, _draw_distance]
        panels += [_draw_coverage] if tables["coverage"].get("by_type") else []
    panels += [_draw_observed if "observed" in tables else _draw_fit]
    columns = min(3 if len(panels) <= 6 else 4, len(panels))
    rows = -(-len(panels) // columns)
    figure = new_picture(4.3 * columns, 3.4 * rows + 0.9)
    grid = np.ravel(figure.subplots(rows, columns))
    for axes, draw in zip(grid, panels, strict=False):
        draw(axes, tables)
        tidy(axes)
    for axes in grid[len(panels) :]:
        axes.remove()
    text = tables["verdict"].replace(" %", "\u00a0%").replace("$", r"\$")
    text = "\n".join(line for part in text.splitlines() for line in textwrap.wrap(part, 56 * columns))
    figure.suptitle(text, x=0.01, ha="left", fontsize=10, color=BAD if tables["flagged"] else "black")
    return figure


def _draw_gaps(axes: Any, tables: dict[str, Any]) -> None:
    """The distribution of rescaled gaps less the exponential one, and a band of what is fine or may be chance."""
    fit = tables["goodness"]
    levels = np.array(fit["levels"])
    off = np.array([np.nan if share is None else share for share in fit["share_below"]]) - levels
    band = max(_GAPS, 1.36 / np.sqrt(max(fit["gaps"], 1)))
    axes.fill_between(levels, -band, band, color=GREY, alpha=0.25, lw=0, label="fine, or chance 19 times in 20")
    axes.axhline(0, color=GREY, lw=1)
    axes.plot(levels, off, color=OURS, lw=2)
    top = max(0.06, 1.1 * float(np.nanmax(np.abs(off), initial=0.0)), 1.3 * band)
    axes.set_ylim(-top, top)
    axes.set_xlabel("level of the exponential distribution")
    axes.set_title("gaps in rescaled time: share below, less the level", fontsize=9, loc="left")
    axes.legend(frameon=False, fontsize=8)


def _draw_rows(axes: Any, rows: list[dict[str, Any]], true: str, expected: str) -> None:
    """True and expected counts of each type, with two standard errors, or with what is fine where that is more."""
    shown = sorted((r for r in rows if r["type"] is not None), key=lambda r: -max(r["true"], r["expected"]))
    shown = [r for r in shown if r["true"] or r["expected"] > 0.5][:_MOST_TYPES]
    place = np.arange(len(shown))[::-1]
    mean, error = [r["expected"] for r in shown], [max(2 * r["error"], _COUNTS * r["expected"]) for r in shown]
    label = f"{expected} (± 2 s.e., at least 10 %)"
    axes.errorbar(mean, place, xerr=error, fmt="o", color=OURS, capsize=3, label=label)
    axes.scatter(
        [r["true"] for r in shown], place, marker="|", s=260, linewidths=2.5, color=OTHER, label=true, zorder=3,
        clip_on=False,
    )  # fmt: skip
    axes.set_yticks(place, [short(str(r["type"]), 20) for r in shown])
    axes.set_ylim(-0.6, len(shown) - 0.1)
    axes.set_xlim(left=0)
    axes.set_xlabel("events")
    _legend_under(axes)


def _legend_under(axes: Any, columns: int = 2) -> None:
    """A legend below the axes, where it covers no number."""
    under = {"loc": "upper center", "bbox_to_anchor": (0.5, -0.2), "borderaxespad": 0}
    axes.legend(frameon=False, fontsize=8, ncols=columns, **under)


def _draw_counts(axes: Any, tables: dict[str, Any]) -> None:
    _draw_rows(axes, tables["counts"], "hidden", "expected")
    axes.set_title("hidden events by type", fontsize=9, loc="left")


def _draw_fit(axes: Any, tables: dict[str, Any]) -> None:
    _draw_rows(axes, tables["goodness"]["counts"], "there", "expected")
    axes.set_title("events of complete streams by type", fontsize=9, loc="left")


def _draw_observed(axes: Any, tables: dict[str, Any]) -> None:
    _draw_rows(axes, tables["observed"], "observed", "predicted")
    axes.set_title("events of incomplete streams by type", fontsize=9, loc="left")


def _draw_ranks(axes: Any, tables: dict[str, Any]) -> None:
    """Histograms of ranks, with a band that holds all of their bars 95 times out of 100."""
    streams, bins = max(tables["about"]["imputed_streams"], 1), len(tables["ranks"]["by type"])
    errors = NormalDist().inv_cdf(1 - 0.025 / (3 * bins))  # three histograms
    half = errors * np.sqrt((1 - 1 / bins) / bins / streams)
    axes.axhspan(1 / bins - half, 1 / bins + half, color=GREY, alpha=0.25, lw=0, label="95 %")
    edges = np.linspace(0, 1, bins + 1)
    for name, colour, style in (("first half", OTHER, "-"), ("second half", OURS, "-"), ("by type", "black", ":")):
        axes.stairs(tables["ranks"][name], edges, color=colour, lw=2, ls=style, label=name)
    axes.set_ylim(bottom=0)
    axes.set_xlabel("rank of the true number of hidden events")
    axes.set_title("ranks among the guesses: flat if all is well", fontsize=9, loc="left")
    _legend_under(axes, columns=4)


def _draw_reliability(axes: Any, tables: dict[str, Any]) -> None:
    """How often imputed events of a probability are there; larger dots are more events."""
    rows = tables["reliability"]
    axes.plot([0, 1], [0, 1], color=GREY, lw=1)
    x, y = [r["probability"] for r in rows], [r["value"] for r in rows]
    error = [max(2 * (r["error"] or 0.0), _PROBABILITY) for r in rows]
    axes.errorbar(x, y, yerr=error, fmt="none", ecolor=OURS, capsize=3)
    total = max(sum(r["events"] for r in rows), 1)
    axes.scatter(x, y, s=[20 + 300 * r["events"] / total for r in rows], color=OURS, alpha=0.7, clip_on=False)
    axes.set_xlim(0, 1.04)
    axes.set_ylim(-0.02, 1.04)
    axes.set_xlabel("probability of an imputed event (± 2 s.e., at least 0.05)")
    axes.set_title("share of imputed events that was there", fontsize=9, loc="left")


def _draw_coverage(axes: Any, tables: dict[str, Any]) -> None:
    """How many of the intervals of each type's imputed events hold the true time, against how many should."""
    covered = tables["coverage"]
    shown = sorted(covered["by_type"], key=lambda row: -row["events"])[:_MOST_TYPES]
    place = np.arange(len(shown))[::-1]
    axes.axvline(covered["nominal"], color=GREY, lw=1)
    share = [np.nan if row["value"] is None else row["value"] for row in shown]
    error = [2 * (row["error"] or 0.0) for row in shown]
    axes.errorbar(share, place, xerr=error, fmt="o", color=OURS, capsize=3)
    axes.set_yticks(place, [f"{short(row['type'], 20)} ({row['events']:,})" for row in shown])
    axes.set_ylim(-0.6, len(shown) - 0.4)
    axes.set_xlim(0, 1.04)
    axes.set_xlabel("share by type (± 2 s.e.); the line is right")
    every = "-" if covered["value"] is None else f"{covered['value']:.0%} ± {covered['error']:.0%}"
    axes.set_title(f"90 % intervals that hold the truth: {every}", fontsize=9, loc="left")


def _draw_distance(axes: Any, tables: dict[str, Any]) -> None:
    """Distance to the truth over that of predicting nothing, at each cost."""
    rows = tables["distance"]
    place = np.arange(len(rows))
    axes.axhline(1, color=GREY, lw=1)
    for key, label, colour, marker, shift in (
        ("share_of_nothing", "imputed", OURS, "o", -0.08),
        ("constant_rates", "constant rates", OTHER, "s", 0.08),
    ):
        values = [np.nan if r[key]["value"] is None else r[key]["value"] for r in rows]
        errors = [2 * (r[key]["error"] or 0.0) for r in rows]
        axes.errorbar(place + shift, values, yerr=errors, fmt=marker, color=colour, capsize=3, label=label)
    axes.set_xticks(place, [f"{r['cost']:.3g}" for r in rows])
    axes.set_xlim(-0.5, len(rows) - 0.5)
    axes.set_ylim(bottom=0)
    axes.set_xlabel("cost of an event too many or too few")
    axes.set_title("distance to the truth; 1 is predicting nothing", fontsize=9, loc="left")
    _legend_under(axes)
