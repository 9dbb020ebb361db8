"""What all figures share: colours, names, and how they are written."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from retrodict.events.atomic import atomic_file, make_folder
from retrodict.experiments.scale import kind_of

FILTERING, SMOOTHING, OTHER = "#2166ac", "#c0282d", "#7a7a7a"
NAMES = {"elevator": "Elevator System", "taxi": "NYC Taxi", "flights": "NYC Flights", "synthetic": "Synthetic"}
FONT: Any = {
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
    return "deterministic" if setting == "deterministic" else f"ρ = {setting.removeprefix('rho-')}"


def panels(rows: int, columns: int, width: float = 3.1, height: float = 2.9, beside: float = 0.0) -> tuple[Any, Any]:
    """A figure without a window, and its axes [rows, columns]; ``beside`` is room for a legend."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width * columns + beside, height * rows), layout="constrained")
    FigureCanvasAgg(figure)
    return figure, figure.subplots(rows, columns, squeeze=False)


def styled() -> Any:
    """A context in which figures have our fonts and frames."""
    import matplotlib as mpl

    return mpl.rc_context(FONT)


def plain_ticks(axis: Any, values: Sequence[float]) -> None:
    """Ticks of a logarithmic axis at these values, written out."""
    axis.set_ticks(list(values), [f"{value:g}" for value in values])
    axis.set_minor_locator(_no_ticks())


def _no_ticks() -> Any:
    from matplotlib.ticker import NullLocator

    return NullLocator()


def save(figure: Any, path: Path) -> Path:
    """Write a PNG, whole or not at all."""
    make_folder(path.parent)
    with atomic_file(path) as side:
        figure.savefig(side, dpi=130, format="png")
    return path


def grid_of(count: int, most: int = 5) -> tuple[int, int]:
    """Rows and columns for so many panels."""
    columns = min(count, most)
    return -(-count // max(columns, 1)), columns
