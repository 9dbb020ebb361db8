"""What it is worth to know when streams end: the same model with and without its end atom, paired by stream.

    python -m experiments.end_atom hawkes                       # simulated, cut after 16 events
    python -m experiments.end_atom synthetic --cells 16         # the paper's recipe: 11 to 20 events
    python -m experiments.end_atom flights                      # the embedded sample, departures hidden
    python -m experiments.end_atom taxi --cells 64 --smoother   # TAXI says where it is

Intensities are those of the process that streams were drawn from, of flights those of the embedded model; for taxi, or
with --fit, a neural model is fitted. The end is learned from training streams. Test streams are complete; half of their
events are hidden (of flights all departures, of taxi all pick-ups) and imputed. Without the atom the model takes the
end of a stream for given. Errors of counts are expected less true missing events of a stream. Distances are those of
the consensus at half a gap.
"""

from __future__ import annotations

import argparse
import sys
import time
import warnings
from typing import Any

import numpy as np
import torch

import retrodict as rd
from experiments.data import source_of
from retrodict.datasets import flights_sample, synthetic, taxi
from retrodict.datasets.flights_demo import flights_smoother, hidden_departures, sample_splits
from retrodict.datasets.taxi import DETERMINISTIC as PICK_UPS
from retrodict.evaluate import transport_score
from retrodict.events.gaps import half_a_gap
from retrodict.models.end_fit import learn_end

TRUTH = rd.Hawkes([0.3, 0.2, 0.1], [[0.2, 0.5, 0.0], [0.0, 0.2, 0.6], [0.5, 0.0, 0.1]], 2.0)


def data(kind: str, cells: int, sizes: list[int], seed: int) -> tuple[list[rd.StreamSet], rd.Model, rd.Missingness]:
    """Train, dev and test streams, a model of them, not yet of their ends, and what goes missing."""
    parts: list[rd.StreamSet]
    if kind == "hawkes":
        parts = [rd.simulate(TRUTH, n, num_events=16, seed=10 * seed + i) for i, n in enumerate(sizes)]
        return parts, TRUTH, rd.ByType(0.5)
    if kind == "synthetic":
        process, streams = synthetic(seed, cells, (sizes[0], sizes[1], sizes[2]))
        return list(streams), process, rd.ByType(0.5)
    if kind == "flights":
        parts = list(sample_splits(flights_sample()))
        return [*parts[:2], parts[2][: sizes[2]]], flights_smoother().model, hidden_departures(parts[0].types)
    parts = [part[:n] for part, n in zip(taxi(source_of("taxi")), sizes, strict=True)]
    return parts, rd.NeuralHawkes.from_streams(parts[0], cells), PICK_UPS


def measure(
    proposal: rd.Proposal, observed: rd.StreamSet, hidden: rd.StreamSet, particles: int, cost: float | None
) -> dict[str, np.ndarray]:
    """Per test stream: error of the expected count, effective size at the end, distance where there is a cost."""
    posterior = rd.impute(observed, proposal, particles, seed=1)
    ess = posterior.diagnostics.ess
    last = (~np.isnan(ess)).sum(1) - 1
    found = {
        "error of the expected count": posterior.expected_count() - hidden.lengths,
        "effective size at the end": ess[np.arange(len(ess)), last],
    }
    if cost is not None:
        found["distance"] = transport_score(hidden, posterior.consensus(cost), cost).distance_by_stream
    return found


def show(name: str, known: dict[str, np.ndarray], unknown: dict[str, np.ndarray]) -> None:
    """One row a quantity, with standard errors over streams."""
    for what in known:
        pair = known[what], unknown[what]
        cells = [f"{x.mean():.3f} ± {x.std(ddof=1) / len(x) ** 0.5:.3f}" for x in (*pair, pair[0] - pair[1])]
        print(f"| {name} | {what} | {' | '.join(cells)} |", flush=True)
    errors = [f"{np.sqrt((x['error of the expected count'] ** 2).mean()):.3f}" for x in (known, unknown)]
    print(f"| {name} | its root mean square | {' | '.join(errors)} | |", flush=True)


def main() -> None:
    """One data set."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("kind", choices=["hawkes", "synthetic", "flights", "taxi"])
    parser.add_argument("--cells", type=int, default=16)
    parser.add_argument("--sizes", type=int, nargs=3, default=[500, 150, 300])
    parser.add_argument("--particles", type=int, default=1000)
    parser.add_argument("--seconds", type=float, default=None, help="of training, for each model and smoother")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--fit", action="store_true", help="fit a neural model")
    parser.add_argument("--no-distance", action="store_true", help="do not decode, which takes longest")
    parser.add_argument("--smoother", action="store_true", help="also train a smoother for each")
    options = parser.parse_args()
    torch.set_num_threads(1)
    for notice in (rd.DataNotice, rd.SuspicionNotice):
        warnings.simplefilter("ignore", notice)
    (train, dev, test), model, missing = data(options.kind, options.cells, options.sizes, options.seed)
    how: dict[str, Any] = {"seed": options.seed, "seconds": options.seconds, "device": "cpu", "progress": False}
    began = time.perf_counter()
    if options.fit:
        model = rd.NeuralHawkes.from_streams(train, options.cells)
    if options.fit or options.kind == "taxi":
        model = rd.fit(model, train, dev, **how)
    else:
        learn_end(model, train, dev)
    print(f"{train.num_events:,} training events, {time.perf_counter() - began:.0f} s", file=sys.stderr, flush=True)
    with torch.no_grad():
        rest = model.log_likelihood(test, score_end=False).double().numpy()
        ends = model.log_likelihood(test).double().numpy() - rest
    constant = len(train) / train.num_events
    alike = np.log(constant) + (test.lengths - 1) * np.log1p(-constant)
    print(f"test: {rest.sum() / test.num_events:.4f} nats per event; ends {ends.mean():.3f} nats a stream,")
    print(f"{alike.mean():.3f} with the same probability after every event\n")
    observed, hidden = missing.censor(test, seed=1)
    cost = None if options.no_distance else half_a_gap(test, test.num_events)
    print("| proposal | per stream | with | without | difference |\n|---|---|---|---|---|")
    pair = [model, model.endless()]
    show("filtering", *(measure(rd.Filtering(own, missing), observed, hidden, options.particles, cost) for own in pair))
    if options.smoother:
        smoothers = [rd.fit(rd.Smoothing(own, missing), train, dev, **how) for own in pair]
        show("smoothing", *(measure(own, observed, hidden, options.particles, cost) for own in smoothers))


if __name__ == "__main__":
    main()
