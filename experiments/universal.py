"""One smoother for all mechanisms, beside one trained for each case, and filtering.

    python -m experiments.universal models --folder reproduced --device cuda
    python -m experiments.universal train --folder reproduced --device cuda --workers 15 --seconds 500 --own-seconds 230
    python -m experiments.universal tune --folder reproduced --device cuda --workers 4 --cases deterministic rho-0.1
    python -m experiments.universal measure --folder reproduced --device cuda --workers 16
    python -m experiments.universal show --folder reproduced

``--folder`` is that of a run (``make reproduce``), finished or not: ``models`` makes what streams and models it lacks.
Elevator streams, cabs of New Year 2013 (new-year) and random processes (neural-100, hawkes-a and so on, as in
``experiments/honest.py``) are for choosing, as is ``--part dev``; ``--mixing`` compares sizes, and ``show --part dev``
lists all that was measured. ``tune`` trains the one smoother further for single cases, ``--methods tuned``.
``experiments/honest.py`` uses the smoothers that are trained here. Each result is one JSON file, and what is there is
not done again.
"""

from __future__ import annotations

import argparse
import multiprocessing
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch

import retrodict as rd
from experiments.data import TEST_MASK, mechanism, prepare
from experiments.honest import REAL, make_case, smoother_of, streams_of
from experiments.page import table
from experiments.sizes import DETERMINISTIC, FULL, MIDDLE, RHOS
from experiments.store import ROOT, Run, read_json, write_json
from experiments.training import REDRAW, fit_model
from retrodict.evaluate import transport_score
from retrodict.events.stream_set import Splits, StreamSet

CASES = (*(f"rho-{rho:g}" for rho in RHOS), DETERMINISTIC, "outage", "delay")
METHODS = ("one", "own", "filtering")
TUNED = "tuned"  # the one smoother, trained further for a case
NEW_YEAR = "new-year"


class Source(NamedTuple):
    """Streams, and the model that was fitted to them or that they were drawn from."""

    splits: Splits
    model: rd.Model
    hidden: int | None  # cells of a smoother
    batch: int
    cost: float


def source(folder: Path, dataset: str) -> Source:
    """A data set of a finished run, cabs of New Year, or a random process."""
    if dataset == NEW_YEAR:
        return Source(new_year(), rd.load_model(folder / "models" / NEW_YEAR), 64, 50, FULL.kinds["taxi"].costs[MIDDLE])
    if dataset not in REAL:
        case = make_case(dataset, "half")
        splits = Splits(*(streams_of(case, count, seed) for seed, count in enumerate((2000, 200, 200), 1)))
        return Source(splits, case.model, None, 50, 0.1 * case.horizon)
    run, kind = Run(folder, FULL), FULL.kind(dataset)
    return Source(run.splits(dataset), rd.load_model(run.model(dataset)), kind.hidden, kind.batch, kind.costs[MIDDLE])


def new_year() -> Splits:
    """6,000 streams of cabs, from midnight to a quarter to two."""
    streams = rd.read_events(ROOT.parent / "shared" / "data" / "nyc_taxi_raw_newyear2013" / "all.jsonl.gz")
    return Splits(*streams.split(0.7, 0.15, seed=0))


def missing_in(case: str, dataset: str, streams: StreamSet) -> rd.Missingness:
    """What goes missing; outages and delays on the scale of half a stream, from the median duration."""
    typical = float(np.median(streams.durations))
    if case == "outage":
        return rd.Windows([(0.3 * typical, 0.6 * typical)])
    if case == "delay":
        return rd.ReportingDelay("exponential", mean=0.2 * typical)
    if dataset not in REAL and case == DETERMINISTIC:
        return rd.ByType({"pick-up:*": 1.0}) if dataset == NEW_YEAR else make_case(dataset, DETERMINISTIC).missing
    return mechanism(case, dataset, streams.types)


def make_model(folder: Path, dataset: str, device: str) -> str:
    """Streams and the model that is fitted to them, unless they are there."""
    torch.set_num_threads(1)
    run = Run(folder, FULL)
    if dataset == NEW_YEAR:
        model = rd.fit(partial(rd.NeuralHawkes.from_streams, hidden_size=64), *new_year()[:2], device=device)
        model.save(folder / "models" / NEW_YEAR)
        return f"{dataset}: {model.training_record['epochs']} epochs"
    if not run.data(dataset).exists():
        prepare(run, dataset)
    if (run.model(dataset) / "model.json").exists():
        return f"{dataset}: fitted before"
    record = fit_model(run, dataset, device, None)
    assert record is not None
    return f"{dataset}: {record['epochs']} epochs, {record['nats_per_event']}"


def train(
    folder: Path, dataset: str, name: str, mixing: int | None, seconds: float, device: str, tuned: bool = False
) -> str:
    """Train one smoother for ``seconds``, or until dev no longer improves; ``tuned``: from the one smoother on."""
    torch.set_num_threads(1)
    given = source(folder, dataset)
    missing = None if name == "one" else missing_in(name, dataset, given.splits.train)
    torch.manual_seed(0)
    untrained = rd.Smoothing(given.model, missing, given.hidden, mixing)
    smoother = rd.fit(
        rd.load_proposal(smoother_of(folder, dataset)).given(missing) if tuned else untrained,
        given.splits.train,
        given.splits.dev,
        directory=smoother_of(folder, dataset, f"{TUNED}-{name}" if tuned else name, mixing),
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


def proposal_for(folder: Path, task: Task, model: rd.Model, missing: rd.Missingness) -> rd.Proposal | None:
    """The proposal for the case's mechanism; None where it was not trained."""
    if task.method == "filtering":
        return rd.Filtering(model, missing)
    names = {"one": "one", TUNED: f"{TUNED}-{task.case}"}
    path = smoother_of(folder, task.dataset, names.get(task.method, task.case), task.mixing)
    return rd.load_proposal(path).given(missing) if (path / "proposal.json").exists() else None


def results_of(folder: Path, part: str) -> Path:
    """The folder of what was measured on test streams, or on dev streams to choose by."""
    return folder / ("universal" if part == "test" else f"universal-{part}")


def measure(folder: Path, task: Task, part: str, streams: int, device: str) -> str:
    """Impute test streams, or dev streams to choose by, and compare with the truth; one JSON file."""
    torch.set_num_threads(1)
    file = results_of(folder, part) / f"{task.name}.json"
    if file.exists():
        return f"{task.name}: done before"
    given = source(folder, task.dataset)
    missing = missing_in(task.case, task.dataset, given.splits.train)
    proposal = proposal_for(folder, task, given.model, missing)
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


def show_all(folder: Path, part: str) -> str:
    """One row for each measurement: effective size without resampling, log evidence and distance, on average."""
    keys = ("ess_without_resampling", "log_evidence", "distance")
    found = {file.stem: read_json(file) for file in sorted(results_of(folder, part).glob("*.json"))}
    return table(["name", *keys], [[name, *(f"{np.mean(r[key]):.4g}" for key in keys)] for name, r in found.items()])


def show(folder: Path) -> str:
    """Effective sizes (without resampling) and distances of the one smoother and filtering, as shares of the own's.

    A second table has those of the smoothers that were trained further for their case.
    """
    return "\n\n".join(_beside_own(folder, others) for others in (("one", "filtering"), (TUNED,)))


def _beside_own(folder: Path, others: tuple[str, ...]) -> str:
    found = {file.stem: read_json(file) for file in sorted(results_of(folder, "test").glob("*.json"))}
    numbers = sorted({int(name.split(".own.")[1]) for name in found if ".own." in name})
    names = ["data", "case", "own, M = 50", *(f"{x}, {M:,}" for M in numbers for x in others)]
    names += [f"distance {x}, {M:,}" for M in numbers for x in others]
    cases = sorted({name.split(".own.")[0] for name in found if ".own." in name})
    rows = []
    for case in cases:
        results = {(x, M): found.get(f"{case}.{x}.{M}") for x in ("own", *others) for M in numbers}
        if None in results.values():
            continue
        row = [*case.split(".", 1), f"{np.mean(results['own', 50]['ess_without_resampling']):.1f}"]
        row += [_share(results, x, M, "ess_without_resampling") for M in numbers for x in others]
        row += [_share(results, x, M, "distance") for M in numbers for x in others]
        rows.append(row)
    return table(names, rows)


def _share(results: dict[tuple[str, int], Any], method: str, particles: int, what: str) -> str:
    """The mean of a method over that of the own smoother; of distances with the standard error of paired streams."""
    its, own = (np.array(results[name, particles][what], float) for name in (method, "own"))
    share = f"{its.sum() / own.sum():.3f}"
    error = np.std(its - own) * np.sqrt(len(own)) / own.sum()
    return f"{share} ± {error:.3f}" if what == "distance" else share


def jobs(stage: str, given: argparse.Namespace) -> Iterator[tuple[Any, ...]]:
    """The arguments of each fit or measurement; the longest come first."""
    if stage == "models":
        yield from ((given.folder, dataset, given.device) for dataset in given.only)
    elif stage == "train":
        for name, seconds in [("one", given.seconds), *((case, given.own_seconds) for case in given.own)]:
            for dataset in given.only:
                for mixing in given.mixing if name == "one" else [None]:
                    yield given.folder, dataset, name, mixing, seconds, given.device
    elif stage == "tune":
        for dataset, case in product(given.only, given.cases):
            yield given.folder, dataset, case, None, given.own_seconds, given.device, True
    else:
        for particles, dataset, case, method in product(given.particles, given.only, given.cases, given.methods):
            for mixing in given.mixing if method == "one" else [None]:
                task = Task(dataset, case, method, particles, mixing)
                yield given.folder, task, given.part, given.streams, given.device


def main() -> None:
    """Run a stage."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("stage", choices=("models", "train", "tune", "measure", "show"))
    parser.add_argument("--folder", type=Path, default=Path("reproduced"))
    parser.add_argument("--only", nargs="+", default=["taxi", "flights"])
    parser.add_argument(
        "--own", nargs="*", default=list(CASES), choices=CASES, help="cases with a smoother of their own"
    )
    parser.add_argument("--cases", nargs="+", default=list(CASES), choices=CASES)
    parser.add_argument("--methods", nargs="+", default=list(METHODS), choices=(*METHODS, TUNED))
    parser.add_argument("--particles", nargs="+", type=int, default=[1000, 50])
    parser.add_argument("--mixing", nargs="+", type=int, default=[None])
    parser.add_argument("--part", choices=("dev", "test"), default="test")
    parser.add_argument("--streams", type=int, default=500)
    parser.add_argument("--seconds", type=float, default=500.0, help="of training the one smoother")
    parser.add_argument("--own-seconds", type=float, default=230.0, help="of training a smoother for one case")
    parser.add_argument("--workers", type=int, default=4)
    parser.add_argument("--device", default="cpu")
    given = parser.parse_args()
    if given.stage == "show":
        print(show(given.folder) if given.part == "test" else show_all(given.folder, given.part))
        return
    stages = {"models": make_model, "train": train, "tune": train, "measure": measure}
    function: Callable[..., str] = stages[given.stage]
    context = multiprocessing.get_context("spawn")  # a forked process cannot use CUDA
    with ProcessPoolExecutor(given.workers, context) as pool:
        for future in [pool.submit(function, *arguments) for arguments in jobs(given.stage, given)]:
            print(future.result(), flush=True)


if __name__ == "__main__":
    main()
