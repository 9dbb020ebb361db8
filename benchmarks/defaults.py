"""What the default costs beside 50 particles: seconds a stream, sampling and decoding apart; memory of long streams.

    python benchmarks/defaults.py
    python benchmarks/defaults.py --device cuda

Streams are those of the embedded flights, with the smoother that comes with them, one thread on a CPU. Sampling lasts
until an ensemble is chosen; decoding is at one cost, with the cross-fit that chooses the ensemble and tells the risk.
The long stream has 10,000 events of a random neural Hawkes process of 64 cells, half of them missing, and is imputed by
filtering; peak memory is what the process takes above what it took before.
"""

from __future__ import annotations

import argparse
import json
import resource

import torch
from timing import timed

import retrodict as rd
from retrodict.datasets import flights_demo, flights_sample
from retrodict.datasets.synthetic import random_neural_hawkes


def peak_mib() -> int:
    """The most memory that this process has taken."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 10


def flights(device: str, streams: int) -> None:
    """The default and 50 particles on one island."""
    smoother = flights_demo.flights_smoother().to(device)
    observed, _ = smoother.missingness.censor(flights_demo.sample_splits(flights_sample()).test[:streams])
    rd.impute(observed[:2], smoother).decide([1.0])  # compiles
    for name, options in (("default", {}), ("50 particles", {"particles": 50, "islands": 1})):
        kept: list[rd.Posterior] = []

        def sample(own: dict[str, int] = options, kept: list[rd.Posterior] = kept) -> None:
            kept[:] = [rd.impute(observed, smoother, **own)]  # type: ignore[arg-type]
            _ = kept[0].chosen

        sampling = min(timed(sample, device) for _ in range(3))
        decoding = min(timed(lambda kept=kept: kept[0].decide([1.0]), device) for _ in range(3))
        per_stream = {"sampling": sampling / len(observed), "decoding": decoding / len(observed)}
        shown = {key: round(value, 4) for key, value in per_stream.items()}
        print(json.dumps({"setting": name, "particles": kept[0].num_particles, **shown}), flush=True)


def long_stream(device: str, events: int) -> None:
    """Time and memory of one long stream."""
    model = random_neural_hawkes(4, 64, 1)
    rate = 1000 / float(rd.simulate(model, 1, num_events=1000, seed=0).ends[0])
    missing = rd.ByType(0.5)
    observed, _ = missing.censor(rd.simulate(model, 1, end=events / rate, seed=1))
    proposal = rd.Filtering(model, missing).to(device)
    for particles in (50, 1000):
        before, kept = peak_mib(), []
        seconds = timed(lambda m=particles, kept=kept: kept.append(rd.impute(observed, proposal, m).chosen), device)
        print(json.dumps({"events": events, "observed": observed.num_events, "particles": particles,
                          "seconds": round(seconds, 2), "mib": peak_mib() - before}), flush=True)  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--streams", type=int, default=40)
    parser.add_argument("--events", type=int, default=10_000)
    options = parser.parse_args()
    torch.set_num_threads(1)
    flights(options.device, options.streams)
    long_stream(options.device, options.events)


if __name__ == "__main__":
    main()
