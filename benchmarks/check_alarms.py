"""How often ``rd.check`` raises an alarm: on models that are right, and on each way to be wrong that it is to notice.

    python benchmarks/check_alarms.py --sets 100 --workers 16 --out alarms.json

Every set is a new simulated data set (and, where the process is random, a new process). A right model has to pass:
false alarms at most 5 %. Prints, for each case, the share of sets with an alarm and an example of the verdict.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from functools import partial

import numpy as np
import torch

import retrodict as rd
from retrodict.datasets.synthetic import random_neural_hawkes
from retrodict.evaluate.check import Check

STREAMS, END = 200, 10.0
HALF = rd.ByType(0.5)


def hawkes() -> rd.Hawkes:
    """Three types that excite each other; a dozen events a stream."""
    return rd.Hawkes([0.5, 0.3, 0.2], [[0.3, 0.2, 0.0], [0.1, 0.2, 0.3], [0.4, 0.0, 0.1]], [1.5, 0.8, 3.0])


def bursts() -> rd.Hawkes:
    """An earthquake catalogue in small: few shocks, many aftershocks."""
    return rd.Hawkes([0.1], [[0.85]], [3.0])


def neural(seed: int, hidden: int = 16) -> rd.NeuralHawkes:
    """A random process of three types."""
    return random_neural_hawkes(3, hidden, seed)


def draw(model: rd.Model, seed: int, end: float = END) -> rd.StreamSet:
    """Complete streams with a fixed horizon, on which the model is exactly true."""
    return rd.simulate(model, STREAMS, end=end, seed=seed)


def lost(model: rd.Model, mechanism: rd.Missingness, seed: int, end: float = END) -> rd.StreamSet:
    """Incomplete streams of the same kind."""
    return mechanism.censor(draw(model, seed + 1_000_000, end), seed=seed + 1)[0]


def right_hawkes(seed: int) -> Check:
    model = hawkes()
    return rd.check(
        rd.Filtering(model, HALF), draw(model, seed), incomplete=lost(model, HALF, seed), particles=200, seed=seed
    )


def right_neural(seed: int) -> Check:
    model, mechanism = neural(seed), rd.ByType([0.5, 0.2, 0.8])
    incomplete = lost(model, mechanism, seed, 5.0)
    return rd.check(
        rd.Filtering(model, mechanism), draw(model, seed, 5.0), incomplete=incomplete, particles=500, seed=seed
    )


def right_bursts(seed: int) -> Check:
    model = bursts()
    return rd.check(
        rd.Filtering(model, HALF),
        draw(model, seed, 20.0),
        incomplete=lost(model, HALF, seed, 20.0),
        particles=200,
        seed=seed,
    )


def right_few(seed: int) -> Check:
    model = bursts()
    streams, incomplete = draw(model, seed, 20.0)[:20], lost(model, HALF, seed, 20.0)[:20]
    return rd.check(rd.Filtering(model, HALF), streams, incomplete=incomplete, particles=200, seed=seed)


def other_data(seed: int) -> Check:
    other = rd.Hawkes([0.3, 0.4, 0.3], [[0.1, 0.0, 0.3], [0.4, 0.1, 0.0], [0.0, 0.3, 0.2]], [1.0, 2.0, 1.0])
    return rd.check(rd.Filtering(other, HALF), draw(hawkes(), seed), particles=200, seed=seed)


def other_neural(seed: int, hidden: int) -> Check:
    return rd.check(
        rd.Filtering(neural(seed, hidden), HALF), draw(neural(seed + 1, hidden), seed, 5.0), particles=200, seed=seed
    )


def types_swapped(seed: int) -> Check:
    streams = draw(hawkes(), seed)
    swapped = streams.replace(event_types=np.array([2, 1, 0])[streams.event_types])
    return rd.check(rd.Filtering(hawkes(), HALF), swapped, particles=200, seed=seed)


def missing_rate(seed: int, rate: float) -> Check:
    model = hawkes()
    proposal = rd.Filtering(model, rd.ByType(rate))
    return rd.check(proposal, draw(model, seed), incomplete=lost(model, HALF, seed), particles=200, seed=seed)


def model_rates(seed: int, factor: float) -> Check:
    model, wrong = hawkes(), hawkes()
    with torch.no_grad():
        wrong.log_base.add_(np.log(factor))
    return rd.check(rd.Filtering(wrong, HALF), draw(model, seed), particles=200, seed=seed)


def cut_at_16(seed: int) -> Check:
    streams = rd.simulate(bursts(), STREAMS, num_events=16, seed=seed)
    return rd.check(rd.Filtering(bursts(), HALF), streams, particles=200, seed=seed)


def long_synthetic(seed: int, particles: int) -> Check:
    model = random_neural_hawkes(4, 256, seed % 10)
    end = float(np.median(rd.simulate(model, 50, num_events=20, seed=seed).durations))
    return rd.check(rd.Filtering(model, HALF), draw(model, seed, end), particles=particles, seed=seed)


CASES: dict[str, Callable[[int], Check]] = {
    "right: Hawkes, and its incomplete streams": right_hawkes,
    "right: small neural Hawkes, and its incomplete streams": right_neural,
    "right: bursts, and their incomplete streams": right_bursts,
    "right: 20 streams of bursts": right_few,
    "wrong: Hawkes trained on other data": other_data,
    "wrong: neural Hawkes of 64 cells, other data": partial(other_neural, hidden=64),
    "wrong: neural Hawkes of 16 cells, other data (0.03 nats an event apart)": partial(other_neural, hidden=16),
    "wrong: types swapped": types_swapped,
    "wrong: missing rate 0.35 instead of 0.5": partial(missing_rate, rate=0.35),
    "wrong: missing rate 0.65 instead of 0.5": partial(missing_rate, rate=0.65),
    "wrong: base rates of the model 30 % too high": partial(model_rates, factor=1.3),
    "wrong: streams cut to 16 events": cut_at_16,
    "wrong: 50 particles on a synthetic process": partial(long_synthetic, particles=50),
    "the same with 1,000 particles": partial(long_synthetic, particles=1000),
}


def run(job: tuple[str, int]) -> dict[str, object]:
    """One data set of one case."""
    torch.set_num_threads(1)
    name, seed = job
    result = CASES[name](seed)
    alarms = {f"{f.part}: {f.name}": f.p_value for f in result.findings if f.alarm}
    coverage = (result.to_dict().get("coverage") or {}).get("value")
    return {
        "case": name, "seed": seed, "flagged": result.flagged, "alarms": alarms, "coverage": coverage,
        "least_p": min(f.p_value for f in result.findings), "verdict": result.verdict,
    }  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sets", type=int, default=100)
    parser.add_argument(
        "--first", type=int, default=1000, help="seed of the first set; below 1000 tolerances were chosen"
    )
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--cases", nargs="*", default=list(CASES), help="names, or their beginnings")
    parser.add_argument("--out", help="all results as JSON")
    options = parser.parse_args()
    chosen = [name for name in CASES if name.startswith(tuple(options.cases))]
    jobs = [(name, seed) for name in chosen for seed in range(options.first, options.first + options.sets)]
    with ProcessPoolExecutor(options.workers) as pool:
        results = list(pool.map(run, jobs))
    for name in chosen:
        own = [result for result in results if result["case"] == name]
        share = np.mean([bool(result["flagged"]) for result in own])
        found = [result["coverage"] for result in own if result["coverage"] is not None]
        print(f"{share:6.1%} flagged, {np.mean(found or [np.nan]):.0%} covered: {name}\n        {own[0]['verdict']}")
    if options.out:
        with open(options.out, "w") as file:
            json.dump(results, file, indent=1)


if __name__ == "__main__":
    main()
