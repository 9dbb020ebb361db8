"""What other rules of when to stop would have made of fits: epochs done, and nats per event lost on dev.

    python benchmarks/stop_rules.py FOLDER [FOLDER ...]

Each folder is one that ``rd.fit(..., directory=FOLDER)`` filled. A rule ends training when ``patience`` epochs together
gain less than a number of nats per event, or than a share of the gain since the first epoch.
"""

from __future__ import annotations

import argparse
import csv
from collections.abc import Callable
from pathlib import Path

PATIENCE = (12, 8)
RULES: dict[str, Callable[[float], float]] = {  # the least gain that training goes on for, given the whole gain
    "0.0001": lambda whole: 0.0001,
    "0.0005": lambda whole: 0.0005,
    "0.001": lambda whole: 0.001,
    "0.1 %": lambda whole: 0.001 * whole,
    "0.5 %": lambda whole: 0.005 * whole,
    "1 %": lambda whole: 0.01 * whole,
}


def replay(dev: list[float], patience: int, least: Callable[[float], float]) -> tuple[int, float]:
    """Epochs until a rule ends training, and the best dev loss by then."""
    for epochs in range(patience + 1, len(dev) + 1):
        best, before = min(dev[:epochs]), min(dev[: epochs - patience])
        if before - best < least(dev[0] - best):
            return epochs, best
    return len(dev), min(dev)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folders", nargs="+", type=Path)
    for folder in parser.parse_args().folders:
        with open(folder / "metrics.csv", encoding="utf-8") as file:
            dev = [float(row["dev_loss"]) for row in csv.DictReader(file)]
        print(f"{folder}: {len(dev)} epochs, gain {dev[0] - min(dev):.4f}")
        for patience in PATIENCE:
            for name, least in RULES.items():
                epochs, best = replay(dev, patience, least)
                print(f"  patience {patience:2}, least gain {name:7} {epochs:5} epochs, {best - min(dev):.4f} worse")


if __name__ == "__main__":
    main()
