"""How the cost of imputation grows with streams, their lengths, types and particles: processor seconds, and a picture.

    python benchmarks/growth.py                                  # a neural Hawkes process of 64 cells, one thread
    python benchmarks/growth.py --device cuda --streams 1024     # seconds, on a GPU
    python benchmarks/growth.py --out docs/images/growth.png --json growth.json

One of the four numbers is varied at a time, the others are as ``USUAL``; half of the events go missing, the proposal is
filtering with an untrained model (time depends on how many events there are, not on what they mean). The slope is that
of the line of least squares through the logarithms of the upper half of the numbers: 1 means twice the cost for twice
as many. On a CPU seconds are those of the processor, so that other programs matter less.
"""

from __future__ import annotations

import argparse
import json
import time
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import torch

import retrodict as rd

USUAL = {"streams": 64, "length": 16, "types": 4, "particles": 100}
VARIED = {
    "streams": (1, 4, 16, 64, 256, 1024),
    "length": (4, 16, 64, 256, 1024),
    "types": (2, 8, 32, 128, 512),
    "particles": (10, 30, 100, 300, 1000, 3000),
}
HALF = rd.ByType(0.5)


def seconds(sizes: dict[str, int], options: argparse.Namespace) -> float:
    """Of one call of ``rd.impute`` with all its ensembles, after one that is not counted; the least of ``--repeat``."""
    torch.manual_seed(0)
    K, clock = sizes["types"], time.process_time if options.device == "cpu" else time.perf_counter
    complete = rd.simulate(rd.Poisson([1 / K] * K), sizes["streams"], end=2.0 * sizes["length"], seed=1)
    observed, _ = HALF.censor(complete, seed=2)
    proposal = rd.Filtering(rd.NeuralHawkes.from_streams(complete, options.hidden), HALF).to(options.device)
    took = []
    for _ in range(options.repeat + 1):
        begin = clock()
        rd.impute(observed, proposal, sizes["particles"]).expected_count()
        took.append(clock() - begin)
    return min(took[1:])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--hidden", type=int, default=64)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--streams", type=int, default=USUAL["streams"], help="where streams are not varied")
    parser.add_argument("--repeat", type=int, default=2)
    parser.add_argument("--out", type=Path, help="the picture")
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    torch.set_num_threads(1)
    usual = USUAL | {"streams": options.streams}
    figure, axes = plt.subplots(1, 4, figsize=(11, 3), layout="constrained", sharey=True)
    found = []
    for axis, (name, values) in zip(axes, VARIED.items(), strict=True):
        times = [seconds(usual | {name: value}, options) for value in values]
        upper = len(values) // 2
        slope = np.polyfit(np.log(values[upper:]), np.log(times[upper:]), 1)[0]
        found.append(
            {"varied": name, "values": values, "seconds": [round(t, 4) for t in times], "slope": round(slope, 2)}
        )
        print(json.dumps(found[-1]), flush=True)
        axis.loglog(values, times, marker="o", color="#0072b2")
        axis.set_xlabel({"length": "observed events a stream"}.get(name, name))
        axis.set_title(f"slope {slope:.2f}", fontsize=10)
        axis.grid(True, which="major", alpha=0.3)
    axes[0].set_ylabel("processor seconds" if options.device == "cpu" else "seconds")
    if options.out:
        figure.savefig(options.out, dpi=150)
    if options.json:
        options.json.write_text(
            json.dumps({"hidden": options.hidden, "device": options.device, "found": found}, indent=1)
        )


if __name__ == "__main__":
    main()
