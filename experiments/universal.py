"""One smoother for all mechanisms, beside one trained for each case, and filtering.

    python -m experiments.universal train --folder reproduced --out universal --device cuda --workers 12 --seconds 380
    python -m experiments.universal measure --folder reproduced --out universal --workers 16
    python -m experiments.universal show --out universal

``--folder`` is a finished run (``make reproduce``): its streams, models and smoothers for rates by type are used as
they are; only the one smoother and those for outages and delays are trained. Elevator streams and random neural Hawkes
processes (neural-100 and so on, as in ``experiments/honest.py``) are for choosing, as is ``--part dev``; ``--mixing``
compares sizes.
Each result is one JSON file, and what is there is not done again.
"""

from __future__ import annotations

import argparse
import multiprocessing
import time
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch

import retrodict as rd
from experiments.data import TEST_MASK, mechanism
from experiments.honest import make_case, streams_of
from experiments.page import table
from experiments.sizes import DETERMINISTIC, FULL, MIDDLE, RHOS
from experiments.store import Run, read_json, write_json
from experiments.training import REDRAW
from retrodict.evaluate import transport_score
from retrodict.events.stream_set import Splits, StreamSet

CASES = (*(f"rho-{rho:g}" for rho in RHOS), DETERMINISTIC, "outage", "delay")
OWN = ("outage", "delay")  # those that no run of the paper's experiments has a smoother for
METHODS = ("one", "own", "filtering")
PARTICLES = (50, 1000)


class Source(NamedTuple):
    """Streams, and the model that was fitted to them or that they were drawn from."""

    splits: Splits
    model: rd.Model
    hidden: int | None  # cells of a smoother
    batch: int
    cost: float


def source(folder: Path, dataset: str) -> Source:
    """A data set of a finished run, or a random process."""
    if dataset.startswith("neural"):
        case = make_case(dataset, "half")
        splits = Splits(*(streams_of(case, count, seed) for seed, count in enumerate((2000, 200, 200), 1)))
        return Source(splits, case.model, None, 50, 0.1 * case.horizon)
    run, kind = Run(folder, FULL), FULL.kind(dataset)
    return Source(run.splits(dataset), rd.load_model(run.model(dataset)), kind.hidden, kind.batch, kind.costs[MIDDLE])


def missing_in(case: str, dataset: str, streams: StreamSet) -> rd.Missingness:
    """What goes missing; outages and delays on the scale of half a stream, from the median duration."""
    typical = float(np.median(streams.durations))
    if case == "outage":
        return rd.Windows([(0.3 * typical, 0.6 * typical)])
    if case == "delay":
        return rd.ReportingDelay("exponential", mean=0.2 * typical)
    if dataset.startswith("neural") and case == DETERMINISTIC:
        return make_case(dataset, DETERMINISTIC).missing
    return mechanism(case, dataset, streams.types)


def place(out: Path, dataset: str, name: str, mixing: int | None) -> Path:
    """The folder of a smoother: ``one`` for all, or that of a case."""
    return out / "smoothers" / (f"{dataset}.{name}" + ("" if mixing is None else f".{mixing}"))


def train(folder: Path, out: Path, dataset: str, name: str, mixing: int | None, seconds: float, device: str) -> str:
    """Train one smoother for ``seconds``, or until dev no longer improves."""
    torch.set_num_threads(1)
    given = source(folder, dataset)
    missing = None if name == "one" else missing_in(name, dataset, given.splits.train)
    torch.manual_seed(0)
    smoother = rd.fit(
        rd.Smoothing(given.model, missing, given.hidden, mixing),
        given.splits.train,
        given.splits.dev,
        directory=place(out, dataset, name, mixing),
        batch_size=given.batch,
        epochs=1000,
        patience=30,
        seconds=seconds,
        device=device,
        progress=False,
        redraw=REDRAW,
    )
    record: dict[str, Any] = smoother.training_record
    return f"{dataset}, {name}: best epoch {record['best_epoch']} of {record['epochs']}, {record['ended']}"


class Task(NamedTuple):
    """What is imputed, by which proposal, with how many particles."""

    dataset: str
    case: str
    method: str
    particles: int
    mixing: int | None

    @property
    def name(self) -> str:
        """A file's name."""
        return ".".join(str(part) for part in self if part is not None)


def proposal_for(folder: Path, out: Path, task: Task, model: rd.Model, missing: rd.Missingness) -> rd.Proposal | None:
    """The proposal for the case's mechanism; None where it was not trained."""
    if task.method == "filtering":
        return rd.Filtering(model, missing)
    path = place(out, task.dataset, "one" if task.method == "one" else task.case, task.mixing)
    if task.method == "own" and not path.exists() and not task.dataset.startswith("neural"):
        path = Run(folder, FULL).model(task.dataset, f"ours-{task.case}")
    return rd.load_proposal(path).given(missing) if (path / "proposal.json").exists() else None


def measure(folder: Path, out: Path, task: Task, part: str, streams: int, device: str) -> str:
    """Impute test streams, or dev streams to choose by, and compare with the truth; one JSON file."""
    torch.set_num_threads(1)
    file = out / "results" / f"{task.name}.json"
    if file.exists():
        return f"{task.name}: done before"
    given = source(folder, task.dataset)
    missing = missing_in(task.case, task.dataset, given.splits.train)
    proposal = proposal_for(folder, out, task, given.model, missing)
    if proposal is None:
        return f"{task.name}: no smoother was trained for it"
    observed, truth = missing.censor(getattr(given.splits, part)[:streams], seed=TEST_MASK)
    began = time.perf_counter()
    posterior = rd.impute(observed, proposal.to(device), task.particles)
    seconds = time.perf_counter() - began
    single = rd.impute(observed, proposal.to(device), task.particles, resample=None, islands=1)
    answer = posterior.decide([given.cost])[0].streams
    write_json(
        file,
        {
            "missing": truth.lengths,
            "ess": posterior.diagnostics.final_ess,
            "ess_without_resampling": single.diagnostics.final_ess,
            "log_evidence": posterior.log_evidence,
            "distance": transport_score(truth, answer, given.cost).distance_by_stream,
            "seconds": seconds,
        },
    )
    return f"{task.name}: {seconds:.1f} s"


def show(out: Path) -> str:
    """Effective sizes (without resampling) and distances of the one smoother and filtering, as shares of the own's."""
    found = {file.stem: read_json(file) for file in sorted((out / "results").glob("*.json"))}
    rows = [["data", "case", "M", "ESS own", "one / own", "filtering / own", "distance one / own", "± s.e.",
             "filtering / own", "log evidence one - own", "filtering - own"]]  # fmt: skip
    for name in found:
        parts = name.rsplit(".one.", 1)
        if len(parts) != 2:
            continue
        one, filtering = found[name], found.get(f"{parts[0]}.filtering.{parts[1].split('.')[0]}")
        own = found.get(f"{parts[0]}.own.{parts[1].split('.')[0]}")
        if own is None or filtering is None:
            continue
        dataset, case = parts[0].split(".", 1)
        rows.append(
            [dataset, case, parts[1], f"{np.mean(own['ess_without_resampling']):.1f}", *_compare(one, filtering, own)]
        )
    return table(rows[0], rows[1:])


def _compare(one: dict[str, Any], filtering: dict[str, Any], own: dict[str, Any]) -> list[str]:
    keys = ("ess_without_resampling", "distance", "log_evidence")
    ess, distance, evidence = ([np.array(result[key], float) for result in (one, filtering, own)] for key in keys)
    total = distance[2].sum()
    error = np.std(distance[0] - distance[2]) * np.sqrt(len(distance[0])) / total
    return [
        f"{ess[0].mean() / ess[2].mean():.3f}",
        f"{ess[1].mean() / ess[2].mean():.3f}",
        f"{distance[0].sum() / total:.4f}",
        f"{error:.4f}",
        f"{distance[1].sum() / total:.4f}",
        f"{(evidence[0] - evidence[2]).mean():+.3f}",
        f"{(evidence[1] - evidence[2]).mean():+.3f}",
    ]


def jobs(stage: str, given: argparse.Namespace) -> Iterator[tuple[Any, ...]]:
    """The arguments of each training or measurement."""
    for dataset in given.only:
        if stage == "train":
            names = [("one", mixing) for mixing in given.mixing]
            own = [case for case in given.cases if case in OWN or dataset.startswith("neural")]
            for name, mixing in names + [(case, None) for case in own]:
                yield given.folder, given.out, dataset, name, mixing, given.seconds, given.device
            continue
        for particles in PARTICLES:
            for case in given.cases:
                for method in METHODS:
                    for mixing in given.mixing if method == "one" else [None]:
                        task = Task(dataset, case, method, particles, mixing)
                        yield given.folder, given.out, task, given.part, given.streams, given.device


def main() -> None:
    """Run a stage."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("stage", choices=("train", "measure", "show"))
    parser.add_argument("--folder", type=Path, default=Path("reproduced"))
    parser.add_argument("--out", type=Path, default=Path("universal"))
    parser.add_argument("--only", nargs="+", default=["taxi", "flights"])
    parser.add_argument("--cases", nargs="+", default=list(CASES), choices=CASES)
    parser.add_argument("--mixing", nargs="+", type=int, default=[None])
    parser.add_argument("--part", choices=("dev", "test"), default="test")
    parser.add_argument("--streams", type=int, default=500)
    parser.add_argument("--seconds", type=float, default=380.0)
    parser.add_argument("--workers", type=int, default=4)
    parser.add_argument("--device", default="cpu")
    given = parser.parse_args()
    if given.stage == "show":
        print(show(given.out))
        return
    function = train if given.stage == "train" else measure
    context = multiprocessing.get_context("spawn")  # a forked process cannot use CUDA
    with ProcessPoolExecutor(given.workers, context) as pool:
        for future in [pool.submit(function, *arguments) for arguments in jobs(given.stage, given)]:
            print(future.result(), flush=True)


if __name__ == "__main__":
    main()
