"""Draw docs/images/architecture.png: the way of a stream from table to table, file by file."""

from __future__ import annotations

from pathlib import Path

import matplotlib
from matplotlib.axes import Axes
from matplotlib.patches import FancyBboxPatch

matplotlib.use("Agg")
from matplotlib import pyplot as plt

WIDTH, HEIGHT = 3.05, 1.35
DATA, LEARNED, WORK = "#f3efe2", "#dfeadf", "#dde7f3"

# name: (column, row, colour, title, files)
BOXES: dict[str, tuple[float, float, str, str, str]] = {
    "complete": (0, 3, DATA, "complete table", "trips.csv,\na data frame"),
    "read_complete": (1, 3, WORK, "read_events", "events/io/read.py\nevents/io/long_table.py"),
    "train": (2, 3, DATA, "StreamSet", "events/stream_set.py"),
    "model": (3, 3, LEARNED, "model p", "train/fitting.py\nmodels/neural_hawkes.py"),
    "mechanism": (3, 2, LEARNED, "mechanism ρ", "missingness/base.py\nmissingness/by_type.py"),
    "proposal": (4, 3, LEARNED, "proposal q", "train/divergence.py\nproposals/smoothing.py"),
    "incomplete": (0, 1, DATA, "incomplete table", "incomplete.csv"),
    "read": (1, 1, WORK, "read_events", "events/io/read.py\nevents/io/long_table.py"),
    "observed": (2, 1, DATA, "StreamSet", "events/stream_set.py"),
    "impute": (3, 1, WORK, "impute", "smc/impute.py\nsmc/engines/"),
    "sweep": (4, 1, WORK, "Algorithm 1", "smc/sampler.py\nsmc/propose.py\nsmc/resampling.py"),
    "posterior": (4, 0, DATA, "Posterior", "smc/posterior.py"),
    "consensus": (3, 0, WORK, "consensus", "decode/sets.py\ndecode/local.py\ndecode/exact.py"),
    "fill": (2, 0, WORK, "fill", "events/combine.py"),
    "write": (1, 0, WORK, "write_events", "events/io/write.py"),
    "answer": (0, 0, DATA, "imputed table", "when, what,\nhow probable"),
}
ARROWS = [
    *zip(("complete", "read_complete", "train", "model"), ("read_complete", "train", "model", "proposal"), strict=True),
    *zip(("incomplete", "read", "observed", "impute"), ("read", "observed", "impute", "sweep"), strict=True),
    *zip(("posterior", "consensus", "fill", "write"), ("consensus", "fill", "write", "answer"), strict=True),
    ("mechanism", "proposal"),
    ("proposal", "sweep"),
    ("sweep", "posterior"),
    ("observed", "fill"),
]


def centre(name: str) -> tuple[float, float]:
    """The middle of a box."""
    column, row = BOXES[name][:2]
    return column * 3.5, row * 2.1


def draw_box(axes: Axes, name: str) -> None:
    """A box with its title and its files."""
    x, y = centre(name)
    _, _, colour, title, files = BOXES[name]
    corner = (x - WIDTH / 2, y - HEIGHT / 2)
    axes.add_patch(FancyBboxPatch(corner, WIDTH, HEIGHT, "round,pad=0.05", facecolor=colour, edgecolor="#555555"))
    axes.text(x, y + 0.4, title, ha="center", va="center", fontsize=10, fontweight="bold")
    axes.text(x, y - 0.17, files, ha="center", va="center", fontsize=7.5, family="monospace", linespacing=1.3)


def draw_arrow(axes: Axes, source: str, target: str) -> None:
    """From the edge of one box to that of another."""
    (x0, y0), (x1, y1) = centre(source), centre(target)
    side, up = WIDTH / 2 + 0.06, HEIGHT / 2 + 0.06
    if y0 == y1:
        step = side if x1 > x0 else -side
        begin, end = (x0 + step, y0), (x1 - step, y1)
    elif x0 == x1:
        step = up if y1 > y0 else -up
        begin, end = (x0, y0 + step), (x1, y1 - step)
    else:
        begin, end = (x0 + side, y0), (x1 - side * 0.45, y1 - up)
    axes.annotate("", end, begin, arrowprops={"arrowstyle": "-|>", "color": "#333333", "lw": 1.3, "shrinkA": 0})


def main() -> None:
    """Write the picture."""
    figure, axes = plt.subplots(figsize=(12, 6.2))
    for name in BOXES:
        draw_box(axes, name)
    for source, target in ARROWS:
        draw_arrow(axes, source, target)
    for row, text in ((3, "learn"), (1, "impute"), (0, "answer")):
        axes.text(-1.85, row * 2.1, text, rotation=90, ha="center", va="center", fontsize=11, color="#777777")
    axes.set(xlim=(-2.1, 15.7), ylim=(-0.9, 7.2))
    axes.axis("off")
    target = Path(__file__).resolve().parents[1] / "docs" / "images" / "architecture.png"
    figure.savefig(target, dpi=100, bbox_inches="tight")


if __name__ == "__main__":
    main()
