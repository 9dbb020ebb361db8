"""What an update of an online run costs after a past of any length, and what questions cost.

    python benchmarks/online.py --json online.jsonl
    python benchmarks/online.py --draw online.jsonl docs/images/online-cost.png
    python benchmarks/online.py --streams 1 10 100 1000

One stream is fed up to ``--past`` events, at random times and of random types (time depends on how many there are, not
on what they mean), about as many of which go missing as are observed. After 10, 100, 1,000 ... of them, ``--repeat``
further events are fed one by one, each timed, and the questions are asked as often: medians of processor time of one
thread. "Recent past" is ``posterior()`` for a lag of 10 observed events, "future" is ``forecast`` over the time of 5.
``bytes`` is the size of the run when it is saved. With ``--streams``, as many are fed and asked together, an event of
each at a time, and costs are those of one of them.
"""

from __future__ import annotations

import argparse
import json
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import torch

import retrodict as rd

MODELS: dict[str, Callable[[], rd.Model]] = {
    "hawkes": lambda: rd.Hawkes([0.4] * 4, (0.05 + 0.1 * np.eye(4)).tolist(), 2.0),
    "neural_hawkes": lambda: neural(4, 32),
}
LABELS = {"hawkes": "Hawkes, 4 types", "neural_hawkes": "neural Hawkes, 4 types, 32 cells"}
QUESTIONS = {"update": "update", "posterior": "recent past", "forecast": "future"}


def neural(types: int, cells: int) -> rd.NeuralHawkes:
    torch.manual_seed(0)
    return rd.NeuralHawkes(types, cells, time_scale=1.0)


def median_ms(run: Callable[[], object], repeat: int) -> float:
    """The median of ``repeat`` calls, in milliseconds of processor time."""
    times = []
    for _ in range(repeat):
        begin = time.process_time()
        run()
        times.append(1e3 * (time.process_time() - begin))
    return statistics.median(times)


def measure(name: str, options: argparse.Namespace) -> list[dict[str, object]]:
    """Costs of one model after pasts of growing length."""
    model, missing = MODELS[name](), rd.ByType(0.5)
    lengths = [n for n in (10, 100, 1000, 10_000, 100_000, 1_000_000) if n <= options.past]
    need = max(lengths) + len(lengths) * options.repeat + 2 * options.warm
    generator, gap = np.random.default_rng(1), 1.0
    times, types = np.cumsum(generator.exponential(gap, need)), generator.integers(0, 4, need)
    online = rd.Online(rd.Filtering(model, missing), lag=10 * gap, particles=options.particles)
    online.feed({"a": []}, start=0.0)
    fed = 0

    def feed(number: int) -> None:
        nonlocal fed
        online.feed({"a": list(zip(times[fed : fed + number], types[fed : fed + number].tolist(), strict=True))})
        fed += number

    feed(options.warm)
    for ask in (online.posterior, lambda: online.forecast(5 * gap)):
        ask()
    found: list[dict[str, object]] = []
    for length in lengths:
        while fed < length:
            feed(min(1000, length - fed))
        costs = {"update": median_ms(lambda: feed(1), options.repeat)}
        costs["posterior"] = median_ms(online.posterior, options.repeat)
        costs["forecast"] = median_ms(lambda: online.forecast(5 * gap), options.repeat)
        with tempfile.TemporaryDirectory() as folder:
            online.save(folder)
            size = sum(file.stat().st_size for file in Path(folder).iterdir())
        facts = {"model": name, "particles": options.particles, "past": length, "bytes": size}
        found.append(facts | {f"{question}_ms": round(cost, 3) for question, cost in costs.items()})
        print(json.dumps(found[-1]), flush=True)
    return found


def measure_many(number: int, options: argparse.Namespace) -> dict[str, object]:
    """Costs of one of many streams that are fed together."""
    online = rd.Online(rd.Filtering(MODELS["hawkes"](), rd.ByType(0.5)), lag=10.0, particles=options.particles)
    online.feed({i: [] for i in range(number)}, start=0.0)
    now = 0

    def feed() -> None:
        nonlocal now
        now += 1
        online.feed({i: [(now + 0.001 * (i % 7), now % 4)] for i in range(number)})

    for _ in range(25):
        feed()
    asked: dict[str, Callable[[], object]] = {"update": feed, "posterior": online.posterior}
    asked["forecast"] = lambda: online.forecast(5.0)
    online.posterior()
    costs = {f"{question}_ms": round(median_ms(run, 5) / number, 3) for question, run in asked.items()}
    return {"streams": number, "particles": options.particles} | costs


def draw(source: str, target: str) -> None:
    """The figure."""
    import matplotlib.pyplot as plt

    lines = [json.loads(line) for line in Path(source).read_text(encoding="utf-8").splitlines()]
    figure, panels = plt.subplots(1, 2, figsize=(9, 3.6), sharey=True, layout="constrained")
    for axes, name in zip(panels, MODELS, strict=True):
        own = [line for line in lines if line["model"] == name]
        for question, colour in zip(QUESTIONS, ("#0072b2", "#d55e00", "#009e73"), strict=True):
            costs = [line[f"{question}_ms"] for line in own]
            axes.plot([line["past"] for line in own], costs, "o-", color=colour, label=QUESTIONS[question])
        axes.set(xscale="log", yscale="log", xlabel="observed events in the past")
        axes.set_title(f"{LABELS[name]}, {own[0]['particles']} particles", fontsize=10)
        axes.grid(True, which="major", alpha=0.3)
    panels[0].set_ylabel("milliseconds of one core")
    panels[0].legend(fontsize=8, frameon=False)
    figure.savefig(target, dpi=150)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--past", type=int, default=100_000)
    parser.add_argument("--particles", type=int, default=200)
    parser.add_argument("--repeat", type=int, default=20)
    parser.add_argument("--warm", type=int, default=5)
    parser.add_argument("--models", nargs="+", choices=MODELS, default=list(MODELS))
    parser.add_argument("--streams", type=int, nargs="+")
    parser.add_argument("--json", type=Path)
    parser.add_argument("--draw", nargs=2, metavar=("JSON", "PNG"))
    options = parser.parse_args()
    if options.draw:
        draw(*options.draw)
        return
    torch.set_num_threads(1)
    for number in options.streams or ():
        print(json.dumps(measure_many(number, options)), flush=True)
    if options.streams:
        return
    found = [line for name in options.models for line in measure(name, options)]
    if options.json:
        options.json.write_text("".join(json.dumps(line) + "\n" for line in found), encoding="utf-8")


if __name__ == "__main__":
    main()
