"""What figures and tables share: colours, names, and how figures are made and written."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import matplotlib as mpl
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.ticker import NullLocator

from experiments.sizes import kind_of
from retrodict.events.atomic import atomic_file, make_folder

FILTERING, SMOOTHING, OTHER = "#2166ac", "#c0282d", "#7a7a7a"
NAMES = {"elevator": "Elevator", "taxi": "NYC Taxi", "flights": "NYC Flights", "synthetic": "Synthetic"}
STYLE: Any = {
    "font.size": 9,
    "axes.titlesize": 9.5,
    "xtick.labelsize": 8,
    "ytick.labelsize": 8,
    "axes.spines.top": False,
    "axes.spines.right": False,
}


def name_of(dataset: str) -> str:
    """As titles have it."""
    name = NAMES[kind_of(dataset)]
    return f"{name} {dataset.split('-')[1]}" if "-" in dataset else name


def setting_name(setting: str) -> str:
    """As titles have it."""
    return setting.replace("rho-", "ρ = ")


def panels(rows: int, columns: int, width: float = 3.0, height: float = 2.7, beside: float = 0.0) -> tuple[Any, Any]:
    """A figure without a window, and its axes [rows, columns]; ``beside`` is room for a legend."""
    figure = Figure(figsize=(width * columns + beside, height * rows), layout="constrained")
    FigureCanvasAgg(figure)
    return figure, figure.subplots(rows, columns, squeeze=False)


def styled() -> Any:
    """A context in which figures have our fonts and frames."""
    return mpl.rc_context(STYLE)


def plain_ticks(axis: Any, values: Sequence[float]) -> None:
    """Ticks of a logarithmic axis at these values, written out."""
    axis.set_ticks(list(values), [f"{value:g}" for value in values])
    axis.set_minor_locator(NullLocator())


def save(figure: Any, path: Path) -> Path:
    """Write a PNG, whole or not at all."""
    make_folder(path.parent)
    with atomic_file(path) as side:
        figure.savefig(side, dpi=100, format="png")
    return path
