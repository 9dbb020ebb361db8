"""Reproduce the paper: python -m experiments all, or one stage after the other.

Stages: data, models (train p), train (p and the smoothers), measure, collect (tables, figures, docs/results.md). What
is finished stays in the folder and is not done again: interrupt a stage at any time and repeat the command.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from pathlib import Path

import torch

from experiments.collect import collect
from experiments.plan import data_tasks, known, measure_tasks, model_tasks, smoother_tasks, timing_tasks
from experiments.pool import run_tasks
from experiments.sizes import SCALES
from experiments.store import Run
from retrodict.errors import RetrodictError

STAGES = ("data", "models", "train", "measure", "collect", "all")


def main(arguments: list[str] | None = None) -> int:
    """Run a stage; 0 if all is done, 1 if something failed, 3 if time was up before the end."""
    options = _parser().parse_args(arguments)
    for name in ("taxi", "flights"):
        if getattr(options, name):
            os.environ[name.upper()] = str(Path(getattr(options, name)).resolve())
    scale = SCALES["quick" if options.quick else "full"]
    run = Run(options.folder or Path("reproduced-quick" if options.quick else "reproduced"), scale)
    try:
        code = 0 if options.stage == "collect" else _do(run, options)
        if options.stage == "collect" or (options.stage == "all" and code == 0):
            for path in collect(run):
                print(f"wrote {os.path.relpath(path)}")
    except RetrodictError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("interrupted: what is finished is kept, repeat the command to go on", file=sys.stderr)
        return 130
    return code


def _do(run: Run, options: argparse.Namespace) -> int:
    run.claim()
    trainer = options.device or ("cuda" if torch.cuda.is_available() else "cpu")
    sampler = options.device or "cpu"  # where the native engine runs
    datasets = known(run, options.only)
    if not datasets:
        print(f"there is no data set {', '.join(options.only)}; there are {', '.join(run.scale.datasets)}")
        return 2
    until = None if options.seconds is None else time.time() + options.seconds
    first = list(data_tasks(run, datasets))
    if options.stage in ("models", "train", "all"):
        first += model_tasks(run, datasets, trainer)
    if options.stage in ("train", "all"):
        first += smoother_tasks(run, datasets, trainer)
    then = timed = []
    if options.stage in ("measure", "all"):
        then, timed = list(measure_tasks(run, datasets, sampler)), list(timing_tasks(run, datasets, sampler))
    outcome = run_tasks(run, first, workers=options.workers, until=until, each=options.each)
    if not outcome.is_incomplete:
        outcome = run_tasks(run, then, workers=options.workers, until=until)
        outcome += run_tasks(run, timed, workers=1, until=until)
    if outcome.is_incomplete:
        print(f"{len(outcome.failed)} tasks failed and {len(outcome.left)} are left: repeat the command to go on")
    return 1 if outcome.failed else 3 if outcome.left else 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m experiments", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("stage", choices=STAGES)
    parser.add_argument("--quick", action="store_true", help="small versions of all, for two cores and two minutes")
    parser.add_argument("--folder", type=Path, help="of the run: reproduced, or reproduced-quick")
    parser.add_argument("--only", nargs="+", metavar="SET", help="data sets, such as taxi, synthetic or synthetic-3")
    parser.add_argument("--workers", type=int, default=2, help="processes, each with one thread")
    parser.add_argument(
        "--device", choices=("cpu", "cuda"), help="by default cuda to train where there is one, else cpu"
    )
    parser.add_argument("--seconds", type=float, help="for this command: then fits end and nothing is started")
    parser.add_argument("--each", type=float, help="the most seconds for one smoother in this command")
    parser.add_argument("--taxi", help="folder of the New York taxi streams")
    parser.add_argument("--flights", help="folder of the New York flights; without it the embedded sample")
    return parser


if __name__ == "__main__":
    sys.exit(main())
