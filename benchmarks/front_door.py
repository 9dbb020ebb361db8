"""Where ``retrodict impute`` spends its time, from CSV to CSV: seconds of each stage, and the engine's share of them.

    python benchmarks/front_door.py --streams 2000
    python benchmarks/front_door.py --streams 20000 --threads 16 --against OTHER_CHECKOUT/src

Streams have 20 events of 10 types in the mean, half of them missing. The models are a ``NeuralHawkes`` of 64 cells with
a smoother of the default form, both untrained (time depends on how many events there are, not on what they mean), and
a ``Hawkes`` process that filters. The command runs with its default options in a process of its own, once on a few
streams to compile its kernels and then on all of them; loading the package is not counted. Stages that run at the same
time are each counted in full; "the rest" is what the command spends outside of all of them. ``--against`` also runs
the package of another source folder in the same way on the same files, before.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

TYPES, CELLS = 10, 64
STAGES = ("reading", "engine", "ensembles", "writing draws", "decoding", "writing")


class Stopwatch:
    """Seconds of each stage; a stage inside of another is not counted there, and threads are watched each alone."""

    def __init__(self) -> None:
        self.spans: dict[str, list[tuple[float, float]]] = {}
        self._open = threading.local()

    def watch(self, owner: Any, name: str, stage: str) -> None:
        """Count every call of ``owner.name`` as part of a stage."""
        original = getattr(owner, name)

        def watched(*values: Any, **options: Any) -> Any:
            with self.stage(stage):
                return original(*values, **options)

        setattr(owner, name, watched)

    @contextmanager
    def stage(self, name: str) -> Iterator[None]:
        """What runs in this context belongs to a stage."""
        outer = getattr(self._open, "stage", None)
        self._switch(name)
        try:
            yield
        finally:
            self._switch(outer)

    def _switch(self, stage: str | None) -> None:
        now, before = time.perf_counter(), getattr(self._open, "stage", None)
        if before is not None:
            self.spans.setdefault(before, []).append((self._open.since, now))
        self._open.stage, self._open.since = stage, now

    def seconds(self, *stages: str) -> float:
        """How long at least one of the stages was at work."""
        total, until = 0.0, 0.0
        for begin, end in sorted(span for stage in stages for span in self.spans.get(stage, [])):
            total += max(0.0, end - max(begin, until))
            until = max(until, end)
        return total


def run_command(model: Path, table: Path, output: Path, threads: int) -> dict[str, float]:
    """Seconds of each stage of one command, in this process."""
    import torch

    from retrodict.cli import app, common, decode, impute
    from retrodict.smc.engines import ENGINES
    from retrodict.smc.posterior import Posterior

    torch.set_num_threads(threads)
    clock = Stopwatch()
    clock.watch(common.Columns, "read", "reading")
    for kind in {type(engine) for engine in ENGINES.values()}:
        clock.watch(kind, "run", "engine")
    clock.watch(impute, "run", "ensembles")
    clock.watch(impute, "save_posterior", "writing draws")
    clock.watch(Posterior, "consensus", "decoding")
    clock.watch(decode, "write_events", "writing")
    begin = time.perf_counter()
    app(["impute", str(model), str(table), "-o", str(output), "-m", "0.5"], standalone_mode=False)
    whole = time.perf_counter() - begin
    return {s: clock.seconds(s) for s in STAGES} | {"the rest": whole - clock.seconds(*STAGES), "whole": whole}


def make(folder: Path, count: int) -> None:
    """Models, and tables all.csv and few.csv of observed streams."""
    import torch

    import retrodict as rd

    torch.manual_seed(0)
    missing = rd.ByType(0.5)
    follows = 0.8 * torch.eye(TYPES).roll(1, 1)  # each type sets off the next, so that there is something to impute
    hawkes = rd.Hawkes([0.2 / TYPES] * TYPES, follows.tolist(), 4.0)
    streams = rd.simulate(hawkes, count, end=20.0, seed=1)
    observed, _ = missing.censor(streams, seed=2)
    rd.write_events(observed, folder / "all.csv")
    rd.write_events(observed[:20], folder / "few.csv")
    neural = rd.NeuralHawkes.from_streams(streams, CELLS)
    rd.Smoothing(neural, missing).save(neural.save(folder / "neural") / "smoother")
    hawkes.save(folder / "hawkes")


def measure(source: Path | None, folder: Path, model: str, options: argparse.Namespace) -> dict[str, float]:
    """Seconds of each stage of the command of a package, in a process of its own."""
    own = dict(os.environ, OMP_NUM_THREADS=str(options.threads))
    if source is not None:
        own["PYTHONPATH"] = str(source.resolve())
    command = [sys.executable, __file__, "--threads", str(options.threads), "--command", str(folder / model)]
    for table in ("few", "all"):
        done = subprocess.run([*command, str(folder / f"{table}.csv")], env=own, check=True, stdout=subprocess.PIPE)
    found: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--streams", type=int, default=20_000)
    parser.add_argument("--models", nargs="*", default=["neural", "hawkes"])
    parser.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--against", type=Path, help="a source folder whose package is measured as well")
    parser.add_argument("--command", type=Path, nargs=2, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.command:
        model, table = options.command
        print(json.dumps(run_command(model, table, table.with_suffix(".imputed.csv"), options.threads)))
        return
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        make(folder, options.streams)
        for model in options.models:
            for label, source in (("before", options.against), ("after", None)):
                if label == "before" and source is None:
                    continue
                found = measure(source, folder, model, options)
                share, rate = found["engine"] / found["whole"], options.streams / found["whole"]
                seconds = {stage: round(value, 2) for stage, value in found.items()}
                about = {"model": model, "package": label, "streams": options.streams, "threads": options.threads}
                line = about | seconds | {"engine_share": round(share, 3), "streams_per_second": round(rate, 1)}
                print(json.dumps(line), flush=True)


if __name__ == "__main__":
    main()
