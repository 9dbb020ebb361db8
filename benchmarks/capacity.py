"""How many streams a second and how much memory: a folder of Parquet files, imputed in chunks by ``retrodict impute``.

    python benchmarks/capacity.py                        # 10,000 and 100,000 streams of ten events
    python benchmarks/capacity.py 10000 1000000          # a quarter of an hour and 3 GB of disk
    python benchmarks/capacity.py 20000 --cluster local --workers 2
    python benchmarks/capacity.py 200000 --against --workers 2 --repeat 3  # one process and a cluster, in turn
    python benchmarks/capacity.py 200000 --stages        # what of it one process has to do, and what many may
    python benchmarks/capacity.py 200000 --device cuda --neural 64 --chunk 10000

A Poisson model of two types, half of one of them missing, ten observed events a stream on average, ten particles:
cheap, so that what the chunks themselves cost shows. Every run is a process of its own, started by the command as a
user would; a first, small one is not counted, since it compiles. Memory is the peak of the process. Where other
processes share the machine, streams a processor second are what to compare. ``--against`` runs one process with one
thread, one with as many threads as workers, and a local cluster in turn on the same folder, ``--repeat`` times, so that
what else runs on the machine hits all alike: ratios are medians. ``--stages`` gives the wall and processor seconds of
each stage of one process; the rest is the start of the program. ``--neural`` takes an untrained neural Hawkes process
of so many cells instead, as time does not depend on what it has learned.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import torch

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


def words(model: Path, source: Path, output: Path, particles: int) -> list[str]:
    """The command."""
    return ["impute", str(model), str(source), "-o", str(output), *MISSING, "--particles", str(particles), "--no-draws"]


def run(command: list[str], threads: int | None) -> tuple[float, float, float]:
    """Seconds, processor seconds and peak memory in MiB of one command."""
    environment = os.environ if threads is None else {**os.environ, "OMP_NUM_THREADS": str(threads)}
    begin = time.perf_counter()
    process = subprocess.Popen(
        [sys.executable, "-m", "retrodict", *command], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
        env=environment,
    )  # fmt: skip
    assert process.stderr is not None
    said = process.stderr.read()
    _, status, usage = os.wait4(process.pid, 0)
    if status:
        raise SystemExit(said)
    return time.perf_counter() - begin, usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024


def stages(command: list[str]) -> None:
    """Run the command in this process, and print what each of its stages took."""
    from retrodict.cli import app, common

    bar = common.bar

    @contextmanager
    def timed(what: str, total: int | None, unit: str = "streams") -> Iterator[Callable[[int], None]]:
        begin, busy = time.perf_counter(), time.process_time()
        with bar(what, total, unit) as done:
            yield done
        took = {"wall s": round(time.perf_counter() - begin, 2), "processor s": round(time.process_time() - busy, 2)}
        print(json.dumps({"stage": what, **took}), flush=True)

    common.bar = timed
    begin = time.perf_counter()
    app(command, standalone_mode=False)
    print(json.dumps({"stage": "all", "wall s": round(time.perf_counter() - begin, 2)}), flush=True)


def row(streams: int, who: str, took: tuple[float, float, float]) -> dict[str, object]:
    """What is printed of a run; the processor seconds of a cluster are those of its driver alone."""
    seconds, busy, memory = took
    facts: dict[str, object] = {"streams": streams, "who": who, "seconds": round(seconds, 1)}
    facts |= {"streams/s": round(streams / seconds), "s a million": round(seconds * 1e6 / streams)}
    if "cluster" not in who:
        facts |= {"processor s": round(busy, 1), "streams/processor s": round(streams / busy)}
    return facts | {"peak MiB": round(memory)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("streams", type=int, nargs="*", default=[10_000, 100_000])
    parser.add_argument("--cluster", help="as 'retrodict impute' takes it")
    parser.add_argument("--workers", type=int)
    parser.add_argument("--against", action="store_true", help="one process and a local cluster, in turn")
    parser.add_argument("--repeat", type=int, default=1)
    parser.add_argument("--stages", action="store_true", help="what each stage of one process takes")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--neural", type=int, help="cells of a neural Hawkes process, instead of a Poisson model")
    parser.add_argument("--particles", type=int, default=10)
    parser.add_argument("--chunk", type=int, help="streams of a chunk")
    parser.add_argument("--folder", type=Path, help="where to work, by default a temporary folder")
    options = parser.parse_args()
    common = ["--device", options.device]
    common += [] if options.chunk is None else ["--chunk-streams", str(options.chunk)]
    workers = [] if options.workers is None else ["--workers", str(options.workers)]
    cluster = "local" if options.against else options.cluster
    ways: dict[str, tuple[list[str], int | None]] = {"one process": ([], None)}
    if cluster:
        ways = {f"cluster of {options.workers or 'all'} workers": (["--cluster", cluster, *workers], None)}
    if options.against:
        several = options.workers or os.cpu_count() or 1
        alone = {f"one process, threads: {threads}": ([], threads) for threads in (1, several)}
        ways = {**alone, **ways}
    root = Path(tempfile.mkdtemp(dir=options.folder))
    torch.manual_seed(0)
    chosen = MODEL if options.neural is None else rd.NeuralHawkes(2, options.neural, time_scale=1.0)
    try:
        model = Path(rd.save_model(chosen, root / "model"))
        for number in [500, *options.streams]:
            source, found = make(number, root / "in"), dict[str, list[float]]()
            command = [*words(model, source, root / "out", options.particles), *common]
            if options.stages and number != 500:
                stages(command)
                shutil.rmtree(root / "out")
                shutil.rmtree(root / "in")
                continue
            for _ in range(1 if number == 500 else options.repeat):
                for who, (more, threads) in ways.items():
                    took = run([*command, *more], threads)
                    shutil.rmtree(root / "out")
                    found.setdefault(who, []).append(took[0])
                    if number != 500:
                        print(json.dumps(row(number, who, took)), flush=True)
            if options.against and number != 500:
                *alone_took, many = found.values()
                for who, one in zip(ways, alone_took, strict=False):
                    ratio = statistics.median(a / b for a, b in zip(one, many, strict=True))
                    print(json.dumps({"streams": number, f"{who} / cluster": round(ratio, 2)}), flush=True)
            shutil.rmtree(root / "in")
    finally:
        shutil.rmtree(root)


if __name__ == "__main__":
    main()
