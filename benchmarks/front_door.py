"""Where ``retrodict impute`` spends its time, from CSV to CSV: seconds of each stage, and the engine's share of them.

    python benchmarks/front_door.py --streams 2000
    python benchmarks/front_door.py --streams 20000 --threads 16 --against OTHER_CHECKOUT/.venv/bin/python
    python benchmarks/front_door.py --streams 20 --particles 10 --cold

Streams have 20 events of 10 types in the mean, half of them missing. The models are a ``NeuralHawkes`` of 64 cells with
a smoother of the default form, both untrained (time depends on how many events there are, not on what they mean), and
a ``Hawkes`` process that filters. The command runs with its default options in a process of its own, once on 20
streams so that its kernels are compiled and kept, and then on all of them. Loading the package, "start", is no part of
the whole. Stages that run at the same time are each counted in full; "the rest" is what the command spends outside of
all of them. ``--against`` also runs the package of another environment in the same way on the same files, before.
``--cold`` tells how long the command on 20 streams takes where no compiled kernels were kept yet, start included.
"""

from __future__ import annotations

import argparse
import functools
import json
import os
import resource
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
STAGES = {
    "reading": ["cli.common:Columns.read"],
    "checks": ["smc.impute:warn_of", "smc.posterior:Posterior.suspicions", "cli.impute:_judge"],
    "packing": ["events.batch:Packed.__init__", "events.batch:Packed.batch", "smc.impute:settle"],
    "engine": ["smc.engines.native:NativeEngine.run", "smc.engines.gpu.engine:TritonEngine.run"],
    "ensembles": ["smc.genealogy:trace_back", "smc.posterior:join", "smc.tracing:join"],
    "choice": ["smc.posterior:squared_errors", "smc.posterior:prefers_lagged"],
    "writing draws": ["cli.impute:save_posterior"],
    "cross-fit": ["smc.decision:_cross_fit"],
    "decoding": ["smc.posterior:Posterior.consensus"],
    "writing": ["cli.decode:write_events", "cli.decode:fill"],
}


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


def run_command(model: Path, table: Path, output: Path, options: argparse.Namespace) -> dict[str, Any]:
    """Seconds of each stage of one command, in this process."""
    begin = time.perf_counter()
    import torch

    import retrodict
    import retrodict.cli.decode  # what the command would load
    import retrodict.cli.impute
    import retrodict.smc.decision
    import retrodict.smc.genealogy
    from retrodict.cli import app

    loaded = time.perf_counter() - begin
    torch.set_num_threads(options.threads)
    clock = Stopwatch()
    for stage, places in STAGES.items():
        for place in places:
            module, _, path = place.partition(":")
            *owners, name = path.split(".")
            owner = functools.reduce(getattr, owners, sys.modules.get(f"retrodict.{module}"))
            if hasattr(owner, name):  # other versions keep some of them elsewhere
                clock.watch(owner, name, stage)
    given = ["impute", str(model), str(table), "-o", str(output), "-m", "0.5"]
    begin, cpu = time.perf_counter(), time.process_time()
    app([*given, "--particles", str(options.particles)] if options.particles else given, standalone_mode=False)
    whole = time.perf_counter() - begin
    rest = whole - clock.seconds(*STAGES)
    about: dict[str, Any] = {"package": str(Path(retrodict.__file__).parent), "peak_mib": _peak_mib(), "start": loaded}
    about["cpu"] = time.process_time() - cpu  # of all threads; says more where other programs are at work
    return about | {stage: clock.seconds(stage) for stage in STAGES} | {"the rest": rest, "whole": whole}


def _peak_mib() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 10


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


def measure(python: str, folder: Path, model: str, options: argparse.Namespace) -> dict[str, Any]:
    """What ``run_command`` finds in a process of its own, after one on few streams."""
    few, everything = (_process(python, folder / model, folder / f"{table}.csv", options) for table in ("few", "all"))
    if options.cold:
        with tempfile.TemporaryDirectory() as empty:
            cold = _process(python, folder / model, folder / "few.csv", options, NUMBA_CACHE_DIR=empty)
        everything |= {"cold": cold["start"] + cold["whole"], "warm": few["start"] + few["whole"]}
    return everything


def _process(python: str, model: Path, table: Path, options: argparse.Namespace, **more: str) -> dict[str, Any]:
    command = [python, __file__, "--threads", str(options.threads), "--particles", str(options.particles)]
    own = os.environ | {"OMP_NUM_THREADS": str(options.threads)} | more
    done = subprocess.run(
        [*command, "--command", str(model), str(table)], env=own, check=True, capture_output=True, text=True
    )
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


def show(model: str, found: dict[str, dict[str, Any]], options: argparse.Namespace) -> None:
    """A table of stages, and a line of JSON for each package."""
    print(f"{model}, {options.streams:,} streams".ljust(28), *(f"{name:>8} s  share" for name in found))
    for stage in (*STAGES, "the rest", "whole"):
        print(stage.ljust(28), *(f"{f[stage]:10.2f} {f[stage] / f['whole']:6.1%}" for f in found.values()))
    for name, own in found.items():
        rate = {"engine_share": own["engine"] / own["whole"], "streams_per_second": options.streams / own["whole"]}
        seconds = {key: value for key, value in own.items() if key in ("start", "whole", "cpu", "cold", "warm")}
        numbers = {key: round(value, 3) for key, value in (seconds | rate).items()}
        about = {"model": model, "package": name, "streams": options.streams, "threads": options.threads}
        print(json.dumps(about | numbers | {"peak_mib": own["peak_mib"]}), flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--streams", type=int, default=20_000)
    parser.add_argument("--particles", type=int, default=0, help="by default those of the command")
    parser.add_argument("--models", nargs="*", default=["neural", "hawkes"])
    parser.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--against", help="the Python of another environment, whose package is measured as well")
    parser.add_argument("--cold", action="store_true", help="also time the command without kept kernels")
    parser.add_argument("--command", type=Path, nargs=2, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.command:
        model, table = options.command
        print(json.dumps(run_command(model, table, table.with_suffix(".imputed.csv"), options)))
        return
    pythons = {"before": options.against} if options.against else {}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        make(folder, options.streams)
        for model in options.models:
            found = {
                label: measure(python, folder, model, options)
                for label, python in (pythons | {"after": sys.executable}).items()
            }
            if len({own["package"] for own in found.values()}) < len(found):
                parser.error(f"--against {options.against} has the same package as this environment")
            show(model, found, options)


if __name__ == "__main__":
    main()
