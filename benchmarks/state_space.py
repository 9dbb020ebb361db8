"""How fast state spaces of one layer are beside neural Hawkes processes, in the same run on one core.

    python benchmarks/state_space.py
    python benchmarks/state_space.py --size 64 --hidden 64 --particles 1000 --types 10
    python benchmarks/state_space.py --files TRAIN DEV --epochs 12

Imputation: streams of about 30 events, half of them missing, through ``rd.impute`` by the native engine. The models are
untrained, or, with files, trained for a few epochs, and the first streams of DEV are imputed: large random jumps need
many candidates that a model of real streams does not need. A Poisson process beside them shows what is spent on
everything but the model. Training: events per second of training steps on the same streams, batches of 50. Models take
turns, and the shortest time of each counts.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable

import numpy as np
import torch

import retrodict as rd
from retrodict.events.batch import make_batch

MISSING = rd.ByType(0.5)


def propose(model: rd.Model, how: str) -> rd.Proposal:
    """Filtering, the paper's smoothing, or the default one."""
    torch.manual_seed(1)
    if how == "filtering":
        return rd.Filtering(model, MISSING)
    return rd.Smoothing(model, MISSING, 64, 0 if how == "the paper's smoothing" else None)


def alternate(runs: dict[str, Callable[[], object]], repeat: int) -> dict[str, float]:
    """The shortest seconds of each, in turns."""
    took: dict[str, list[float]] = {name: [] for name in runs}
    for _ in range(repeat):
        for name, run in runs.items():
            begin = time.process_time()
            run()
            took[name].append(time.process_time() - begin)
    return {name: min(times) for name, times in took.items()}


def imputing(models: dict[str, rd.Model], streams: rd.StreamSet, options: argparse.Namespace) -> None:
    """Microseconds a particle and observed event, by proposal, and how many times faster the state space is."""
    observed, _ = MISSING.censor(streams[: options.streams], seed=2)
    given = {"particles": options.particles, "seed": 0, "engine": "native"}
    for how in ("filtering", "the paper's smoothing", "smoothing"):
        proposals = {name: propose(model, how) for name, model in models.items()}
        runs = {name: (lambda p=p: rd.impute(observed, p, **given)) for name, p in proposals.items()}
        took = alternate(runs, options.repeat)
        per = {name: round(1e6 * s / observed.num_events / options.particles, 3) for name, s in took.items()}
        ratio = round(took["neural Hawkes"] / took["state space"], 2)
        print(json.dumps({"impute": how, "us_per_particle_and_observed_event": per, "ratio": ratio}), flush=True)


def training(models: dict[str, rd.Model], streams: rd.StreamSet, options: argparse.Namespace) -> None:
    """Events per second of steps on one batch."""
    batch = make_batch(streams, np.arange(min(50, len(streams))))

    def step(model: rd.Model) -> None:
        loss = -model.batch_log_likelihood(batch, rd.GaussLegendre(4)).sum()
        torch.autograd.grad(loss, list(model.parameters()))

    runs = {name: (lambda m=m: step(m)) for name, m in models.items()}
    took = alternate(runs, 5 * options.repeat)
    rates = {name: round(batch.num_events / seconds) for name, seconds in took.items()}
    ratio = round(took["neural Hawkes"] / took["state space"], 2)
    print(json.dumps({"training_events_per_second": rates, "ratio": ratio}))


def main() -> None:
    """Both, on one thread; seconds are those of the processor, so that other programs matter less."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--types", type=int, default=10)
    parser.add_argument("--hidden", type=int, default=64, help="LSTM cells")
    parser.add_argument("--size", type=int, default=None, help="units of the state space; its default otherwise")
    parser.add_argument("--scales", type=int, default=None)
    parser.add_argument("--particles", type=int, default=1000)
    parser.add_argument("--streams", type=int, default=8)
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--files", nargs=2, metavar=("TRAIN", "DEV"))
    parser.add_argument("--epochs", type=int, default=12)
    options = parser.parse_args()
    torch.set_num_threads(1)
    torch.manual_seed(0)
    if options.files:
        train = rd.read_events(options.files[0])
        streams = rd.read_events(options.files[1], unit=train.axis.unit)
    else:
        train = streams = rd.simulate(rd.Poisson([1 / options.types] * options.types), 50, end=30.0, seed=1)
    sizes = {name: getattr(options, name) for name in ("size", "scales") if getattr(options, name) is not None}
    state_space = rd.StateSpace(train.num_types, **sizes)
    state_space.adapt(train)
    models = {"neural Hawkes": rd.NeuralHawkes.from_streams(train, options.hidden), "state space": state_space}
    print(json.dumps({"hidden": options.hidden, **state_space.config(), "particles": options.particles}))
    training(models, streams, options)
    if options.files:
        how = {"epochs": options.epochs, "device": "cpu", "progress": False}
        models = {name: rd.fit(model, train, streams, **how).endless() for name, model in models.items()}
        dev = {name: round(model.training_record["dev_log_likelihood_per_event"], 3) for name, model in models.items()}
        print(json.dumps({"nats_per_event_on_dev": dev}), flush=True)
    imputing({**models, "Poisson": rd.Poisson.from_streams(train)}, streams, options)


if __name__ == "__main__":
    main()
