"""Draw the evidence of every epoch or round of the EM runs in runs/em.

python -m experiments.em_plot docs/images/evidence.png
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np

from experiments.store import read_json
from experiments.style import panels, save


def curves(folder: Path) -> dict[str, dict[str, list[float]]]:
    """For each panel, labelled curves of log evidence per observed event."""
    found = {name: read_json(folder / f"{name}.json") for name in ("hawkes", "taxi", "synthetic", "mechanism")}
    result = {"Hawkes, half missing": {"train": found["hawkes"]["evidence"]}}
    for name in ("taxi", "synthetic"):
        rows = found[name]["history"]
        result[f"{name}, neural Hawkes, half missing"] = {
            "train": [row["train_evidence"] for row in rows],
            "dev": [-row["dev_loss"] for row in rows],
            "dev, ELBO": [row["dev_elbo"] for row in rows],
        }
    context = found["mechanism"]["context"]
    result["mechanisms, model known"] = {
        "rates by type": found["mechanism"]["rates"]["evidence"],
        "delays": found["mechanism"]["delays"]["evidence"],
        "contextual": context["contextual"]["evidence"],
        "by type, where contextual": context["rates by type"]["evidence"],
    }
    return result


def main(target: str, folder: Path = Path("runs/em")) -> None:
    """One panel a kind of run."""
    figure, axes = panels(2, 2, width=4.5, height=3.0)
    for panel, (title, lines) in zip(axes.flat, curves(folder).items(), strict=True):
        several = "mechanisms" in title  # runs on different streams: only their course can be compared
        for label, values in lines.items():
            shown = np.asarray(values) - (values[-1] if several else 0.0)
            panel.plot(np.arange(1, len(values) + 1), shown, label=label)
        panel.set(xlabel="round" if several else "epoch", title=title)
        panel.set_ylabel("log evidence per observed event" + (",\nless the last" if several else ""))
        panel.legend(fontsize=8, frameon=False)
    save(figure, Path(target))


if __name__ == "__main__":
    main(sys.argv[1])
