"""Distance against cost, beside the baselines and the paper's configuration."""

from __future__ import annotations

from typing import Any

import numpy as np

from experiments.sizes import SETTINGS
from experiments.style import FILTERING, NAMES, OTHER, SMOOTHING, panels, plain_ticks, setting_name

_COLOURS = {
    "predict nothing": OTHER,
    "constant rate (Poisson)": "#b8860b",
    "median time before each seen event": "#2a9d8f",
    "paper's configuration": "#6a3d9a",
    "most probable particle": "#a65628",
    "filtering": FILTERING,
    "smoothing": SMOOTHING,
}


def draw(summary: dict[str, Any]) -> Any:
    """Mean distance of every method relative to predicting nothing, the synthetic sets together."""
    table = summary["decoding"]
    shown = [kind for kind in NAMES if kind in table and all(table[kind][s] for s in SETTINGS)]
    if not shown:
        return None
    figure, axes = panels(len(SETTINGS), len(shown), beside=2.2)
    for i, setting in enumerate(SETTINGS):
        for j, kind in enumerate(shown):
            _relative(axes[i, j], table[kind][setting])
            axes[i, j].set_title(f"{NAMES[kind]}, {setting_name(setting)}")
    lines = [place.get_legend_handles_labels() for place in axes.flat]
    handles = {label: line for pair in lines for line, label in zip(*pair, strict=True)}
    figure.legend(handles.values(), handles.keys(), loc="outside right upper", frameon=False, fontsize=8)
    figure.supxlabel("cost of an insertion or deletion", fontsize=9)
    figure.supylabel("distance to the truth, relative to predicting nothing", fontsize=9)
    return figure


def _relative(axes: Any, found: dict[str, Any]) -> None:
    """Methods with the fewest particles; the paper's filtering and the most particles are left to the tables."""
    nothing = np.array(found["methods"]["predict nothing"])
    fewest = min(int(M) for M in found["tests"]) if found["tests"] else 0
    for label, distance in found["methods"].items():
        name, _, M = label.partition(", M = ")
        if (M and int(M) != fewest) or name == "paper's configuration, filtering":
            continue
        colour = _COLOURS[name.split(",")[0]]
        style = "-" if name in ("filtering", "smoothing") else "--"
        axes.plot(found["costs"], np.array(distance) / nothing, style, color=colour, marker=".", lw=1.2, label=name)
    axes.set_xscale("log")
    plain_ticks(axes.xaxis, found["costs"])
    axes.set_ylim(bottom=0)
