"""How many streams a second and how much memory: a folder of Parquet files, imputed in chunks by ``retrodict impute``.

    python benchmarks/capacity.py                        # 10,000 and 100,000 streams of ten events
    python benchmarks/capacity.py 10000 1000000          # a quarter of an hour and 3 GB of disk
    python benchmarks/capacity.py 20000 --cluster local --workers 2

A Poisson model of two types, half of one of them missing, ten observed events a stream on average, ten particles:
cheap, so that what the chunks themselves cost shows. Every run is a process of its own, started by the command as a
user would; a first, small one is not counted, since it compiles. Memory is the peak of the process. Where other
processes share the machine, streams a processor second are what to compare.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import retrodict as rd

MODEL = rd.Poisson([0.5, 0.75])
MISSING = ["-m", "0=0.5", "-m", "1=0"]
FILE = 50_000  # streams of a file


def make(streams: int, folder: Path) -> Path:
    """A folder of Parquet files."""
    folder.mkdir()
    for number, first in enumerate(range(0, streams, FILE)):
        size = min(FILE, streams - first)
        complete = rd.simulate(MODEL, size, end=10.0, seed=number)
        observed, _ = rd.ByType([0.5, 0.0]).censor(complete, seed=number)
        named = rd.StreamSet.trusted(
            observed.event_times, observed.event_types, observed.offsets, observed.starts, observed.ends,
            [f"stream-{first + i}" for i in range(size)], observed.types,
        )  # fmt: skip
        rd.write_events(named, folder / f"{number:04d}.parquet")
    return folder


def run(model: Path, source: Path, output: Path, more: list[str], particles: int) -> tuple[float, float, float]:
    """Seconds, processor seconds and peak memory in MiB of one command."""
    command = [sys.executable, "-m", "retrodict", "impute", str(model), str(source), "-o", str(output), *MISSING]
    command += ["--particles", str(particles), "--no-draws", *more]
    begin = time.perf_counter()
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    assert process.stderr is not None
    said = process.stderr.read()
    _, status, usage = os.wait4(process.pid, 0)
    if status:
        raise SystemExit(said)
    return time.perf_counter() - begin, usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("streams", type=int, nargs="*", default=[10_000, 100_000])
    parser.add_argument("--cluster", help="as 'retrodict impute' takes it")
    parser.add_argument("--workers", type=int)
    parser.add_argument("--particles", type=int, default=10)
    parser.add_argument("--chunk", type=int, help="streams of a chunk")
    parser.add_argument("--folder", type=Path, help="where to work, by default a temporary folder")
    options = parser.parse_args()
    more = [] if options.cluster is None else ["--cluster", options.cluster]
    more += [] if options.workers is None else ["--workers", str(options.workers)]
    more += [] if options.chunk is None else ["--chunk-streams", str(options.chunk)]
    root = Path(tempfile.mkdtemp(dir=options.folder))
    try:
        model = Path(rd.save_model(MODEL, root / "model"))
        for number in [500, *options.streams]:
            source = make(number, root / "in")
            seconds, busy, memory = run(model, source, root / "out", more, options.particles)
            if number != 500:
                row = {"streams": number, "seconds": round(seconds, 1), "streams/s": round(number / seconds)}
                row |= {"processor s": round(busy, 1), "streams/processor s": round(number / busy)}
                print(json.dumps(row | {"peak MiB": round(memory)}), flush=True)
            shutil.rmtree(root / "in")
            shutil.rmtree(root / "out")
    finally:
        shutil.rmtree(root)


if __name__ == "__main__":
    main()
