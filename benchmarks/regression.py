"""Fails when an engine has become slower than a stated multiple of its floor.

    python benchmarks/regression.py                    # native and torch on one core of this machine, two minutes
    python benchmarks/regression.py --device cuda      # triton on this GPU

D = 256, 10 types, 50 particles, 32 events a stream, half of them missing, a smoother in the paper's form or with mixing
units. Times are ratios to the matrix products alone, measured in the same run (``engines.py``), so a busy or slow
machine matters little; the best of three counts.
"""

from __future__ import annotations

import argparse
import sys

import torch
from engines import measure

# engine, streams, mixing units -> times the floor at most
LIMITS = {
    "cpu": {
        ("native", 1, 0): 2.0,
        ("native", 64, 0): 2.0,
        ("native", 1, 32): 1.8,
        ("native", 1, 256): 1.8,
        ("torch", 16, 0): 14.0,
    },
    "cuda": {("triton", 64, 0): 25.0, ("triton", 1024, 0): 10.0},
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", default="cpu", choices=list(LIMITS))
    chosen = parser.parse_args()
    torch.set_num_threads(1)
    slow = False
    for (engine, streams, mixing), limit in LIMITS[chosen.device].items():
        options = argparse.Namespace(
            engine=engine,
            device=chosen.device,
            hidden=256,
            proposal="smoothing",
            mixing=mixing,
            missing="half",
            repeat=3,
            sampler=None,
            spread=0.1,
        )
        ratios = []
        while len(ratios) < 3 and min(ratios, default=limit + 1) > limit:
            ratios.append(float(measure(32, streams, 50, options)["times_the_floor"]))
        slow |= min(ratios) > limit
        verdict = "too slow" if min(ratios) > limit else "fine"
        case = f"{engine}, {streams} streams, {mixing} mixing units"
        print(f"{case}: {min(ratios):.2f} times the floor, at most {limit:g}: {verdict}", flush=True)
    sys.exit(slow)


if __name__ == "__main__":
    main()
