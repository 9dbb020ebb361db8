"""Is the default honest? Distances, coverage, reliability and reported risks where the model is exactly true.

    python -m experiments.universal train --folder reproduced --only neural-101 ... --own   the one smoother of each
    python -m experiments.honest measure --folder reproduced     impute, decode, compare; one JSON file a case
    python -m experiments.honest measure --folder reproduced --only taxi --settings deterministic rho-0.5
    python -m experiments.honest measure --folder reproduced --alone   without what the default is compared with
    python -m experiments.honest measure --folder reproduced --only neural-101x10 --settings half --methods filtering
    python -m experiments.honest time --folder reproduced --only taxi elevator --settings deterministic rho-0.5
    python -m experiments.honest show --folder reproduced        the tables of docs/honest.md

Processes: random neural Hawkes processes of 256 cells, as in appendix G.3 but with a fixed horizon, so that the model
is exactly true, and two Hawkes processes. Constants of the package were chosen on ``TUNING``; ``REPORTED`` were not
looked at before.
"""

from __future__ import annotations

import argparse
import multiprocessing
import re
import time
from concurrent.futures import ProcessPoolExecutor
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from scipy.stats import norm

import retrodict as rd
from experiments.data import mechanism, test_pair
from experiments.page import table
from experiments.sizes import FULL
from experiments.store import Run, read_json, write_json
from retrodict.datasets.synthetic import random_neural_hawkes
from retrodict.decode import Ensembles, decode_set, thin_set
from retrodict.decode.transport import as_cost
from retrodict.evaluate import interval_coverage, transport_score
from retrodict.evaluate.matching import pair_streams
from retrodict.smc.decision import as_streams
from retrodict.smc.diagnostics import FEW

TUNING = ("neural-99", "neural-100", "hawkes-a")
REPORTED = (*(f"neural-{seed}" for seed in range(101, 106)), "hawkes-b", "hawkes-c")
SETTINGS = ("deterministic", "half")
STREAMS = 200
REAL = ("taxi", "flights", "elevator")
_HAWKES = {
    "hawkes-a": ([0.3, 0.2, 0.1], [[0.2, 0.5, 0.0], [0.0, 0.2, 0.6], [0.5, 0.0, 0.1]], 2.0),
    "hawkes-b": ([0.2, 0.3], [[0.3, 0.5], [0.4, 0.2]], 1.0),
    "hawkes-c": ([0.1, 0.1, 0.1, 0.3], [[0, 0.6, 0, 0], [0, 0, 0.6, 0], [0.2, 0, 0, 0.2], [0.1, 0.1, 0.1, 0.1]], 4.0),
    "hawkes-d": ([0.2, 0.1, 0.2], [[0.1, 0.7, 0.0], [0.1, 0.1, 0.4], [0.3, 0.0, 0.2]], 3.0),
}


class Case(NamedTuple):
    """A process, its unit of time, and what goes missing from it."""

    model: rd.Model
    horizon: float  # about 16 events
    missing: rd.ByType


def make_case(process: str, setting: str) -> Case:
    """The process of a name, with the horizon up to which it has 16 events on average, or 16 n for a name "...xn"."""
    process, _, times = process.partition("x")
    if process.startswith("neural"):
        model: rd.Model = random_neural_hawkes(4, 256, int(process.split("-")[1]))
    else:
        model = rd.Hawkes(*_HAWKES[process])
    K = model.num_types
    horizon = float(np.mean(rd.simulate(model, 200, num_events=16, seed=12).ends))
    hidden = [0.0] * (K - K // 2) + [1.0] * (K // 2)
    horizon *= float(times or 1)
    return Case(model, horizon, rd.ByType(hidden if setting == "deterministic" else 0.5))


def streams_of(case: Case, count: int, seed: int) -> rd.StreamSet:
    """Streams that end at the horizon, whatever happens."""
    return rd.simulate(case.model, count, end=case.horizon, seed=seed)


def smoother_of(folder: Path, data: str, name: str = "one", mixing: int | None = None) -> Path:
    """The folder of a smoother (``experiments/universal.py``): ``one`` for all mechanisms, or that of a case."""
    return folder / "smoothers" / (f"{data}.{name}" + ("" if mixing is None else f".{mixing}"))


class Task(NamedTuple):
    """What is imputed: a process or a data set, a setting, and how."""

    data: str
    setting: str
    method: str  # filtering or smoothing

    @property
    def name(self) -> str:
        """A file's name."""
        return f"{self.data}.{self.setting}.{self.method}"


def measure(folder: Path, task: Task, streams: int, beside: bool, device: str) -> str:
    """Impute by default, and, ``beside`` it, as before or ideally; decode at every cost; one JSON file."""
    torch.set_num_threads(1)
    file = folder / "honest" / f"{task.name}.json"
    if file.exists():
        return f"{task.name}: done before"
    proposal, observed, truth, costs = _inputs(folder, task, streams)
    if isinstance(proposal.model, rd.NeuralHawkes):
        proposal = proposal.to(device)
    began = time.perf_counter()
    posterior = rd.impute(observed, proposal)
    sampled = time.perf_counter()
    decisions = posterior.decide(costs)
    decoded = time.perf_counter()
    result: dict[str, Any] = {
        "streams": len(observed),
        "missing": truth.num_events,
        "particles": posterior.num_particles,
        "sampling_seconds": (sampled - began) / len(observed),
        "decoding_seconds": (decoded - sampled) / len(observed) / len(costs),
        "families": [float(np.nanmean(g.effective_families)) for g in (posterior.full, posterior.lagged)],
        "nothing": [cost * truth.num_events for cost in costs],
        "default": [score_of(truth, d.streams, cost) for d, cost in zip(decisions, costs, strict=True)],
        "ensembles": [d.ensemble for d in decisions],
        "risk": [float(d.risk.sum()) for d in decisions],
        "warned": _coverage_where_warned(posterior, truth, decisions, costs),
    }
    if beside and task.data in REAL:
        for particles in (50, 1000):
            old = posterior if particles == 1000 else rd.impute(observed, proposal, particles, islands=1)
            result[f"before, {particles}"] = _as_before(old.full, observed, truth, costs)
    elif beside and "x" not in task.data and task.method == "filtering":
        many = rd.impute(observed, rd.Filtering(proposal.model, proposal.missingness), 10_000, seed=9)
        thinned = thin_set(_flat(many.full), 1000, np.full(len(observed), 0.5))
        result["ideal"] = _as_before(thinned, observed, truth, costs)
    write_json(file, result)
    return f"{task.name}: {time.perf_counter() - began:.0f} s"


def time_alone(folder: Path, task: Task, streams: int, device: str) -> list[str]:
    """Milliseconds a stream, one thread, nothing beside it: sampling by default and with 50 particles, decoding."""
    torch.set_num_threads(1)
    proposal, observed, _, costs = _inputs(folder, task, streams)
    proposal = proposal.to(device)
    cells = []
    for options in ({}, {"particles": 50, "islands": 1}):
        rd.impute(observed[:2], proposal, **options).consensus(costs[0], threads=1)  # compiles
        began = time.perf_counter()
        posterior = rd.impute(observed, proposal, **options)
        _ = posterior.chosen
        cells.append(f"{1e3 * (time.perf_counter() - began) / len(observed):.1f}")
        spent = []
        for cost in costs:
            began = time.perf_counter()
            posterior.consensus(cost, threads=1)
            spent.append(f"{1e3 * (time.perf_counter() - began) / len(observed):.1f}")
        cells.append(" ".join(spent))
    return [*task, *cells]


def _inputs(folder: Path, task: Task, streams: int) -> tuple[rd.Proposal, rd.StreamSet, rd.StreamSet, list[float]]:
    """The proposal, the observed streams, what is missing from them, and costs."""
    if task.data in REAL:
        run = Run(folder, FULL)
        observed, truth = (part[:streams] for part in test_pair(run, task.data, task.setting))
        model = rd.load_model(run.model(task.data))
        missing, costs = mechanism(task.setting, task.data, observed.types), list(FULL.kind(task.data).costs)
    else:
        case = make_case(task.data, task.setting)
        observed, truth = case.missing.censor(streams_of(case, streams, 7), seed=7)
        model, missing = case.model, case.missing
        gap = make_case(task.data.partition("x")[0], task.setting).horizon / 16
        costs = [gap * share for share in (0.1, 0.3, 1.0, 3.0, 10.0)]
    if task.method == "filtering":
        return rd.Filtering(model, missing), observed, truth, costs
    name = task.data if task.data in REAL else task.data.partition("x")[0]
    return rd.load_proposal(smoother_of(folder, name)).given(missing), observed, truth, costs


def _flat(guesses: Any) -> Ensembles:
    return Ensembles(guesses.event_times, guesses.event_types, guesses.offsets, guesses.weights)


def _as_before(guesses: Any, observed: rd.StreamSet, truth: rd.StreamSet, costs: list[float]) -> list[dict[str, Any]]:
    """Decodes of all guesses, without pseudo-counts."""
    found = decode_set(_flat(guesses), costs, tolerance=1e-3, threads=1)
    return [score_of(truth, as_streams(d, observed), cost) for d, cost in zip(found, costs, strict=True)]


def score_of(truth: rd.StreamSet, imputed: rd.StreamSet, cost: float) -> dict[str, Any]:
    """The distance, how many intervals hold the truth, and how often events of each probability happened."""
    pairs = pair_streams(truth, imputed)
    aligned = pairs.align(as_cost(cost)) >= 0
    probability = np.concatenate([[], *(s.columns["probability"] for s in pairs.imputed if len(s))])
    lengths = np.array([len(s) for s in pairs.imputed])
    before = np.repeat(np.cumsum(lengths) - lengths, lengths)
    own = probability[before + pairs.imputed_groups.place] if len(probability) else probability
    bins = np.minimum((own * 10).astype(int), 9)
    covered = interval_coverage(truth, imputed, cost) if len(probability) else None
    return {
        "distance": float(transport_score(truth, imputed, cost).distance.sum()),
        "aligned": 0 if covered is None else covered.aligned,
        "covered": 0 if covered is None else round(covered.covered * covered.aligned) if covered.aligned else 0,
        "events": np.bincount(bins, minlength=10).tolist(),
        "happened": np.bincount(bins, weights=aligned, minlength=10).tolist(),
        "probability": np.bincount(bins, weights=own, minlength=10).tolist(),
    }


def _coverage_where_warned(posterior: rd.Posterior, truth: rd.StreamSet, decisions: Any, costs: list[float]) -> Any:
    """Intervals that hold the truth, at the middle cost, in streams with a thin segment and in the others."""
    thin = np.nanmin(posterior.chosen.effective_families, axis=1) < FEW
    middle = len(costs) // 2
    result = {}
    for name, some in (("warned", np.flatnonzero(thin)), ("others", np.flatnonzero(~thin))):
        score = score_of(truth[some], decisions[middle].streams[some], costs[middle]) if len(some) else None
        result[name] = [len(some), *((score["aligned"], score["covered"]) if score else (0, 0))]
    return result


def results(folder: Path) -> dict[Task, Any]:
    """All that was measured."""
    return {_parts(file.stem): read_json(file) for file in sorted((folder / "honest").glob("*.json"))}


def show(folder: Path) -> None:
    """The tables of docs/honest.md: processes, how often events happened there, long streams, real data."""
    found = results(folder)
    real = {task: result for task, result in found.items() if task.data in REAL}
    long = {task: result for task, result in found.items() if task not in real and "x" in task.data}
    processes = {task: result for task, result in found.items() if task not in real and task not in long}
    _show_rows(processes)
    bins = np.zeros((3, 10))
    for result in processes.values():
        middle = len(result["default"]) // 2
        bins += np.array([result["default"][middle][key] for key in ("events", "probability", "happened")])
    cells = [[f"{n:,.0f}", f"{p / n:.3f}", f"{h / n:.3f}"] for n, p, h in bins[:, bins[0] >= 100].T]
    print(table(["events", "mean probability", "happened"], cells), "\n")
    for key in ("default", "ideal"):
        if some := [result for result in processes.values() if key in result]:
            print(_far_bins(some, key), "\n")
    print(_shortfalls(processes), "\n")
    _show_rows(long)
    _show_rows(real)


def _far_bins(found: list[dict[str, Any]], key: str) -> str:
    """How many bins of 100 or more events, of one case and cost each, are more than .05 off, and how many by chance.

    By chance: were events independent and their probabilities right.
    """
    scores = [score for result in found for score in result[key]]
    n, p, h = (np.concatenate([score[name] for score in scores]) for name in ("events", "probability", "happened"))
    n, p, h = (x[n >= 100] for x in (n, p, h))
    p, h = p / n, h / n
    chance = 2 * norm.sf(0.05 / np.sqrt(p * (1 - p) / n))
    far = int((abs(p - h) > 0.05).sum())
    return f"{key}: {far} of {len(n)} bins are off by more than .05, by chance {chance.sum():.0f}"


def _shortfalls(found: dict[Task, Any]) -> str:
    """Where distances, coverage and risks of processes are not what one would want of an honest default."""
    far, ideal_far, above, covered, risks = [list[str]() for _ in range(5)]
    excess: list[float] = []
    for task, result in found.items():
        ideals = found.get(task._replace(method="filtering"), {}).get("ideal")
        for i, (score, nothing) in enumerate(zip(result["default"], result["nothing"], strict=True)):
            name, share = f"{task.name}, cost {i + 1}: ", score["distance"] / nothing
            far += [name + f"{share:.4f}"] * (share > 1.005)
            if ideals:
                ideal = ideals[i]["distance"] / nothing
                ideal_far += [name + f"{ideal:.4f}"] * (ideal > 1.005 and task.method == "filtering")
                excess += [share - ideal] * (i >= len(ideals) // 2)
                above += [name + f"{share - ideal:.3f}"] * (i >= len(ideals) // 2 and share - ideal > 0.02)
            rate = round(100 * score["covered"] / max(score["aligned"], 1))
            covered += [name + f"{rate} of {score['aligned']}"] * (score["aligned"] >= 100 and not 86 <= rate <= 93)
            off = 100 * (result["risk"][i] / score["distance"] - 1)
            risks += [name + f"{off:+.1f}"] * (abs(off) > 5)
    lists = {
        "distances above 1.005 of nothing": far,
        "ideal distances above 1.005 of nothing": ideal_far,
        f"distances more than .02 above the ideal, of {len(excess)} at middle and high costs": above,
        "coverage of 100 or more events that is not 86 to 93 %": covered,
        "risks more than 5 % off": risks,
    }
    lines = [f"{what}: {len(some)}" + "".join(f"; {each}" for each in some) for what, some in lists.items()]
    return "\n".join([*lines, f"above the ideal at middle and high costs, on average: {np.mean(excess):.4f}"])


def _parts(name: str) -> Task:
    """The task of a file's name, whose parts may have points of their own."""
    found = re.fullmatch(r"(.+)\.(deterministic|half|rho-.+)\.(filtering|smoothing)", name)
    assert found is not None, name
    return Task(*found.groups())


def _show_rows(found: dict[Task, Any]) -> None:
    """One row for each case; beside it the ideal, or what 50 and 1,000 particles gave before."""
    names = ["data", "missing", "proposal", "distance", "covered, %", "risk told, %", "families", "seconds"]
    rows = []
    for task, result in found.items():
        about = []
        if "ideal" in result:
            about = [_relative(result, "ideal")]
        for key in (f"before, {particles}" for particles in (50, 1000)):
            if key in result:
                about.append(f"{_relative(result, key)}; {_covered(result, key)}")
        off = [risk / score["distance"] - 1 for risk, score in zip(result["risk"], result["default"], strict=True)]
        rows.append(
            [
                *task,
                _relative(result, "default"),
                _covered(result, "default"),
                " ".join(f"{100 * x:+.0f}" for x in off),
                f"{result['families'][0]:.0f}",
                f"{result['sampling_seconds']:.2f}, {result['decoding_seconds']:.3f}",
                *about,
            ]
        )
    width = max(map(len, rows), default=0)
    names += {9: ["ideal"], 10: ["50 before", "1,000 before"]}.get(width, [])
    print(table(names, [row + ["-"] * (len(names) - len(row)) for row in rows]), "\n")


def _relative(found: dict[str, Any], key: str) -> str:
    pairs = zip(found[key], found["nothing"], strict=True)
    return " ".join(f"{score['distance'] / nothing:.3f}" for score, nothing in pairs)


def _covered(found: dict[str, Any], key: str) -> str:
    return " ".join(f"{100 * s['covered'] / s['aligned']:.0f}" if s["aligned"] >= 50 else "-" for s in found[key])


def main(arguments: list[str] | None = None) -> None:
    """Run a stage."""
    parser = argparse.ArgumentParser()
    parser.add_argument("stage", choices=["measure", "time", "show"])
    parser.add_argument("--folder", type=Path, default=Path("reproduced"))
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--streams", type=int, default=STREAMS)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--methods", nargs="*", default=["filtering", "smoothing"])
    parser.add_argument("--settings", nargs="*", default=SETTINGS)
    parser.add_argument("--only", nargs="*", default=REPORTED)
    parser.add_argument("--alone", dest="beside", action="store_false", help="without what it is compared with")
    options = parser.parse_args(arguments)
    if options.stage == "show":
        show(options.folder)
        return
    tasks = [Task(*task) for task in product(options.only, options.settings, options.methods)]
    if options.stage == "time":
        names = ["data", "missing", "proposal", "sampling", "decoding", "sampling, 50", "decoding, 50"]
        rows = [time_alone(options.folder, task, options.streams, options.device) for task in tasks]
        print(table(names, rows))
        return
    with ProcessPoolExecutor(options.workers, mp_context=multiprocessing.get_context("spawn")) as pool:
        jobs = []
        for task in tasks:
            jobs.append(pool.submit(measure, options.folder, task, options.streams, options.beside, options.device))
        for job in jobs:
            print(job.result(), flush=True)


if __name__ == "__main__":
    main()
