"""Seconds until retrodict has started: ``import retrodict``, ``retrodict --help``, and what loads torch.

python benchmarks/start.py
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import time

COMMANDS = {
    "python -c pass": ["-c", "pass"],
    "import retrodict": ["-c", "import retrodict"],
    "retrodict --help": ["-m", "retrodict", "--help"],
    "retrodict fit --help": ["-m", "retrodict", "fit", "--help"],
    "import torch": ["-c", "import torch"],
}


def seconds(words: list[str]) -> float:
    begin = time.perf_counter()
    subprocess.run([sys.executable, *words], check=True, stdout=subprocess.DEVNULL)
    return time.perf_counter() - begin


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeats", type=int, default=5)
    repeats = parser.parse_args().repeats
    for name, words in COMMANDS.items():
        taken = sorted(seconds(words) for _ in range(repeats))
        print(f"{name:24} median {taken[repeats // 2]:.2f} s, at most {taken[-1]:.2f} s")


if __name__ == "__main__":
    main()
