"""Draw the evidence of every epoch of the EM runs: those of hawkes_em, mechanism_em and incomplete.

python experiments/evidence_plot.py docs/images/evidence.png
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

HERE = Path(__file__).parent


def curves() -> dict[str, list[tuple[str, list[float]]]]:
    """For each panel, labelled curves of log evidence per observed event, by epoch or round."""
    panels: dict[str, list[tuple[str, list[float]]]] = {}
    hawkes = read("hawkes_em.json")
    if hawkes:
        panels["Hawkes, half missing"] = [("train", list(hawkes["evidence"]))]
    for name in ("taxi", "synthetic"):
        found = read(f"incomplete_{name}.json")
        if found:
            rows = found["history"]
            panels[f"{name}, neural Hawkes, half missing"] = [
                ("train", [row["train_evidence"] for row in rows]),
                ("dev", [-row["dev_loss"] for row in rows]),
                ("dev, ELBO", [row["dev_elbo"] for row in rows]),
            ]
    mechanisms = read("mechanism_em.json")
    if mechanisms:
        panels["mechanisms, model known"] = [
            ("rates by type", mechanisms["rates"]["evidence"]),
            ("delays", mechanisms["delays"]["evidence"]),
            ("contextual", mechanisms["context"]["contextual"]["evidence"]),
            ("by type, where contextual", mechanisms["context"]["rates by type"]["evidence"]),
        ]
    return panels


def read(name: str) -> dict[str, object] | None:
    file = HERE / name
    return json.loads(file.read_text(encoding="utf-8")) if file.exists() else None


def main(target: str) -> None:
    panels = curves()
    figure, axes = plt.subplots(2, 2, figsize=(9, 6), layout="constrained", squeeze=False)
    for panel, (title, lines) in zip(axes.flat, panels.items(), strict=False):
        several = "mechanisms" in title  # runs on different streams: only their course can be compared
        for label, values in lines:
            shown = np.asarray(values) - (values[-1] if several else 0.0)
            panel.plot(np.arange(1, len(values) + 1), shown, label=label)
        panel.set(xlabel="round" if several else "epoch", title=title)
        panel.set_ylabel("log evidence per observed event" + (",\nless the last" if several else ""))
        panel.legend(fontsize=8, frameon=False)
        panel.grid(alpha=0.3)
    figure.savefig(target, dpi=130)


if __name__ == "__main__":
    main(*sys.argv[1:])
