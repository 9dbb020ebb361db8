"""Distance against cost beside the baselines, time against particles and length, and errors of integrals."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from retrodict.experiments.figures.style import FILTERING, OTHER, SMOOTHING, name_of, panels, save, setting_name
from retrodict.experiments.scale import SETTINGS, kind_of

_BASELINES = ("#666666", "#999999", "#b8860b", "#6a3d9a", "#2a9d8f", "#a65628")


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
    figure, axes = panels(len(SETTINGS), len(shown), width=3.6)
    for i, setting in enumerate(SETTINGS):
        for j, dataset in enumerate(shown):
            _relative(axes[i, j], table[dataset][setting])
            axes[i, j].set_title(f"{name_of(dataset)}, {setting_name(setting)}")
    handles = {
        label: line for place in axes.flat for line, label in zip(*place.get_legend_handles_labels(), strict=True)
    }
    figure.legend(handles.values(), handles.keys(), loc="outside lower center", ncols=3, frameon=False, fontsize=8)
    figure.supylabel("distance to the truth, relative to predicting nothing", fontsize=9)
    return figure


def _relative(axes: Any, found: dict[str, Any]) -> None:
    methods = found["methods"]
    nothing = np.array(methods["predict nothing"]["distance"])
    tones = iter(_BASELINES)
    for label, row in methods.items():
        family = label.split(",")[0]
        ours = {"filtering": FILTERING, "smoothing": SMOOTHING}.get(family)
        style = "-" if ours else "--"
        if ours and label.endswith(f"M = {found['particles'][0]}") and len(found["particles"]) > 1:
            style = ":"
        colour = ours or (OTHER if label == "predict nothing" else next(tones))
        axes.plot(found["costs"], np.array(row["distance"]) / nothing, style, color=colour, marker=".", label=label)
    axes.set_xscale("log")
    axes.set_xlabel("cost of an insertion or deletion")
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
    axes[0, 0].set_ylabel("milliseconds per observed event")
    axes[0, 0].legend(frameon=False, fontsize=8)
    figure.suptitle(f"Particle smoothing; on the right {usual} particles", fontsize=10)
    return figure


def _length(row: dict[str, Any]) -> float:
    return row["together"]["observed"] / row["together"]["streams"]


def _integrals(summary: dict[str, Any]) -> Any:
    """Errors of log weights against the number of points of each rule."""
    tables = {dataset: rows for dataset, rows in summary["integrals"].items() if rows}
    if not tables:
        return None
    figure, axes = panels(1, len(tables), width=3.6)
    for place, (dataset, rows) in zip(axes[0], tables.items(), strict=True):
        for family, colour in (("quadrature", SMOOTHING), ("monte-carlo", FILTERING)):
            chosen = sorted((int(name.rsplit("-", 1)[1]), row) for name, row in rows.items() if name.startswith(family))
            x, y = [n for n, _ in chosen], [row["log_weight_rms"] for _, row in chosen]
            place.plot(x, y, "o-", ms=4, color=colour, label=family.replace("-", " "))
        place.set(xscale="log", yscale="log", xlabel="points an interval", title=name_of(dataset))
        place.set_xticks([1, 2, 4, 8, 20], ["1", "2", "4", "8", "20"])
    axes[0, 0].set_ylabel("error of a particle's log weight (rms)")
    axes[0, 0].legend(frameon=False, fontsize=8)
    return figure
