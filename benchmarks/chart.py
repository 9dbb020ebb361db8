"""Draw what ``engines.py`` measured: µs an observed event of every engine, beside its floor.

python benchmarks/chart.py benchmarks/engines.jsonl docs/images/engines.png
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import matplotlib.pyplot as plt

COLOURS = {"torch": "#999999", "native": "#0072b2", "triton": "#d55e00"}


def main(source: str, target: str) -> None:
    lines = [json.loads(line) for line in Path(source).read_text(encoding="utf-8").splitlines()]
    chosen = [x for x in lines if x["length"] == 32 and x["particles"] == 50 and "2 threads" not in x["device"]]
    figure, axes = plt.subplots(figsize=(9, 4.2), layout="constrained")
    for engine, device in sorted({(x["engine"], x["device"]) for x in chosen}, key=lambda pair: -slowest(chosen, pair)):
        own = sorted((x for x in chosen if (x["engine"], x["device"]) == (engine, device)), key=lambda x: x["streams"])
        streams, colour = [x["streams"] for x in own], COLOURS[engine]
        style = "--" if engine == "torch" and "cpu" not in device else "-"
        where = "one CPU core" if "cpu" in device else device.removeprefix("NVIDIA ")
        times = [x["us_per_observed"] for x in own]
        axes.plot(streams, times, style, marker="o", color=colour, label=f"{engine}, {where}")
        if engine != "torch":
            axes.plot(streams, [x["floor_us"] for x in own], ":", color=colour, label=f"matrix products alone, {where}")
    axes.set(xscale="log", yscale="log", xlabel="streams at once", ylabel="µs per observed event")
    axes.set_title(
        "Particle smoothing in the paper's form, 50 particles, 256 cells, 10 types, half of 32 events missing",
        fontsize=10,
    )
    axes.grid(True, which="major", alpha=0.3)
    axes.legend(fontsize=8, frameon=False, loc="center left", bbox_to_anchor=(1.0, 0.5))
    figure.savefig(target, dpi=150)


def slowest(lines: list[dict[str, float]], pair: tuple[str, str]) -> float:
    return max(x["us_per_observed"] for x in lines if (x["engine"], x["device"]) == pair)


if __name__ == "__main__":
    main(*sys.argv[1:])
