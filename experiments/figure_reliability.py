"""Do events of probability p happen in a share p of the cases? One diagram for each kind of data.

    python -m experiments.figure_reliability --folder reproduced --out docs/images/reliability.png

Consensus events by default at the middle cost, of all cases that ``experiments/honest.py`` has measured; points
stand for at least ``FEWEST`` events of like probability, bars for two standard errors, dotted lines for 0.05 off.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from experiments.honest import REAL, results
from experiments.style import FILTERING, SMOOTHING, panels, save, styled

FEWEST = 30
TRUE = "processes, model true"


def bins_of(folder: Path) -> dict[tuple[str, str], NDArray[np.float64]]:
    """Events, their summed probability and how many happened, [3, 10], by kind of data and proposal."""
    found: dict[tuple[str, str], NDArray[np.float64]] = {}
    for task, result in results(folder).items():
        if "x" in task.data.partition("-")[2]:
            continue
        middle: dict[str, Any] = result["default"][len(result["default"]) // 2]
        key = task.data if task.data in REAL else TRUE, task.method
        own = np.array([middle[name] for name in ("events", "probability", "happened")])
        found[key] = found.get(key, np.zeros((3, 10))) + own
    return found


def main() -> None:
    """Draw it."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--folder", type=Path, default=Path("reproduced"))
    parser.add_argument("--out", type=Path, default=Path("reliability.png"))
    options = parser.parse_args()
    found, names = bins_of(options.folder), (TRUE, *REAL)
    with styled():
        figure, axes = panels(1, len(names), width=2.4)
        for axis, name in zip(axes[0], names, strict=True):
            axis.plot([0.5, 1], [0.5, 1], color="0.5", linewidth=0.8)
            for off in (-0.05, 0.05):
                axis.plot([0.5, 1], [0.5 + off, 1 + off], color="0.7", linewidth=0.6, linestyle=":")
            for method, colour, marker in (("filtering", FILTERING, "s"), ("smoothing", SMOOTHING, "o")):
                bins = found.get((name, method), np.zeros((3, 10)))
                n, p, h = bins[:, bins[0] >= FEWEST]
                error = 2 * np.sqrt(h / n * (1 - h / n) / n)
                axis.errorbar(p / n, h / n, error, color=colour, marker=marker, markersize=4, linewidth=1, label=method)
            axis.set(title=name, xlim=(0.5, 1), ylim=(0.5, 1), xlabel="probability given", aspect="equal")
        axes[0, 0].set_ylabel("share that happened")
        axes[0, 0].legend(frameon=False, loc="upper left")
        save(figure, options.out)


if __name__ == "__main__":
    main()
