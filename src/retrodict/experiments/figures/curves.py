"""Distance against cost beside the baselines, time against particles and length, and errors of integrals."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from retrodict.experiments.figures.style import (
    FILTERING,
    OTHER,
    SMOOTHING,
    name_of,
    panels,
    plain_ticks,
    save,
    setting_name,
)
from retrodict.experiments.scale import SETTINGS, kind_of

_COLOURS = {
    "predict nothing": OTHER,
    "constant rate (Poisson)": "#b8860b",
    "median time before each seen event": "#2a9d8f",
    "paper's configuration": "#6a3d9a",
    "most probable particle": "#a65628",
    "filtering": FILTERING,
    "smoothing taught by data": "#e9a3a5",
    "smoothing": SMOOTHING,
}


_FAMILIES = {"quadrature": "Gauss-Legendre quadrature", "monte-carlo": "Monte Carlo, shared points"}


def draw(summary: dict[str, Any], folder: Path) -> list[Path]:
    """Those figures for which there are numbers."""
    figures = {"baselines": _baselines(summary), "runtime": _runtime(summary), "integrals": _integrals(summary)}
    return [save(figure, folder / f"{name}.png") for name, figure in figures.items() if figure is not None]


def _baselines(summary: dict[str, Any]) -> Any:
    """Mean distance of every method relative to predicting nothing, for the real data sets."""
    table = summary["decoding"]
    shown = [d for d in table if kind_of(d) != "synthetic" and all(table[d][s] for s in SETTINGS)]
    if not shown:
        return None
    figure, axes = panels(len(SETTINGS), len(shown), beside=2.7)
    for i, setting in enumerate(SETTINGS):
        for j, dataset in enumerate(shown):
            _relative(axes[i, j], table[dataset][setting])
            axes[i, j].set_title(f"{name_of(dataset)}, {setting_name(setting)}")
    handles = {
        label: line for place in axes.flat for line, label in zip(*place.get_legend_handles_labels(), strict=True)
    }
    figure.legend(handles.values(), handles.keys(), loc="outside right upper", frameon=False, fontsize=8)
    figure.supylabel("distance to the truth, relative to predicting nothing", fontsize=9)
    return figure


def _relative(axes: Any, found: dict[str, Any]) -> None:
    methods = found["methods"]
    nothing = np.array(methods["predict nothing"]["distance"])
    most = f"M = {found['particles'][-1]}"
    for label, row in methods.items():
        words = label.split(", ")
        style = "-" if words[-1] == most and words[0] in ("filtering", "smoothing") else "--"
        style = ":" if words[:2] == ["paper's configuration", "filtering"] else style
        relative = np.array(row["distance"]) / nothing
        axes.plot(found["costs"], relative, style, color=_COLOURS[words[0]], marker=".", lw=1.2, label=label)
    axes.set(xscale="log", xlabel="cost of an insertion or deletion")
    plain_ticks(axes.xaxis, found["costs"])
    axes.set_ylim(bottom=0)


def _runtime(summary: dict[str, Any]) -> Any:
    """Milliseconds per observed event against particles, and against length; both logarithmic."""
    rows = summary["runtime"]
    if not rows:
        return None
    figure, axes = panels(1, 2, width=3.6)
    usual = max({row["particles"] for row in rows}, key=lambda M: sum(row["particles"] == M for row in rows))
    cases = (
        ("particles", [row for row in rows if row["share"] == 1], lambda row: row["particles"]),
        ("observed events in a stream", [row for row in rows if row["particles"] == usual], _length),
    )
    for place, (title, chosen, x) in zip(axes[0], cases, strict=True):
        chosen = sorted(chosen, key=x)
        for key, colour in (("alone", FILTERING), ("together", SMOOTHING)):
            count = chosen[0][key]["streams"] if chosen else 0
            y = [1e3 * row[key]["seconds"] / row[key]["observed"] for row in chosen]
            label = f"{count} stream{'s at once' if count > 1 else ' at a time'}"
            place.plot([x(row) for row in chosen], y, "o-", ms=4, color=colour, label=label)
        place.set(xscale="log", yscale="log", xlabel=title)
        plain_ticks(place.xaxis, [round(x(row)) for row in chosen])
    _same_heights(axes[0])
    axes[0, 0].set_ylabel("milliseconds per observed event")
    axes[0, 0].legend(frameon=False, fontsize=8)
    figure.suptitle(f"Particle smoothing; on the right {usual} particles", fontsize=10)
    return figure


def _same_heights(places: Any) -> None:
    """Give panels with a logarithmic y axis the same one, with plain ticks."""
    low, high = min(place.get_ylim()[0] for place in places), max(place.get_ylim()[1] for place in places)
    steps = [a * 10.0**b for b in range(-5, 5) for a in (1, 2, 5)]
    for place in places:
        place.set_ylim(low, high)
        plain_ticks(place.yaxis, [value for value in steps if low <= value <= high])


def _length(row: dict[str, Any]) -> float:
    return row["together"]["observed"] / row["together"]["streams"]


def _integrals(summary: dict[str, Any]) -> Any:
    """Errors of log weights against the number of points of each rule."""
    tables = {dataset: rows for dataset, rows in summary["integrals"].items() if rows}
    if not tables:
        return None
    figure, axes = panels(1, len(tables), width=3.6)
    for place, (dataset, rows) in zip(axes[0], tables.items(), strict=True):
        for family, colour in zip(_FAMILIES, (SMOOTHING, FILTERING), strict=True):
            chosen = sorted((int(name.rsplit("-", 1)[1]), row) for name, row in rows.items() if name.startswith(family))
            x, y = [n for n, _ in chosen], [row["log_weight_rms"] for _, row in chosen]
            place.plot(x, y, "o-", ms=4, color=colour, label=_FAMILIES[family])
        place.set(xscale="log", yscale="log", xlabel="points an interval", title=name_of(dataset))
        plain_ticks(place.xaxis, [1, 2, 4, 8, 20])
    _same_heights(axes[0])
    axes[0, 0].set_ylabel("error of a particle's log weight (rms)")
    axes[0, -1].legend(frameon=False, fontsize=8)
    return figure
