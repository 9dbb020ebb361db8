"""How much faster than torch an engine is where missing rates change in time: seconds for outages and reporting delays.

    python benchmarks/mechanisms.py
    python benchmarks/mechanisms.py --engine triton --device cuda

Streams are like those of cabs: 10 types, about 30 events in a day of 24 hours; model and smoother are untrained. ``by
type`` has a constant rate, for comparison. Each engine runs once on a few streams first (it compiles); torch then runs
once, the other engine ``--repeat`` times, of which the best counts, all through ``rd.impute``.
"""

from __future__ import annotations

import argparse
import json

import torch
from timing import timed

import retrodict as rd

TYPES, HOURS, EVENTS = 10, 24.0, 30
MECHANISMS = {
    "by type": rd.ByType(0.1),
    "outage of 3 hours": rd.Windows([(10.0, 13.0)]),
    "reporting delay": rd.ReportingDelay("exponential", mean=2.0),
    "soon after": rd.After("0", 1.0, rates=0.8),
}


def make(missing: rd.Missingness, options: argparse.Namespace) -> tuple[rd.StreamSet, rd.Proposal]:
    """Observed streams, and a proposal for what is missing in them."""
    torch.manual_seed(0)
    rate = EVENTS / HOURS / TYPES
    streams = rd.simulate(rd.Poisson([rate] * TYPES), options.streams, end=HOURS, seed=1)
    model = rd.NeuralHawkes.from_streams(streams, options.hidden)
    observed, _ = missing.censor(streams, seed=2)
    if options.proposal == "filtering":
        return observed, rd.Filtering(model, missing)
    return observed, rd.Smoothing(model, missing, mixing=options.mixing)


def seconds(engine: str, repeat: int, case: tuple[rd.StreamSet, rd.Proposal], options: argparse.Namespace) -> float:
    observed, proposal = case
    proposal = proposal.to(options.device)
    rd.impute(observed[:4], proposal, 50, engine=engine)

    def whole() -> None:
        rd.impute(observed, proposal, options.particles, seed=0, engine=engine)

    return min(timed(whole, options.device) for _ in range(repeat))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--engine", default="native")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--streams", type=int, default=120)
    parser.add_argument("--particles", type=int, default=500)
    parser.add_argument("--hidden", type=int, default=64)
    parser.add_argument("--proposal", choices=["smoothing", "filtering"], default="smoothing")
    parser.add_argument("--mixing", type=int, help="units of the smoother; by default as many as it has itself")
    parser.add_argument("--mechanisms", nargs="*", choices=list(MECHANISMS), default=list(MECHANISMS))
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--repeat", type=int, default=3)
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    for name in options.mechanisms:
        case = make(MECHANISMS[name], options)
        own, theirs = seconds(options.engine, options.repeat, case, options), seconds("torch", 1, case, options)
        line = {"mechanism": name, "engine": options.engine, "device": options.device, "threads": options.threads}
        figures = {"seconds": round(own, 3), "torch_seconds": round(theirs, 2), "times_less": round(theirs / own, 1)}
        print(json.dumps(line | figures), flush=True)


if __name__ == "__main__":
    main()
