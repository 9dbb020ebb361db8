"""How fast imputation is and how much memory it takes: ms an observed event, beside the matrix-product floor.

    python benchmarks/impute.py                                    # lengths 15, 30, 300 at 50 particles; 10 to 1000
    python benchmarks/impute.py --streams 64 --hidden 64 --sampler inversion
    python benchmarks/impute.py --device cuda --streams 1024

Streams have 10 types, half of the events missing; the model and the smoother are untrained (time depends on how many
events there are, not on what they mean), the smoother in the paper's form unless ``--mixing`` says otherwise. The floor
is the one matrix product that each particle's LSTM cannot do without at each event it reads, observed or imputed,
in the same run at the same number of rows. Every line is measured in a process of its own; peak memory is what that
process takes above what it took before imputing.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys

import numpy as np
import torch
from timing import timed

import retrodict as rd

TYPES = 10


def peak_mib(device: str) -> float:
    if device == "cuda":
        return torch.cuda.max_memory_allocated() / 2**20
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def floor(updates: float, rows: int, hidden: int, device: str) -> float:
    """Seconds of the recurrent products alone for so many updates, ``rows`` at a time."""
    weights = torch.randn(hidden, 7 * hidden, device=device)
    states = torch.randn(rows, hidden, device=device)
    times = []
    for _ in range(7):
        times.append(timed(lambda: states @ weights, device))
    return min(times) * updates / rows


def measure(length: int, particles: int, options: argparse.Namespace) -> dict[str, float | int | str]:
    """One configuration: ``length`` events in all, half of them seen."""
    if options.threads:
        torch.set_num_threads(options.threads)
    torch.manual_seed(0)
    streams = rd.simulate(rd.Poisson([1 / TYPES] * TYPES), options.streams, end=float(length), seed=1)
    missing = rd.ByType(0.5)
    observed, _ = missing.censor(streams, seed=2)
    model = rd.NeuralHawkes.from_streams(streams, options.hidden)
    filtering = options.proposal == "filtering"
    proposal: rd.Proposal = (
        rd.Filtering(model, missing) if filtering else rd.Smoothing(model, missing, options.hidden, options.mixing)
    )
    proposal = proposal.to(options.device)

    def impute(some: rd.StreamSet, count: int) -> rd.Posterior:
        return rd.impute(
            some, proposal, particles=count, seed=0, sampler=options.sampler, rows=options.rows, engine=options.engine
        )

    impute(observed[:2], 5)  # warm up
    before = peak_mib(options.device)
    took = []
    for _ in range(options.repeat):
        took.append(timed(lambda: impute(observed, particles), options.device))
    memory = peak_mib(options.device) - before
    posterior = impute(observed, particles)
    imputed = len(posterior.event_times) / particles
    updates = particles * (observed.num_events + imputed)
    least = floor(updates, min(options.rows, options.streams * particles), options.hidden, options.device)
    best = min(took)
    return {
        "length": length,
        "particles": particles,
        "streams": options.streams,
        "observed": observed.num_events,
        "imputed_per_observed": round(imputed / observed.num_events, 2),
        "seconds": round(best, 3),
        "ms_per_observed_event": round(1e3 * best / observed.num_events, 3),
        "floor_ms": round(1e3 * least / observed.num_events, 3),
        "times_the_floor": round(best / least, 1),
        "peak_mib": round(memory, 1),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--lengths", type=int, nargs="*", default=[15, 30, 300])
    parser.add_argument("--particles", type=int, nargs="*", default=[10, 50, 100, 200, 500, 1000])
    parser.add_argument("--streams", type=int, default=16)
    parser.add_argument("--hidden", type=int, default=256)
    parser.add_argument("--proposal", choices=["smoothing", "filtering"], default="smoothing")
    parser.add_argument("--mixing", type=int, default=0, help="units of the smoother; 0 is the paper's form")
    parser.add_argument("--sampler", choices=["thinning", "inversion"], help="by default the engine's own")
    parser.add_argument("--engine", default="auto")
    parser.add_argument("--rows", type=int, default=12_800, help="particles worked on at once")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--one", type=int, nargs=2, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.one:
        print(json.dumps(measure(*options.one, options)))
        return
    about = {k: getattr(options, k) for k in ("hidden", "proposal", "mixing", "engine", "sampler", "device", "threads")}
    print(json.dumps(about))
    cases = [(length, 50) for length in options.lengths] + [(30, count) for count in options.particles]
    lines = []
    for length, count in cases:
        command = [sys.executable, *sys.argv, "--one", str(length), str(count)]
        done = subprocess.run(command, check=True, capture_output=True, text=True)
        lines.append(json.loads(done.stdout))
        print(json.dumps(lines[-1]), flush=True)
    for name, key, chosen in (
        ("length", "length", lines[: len(options.lengths)]),
        ("particles", "particles", lines[len(options.lengths) :]),
    ):
        if len(chosen) > 1:
            x = np.log([line[key] for line in chosen])
            for what in ("seconds", "peak_mib"):
                y = np.log([max(line[what], 1e-3) for line in chosen])
                print(f"{what} grow as {name} to the power {np.polyfit(x, y, 1)[0]:.2f}")


if __name__ == "__main__":
    main()
