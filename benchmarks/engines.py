"""How fast an engine runs Algorithm 1: µs an observed event, alone and through ``rd.impute``, beside its floor.

    python benchmarks/engines.py --engine triton --device cuda
    python benchmarks/engines.py --engine triton --device cuda --lengths 32 --streams 1024 --particles 10 100 1000
    python benchmarks/engines.py --engine native --streams 1 64 --threads 2
    python benchmarks/engines.py --engine triton --device cuda --mixing 32 --missing outage --lengths 30 --streams 120

Streams have 10 types and ``--lengths`` events, half of them missing, or those of an eighth of the time (an outage), or
those reported late (a delay of a tenth of the time on average); model and smoother are untrained (time depends on
how many events there are, not on what they mean). Their weights differ little, so particles are seldom resampled; a
larger ``--spread`` of the smoother's readout makes them differ more. The smoother is in the paper's form, which every
engine runs, unless ``--mixing`` gives it units in which past and future interact. The floor is the matrix products
that cannot be left out: the recurrent one of every event a particle reads, observed or imputed, and, with mixing units,
P h at ``POINTS`` times of every gap, as few as the native engine gets by with. Products with as many columns as there
are types, and those of the right-to-left LSTM, which all particles share, are not counted. Products are taken at the
most rows the engine has in flight and at the precision it computes in, in turns with the engine in the same run. A
first call at the same shape is not counted (it compiles); each figure is the best of ``--repeat`` further ones, set-up
included. ``rd.impute`` leaves it to whoever asks for guesses to trace them back, so the time until both ensembles are
there and one of them is chosen is given as well.
"""

from __future__ import annotations

import argparse
import json
import math
from pathlib import Path

import torch
from timing import timed

import retrodict as rd
from retrodict.events.batch import make_batch
from retrodict.random import stream_keys
from retrodict.smc.engines import choose
from retrodict.smc.options import Options
from retrodict.smc.propose import SAMPLERS
from retrodict.smc.resampling import find_scheme

TYPES = 10
POINTS = 6  # of each gap, at which P h is needed: native/past.hpp


class Products:
    """Matrix products alone, [rows, D] with [D, columns], on the engine's device and at its precision."""

    def __init__(self, rows: int, columns: int, options: argparse.Namespace) -> None:
        self.rows, self.options, self.best = rows, options, math.inf
        self.states = torch.randn(rows, options.hidden, device=options.device)
        self.weights = torch.randn(options.hidden, columns, device=options.device)
        self.out = self.states @ self.weights

    def time(self) -> None:
        """Time some of them, of which the best counts."""
        before = torch.backends.cuda.matmul.allow_tf32
        torch.backends.cuda.matmul.allow_tf32 = self.options.engine == "triton"
        many = 20 if self.options.device == "cuda" else 3
        for _ in range(2):
            self.best = min(self.best, timed(lambda: self._run(many), self.options.device) / many)
        torch.backends.cuda.matmul.allow_tf32 = before

    def seconds(self, rows: float) -> float:
        """The least that so many rows take."""
        return self.best * rows / self.rows

    def _run(self, many: int) -> None:
        for _ in range(many):
            torch.mm(self.states, self.weights, out=self.out)


def form(options: argparse.Namespace) -> str:
    """The proposal in words."""
    if options.proposal == "filtering":
        return "filtering"
    return f"smoothing, mixing {options.mixing}" if options.mixing else "smoothing, the paper's form (mixing 0)"


def mechanism(length: int, options: argparse.Namespace) -> rd.Missingness:
    """How events go missing."""
    if options.missing == "outage":
        return rd.Windows([(0.5 * length, 0.625 * length)])
    if options.missing == "delay":
        return rd.ReportingDelay("exponential", mean=0.1 * length)
    return rd.ByType(0.5)


def make(length: int, count: int, options: argparse.Namespace) -> tuple[rd.StreamSet, rd.Proposal]:
    """Streams of ``length`` events, some of them seen, and a proposal for them."""
    torch.manual_seed(0)
    missing = mechanism(length, options)
    streams = rd.simulate(rd.Poisson([1 / TYPES] * TYPES), count, end=float(length), seed=1)
    observed, _ = missing.censor(streams, seed=2)
    model = rd.NeuralHawkes.from_streams(streams, options.hidden)
    if options.proposal == "filtering":
        return observed, rd.Filtering(model, missing).to(options.device)
    smoother = rd.Smoothing(model, missing, options.hidden, options.mixing)
    torch.nn.init.normal_(smoother.readout, std=options.spread)
    return observed, smoother.to(options.device)


def measure(length: int, count: int, particles: int, options: argparse.Namespace) -> dict[str, float | int]:
    observed, proposal = make(length, count, options)
    model = proposal.model
    sampler = SAMPLERS[options.sampler] if options.sampler else None
    how = Options(particles, find_scheme("systematic"), sampler=sampler)
    engine = choose(options.engine, proposal, how)
    batch = make_batch(observed, dtype=model.dtype, device=model.device)
    keys = stream_keys(0, observed.ids).to(model.device)
    at_once = max(1, engine.rows_at_once(proposal) // particles)

    def alone() -> None:
        for first in range(0, count, at_once):
            some = slice(first, first + at_once)
            part = type(batch)(*(getattr(batch, name)[some] for name in batch.__dataclass_fields__))
            engine.run(part, proposal, keys[some], how)

    def whole() -> rd.Posterior:
        return rd.impute(observed, proposal, particles, seed=0, engine=options.engine, sampler=sampler)

    def chosen() -> object:
        return whole().chosen

    rows = min(count * particles, 65_536 if options.device == "cuda" else 12_800)
    recurrent = Products(rows, 7 * options.hidden, options)
    mixing = Products(rows, options.mixing, options) if options.mixing else None
    alone()
    if options.device == "cuda":
        torch.cuda.reset_peak_memory_stats()
    own = math.inf
    for _ in range(options.repeat):
        own = min(own, timed(alone, options.device))
        for products in (recurrent, mixing):
            if products is not None:
                products.time()
    posterior = whole()
    imputed = len(posterior.event_times) / particles
    all_in, until_chosen = (min(timed(job, options.device) for _ in range(options.repeat)) for job in (whole, chosen))
    updates = particles * (observed.num_events + imputed)
    least = of_lstm = recurrent.seconds(updates)
    if mixing is not None:
        least += mixing.seconds(POINTS * (updates + particles * count))  # a gap before each event, and one at the end
    return {
        "length": length,
        "streams": count,
        "particles": particles,
        "observed": observed.num_events,
        "imputed_per_observed": round(imputed / observed.num_events, 2),
        "resampled_share": round(float(posterior.diagnostics.resamplings.sum()) / observed.num_events, 2),
        "us_per_observed": round(1e6 * own / observed.num_events, 2),
        "us_through_impute": round(1e6 * all_in / observed.num_events, 2),
        "us_until_chosen": round(1e6 * until_chosen / observed.num_events, 2),
        "floor_us": round(1e6 * least / observed.num_events, 3),
        "times_the_floor": round(own / least, 2),
        "times_the_lstm": round(own / of_lstm, 2),
        "ms_per_stream": round(1e3 * own / count, 3),
        "peak_mib": round(torch.cuda.max_memory_allocated() / 2**20) if options.device == "cuda" else 0,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--engine", default="auto")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--lengths", type=int, nargs="*", default=[32, 300])
    parser.add_argument("--streams", type=int, nargs="*", default=[1, 64, 1024])
    parser.add_argument("--particles", type=int, nargs="*", default=[50])
    parser.add_argument("--hidden", type=int, default=256)
    parser.add_argument("--proposal", choices=["smoothing", "filtering"], default="smoothing")
    parser.add_argument("--mixing", type=int, default=0, help="units of the smoother; 0 is the paper's form")
    parser.add_argument(
        "--missing", choices=["half", "outage", "delay"], default="half", help="events that are missing"
    )
    parser.add_argument("--sampler", choices=list(SAMPLERS), help="by default the engine's own")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--spread", type=float, default=0.1, help="of the smoother's readout")
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--results", type=Path, help="add the lines to this file, which chart.py draws")
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    name = torch.cuda.get_device_name() if options.device == "cuda" else f"cpu, {options.threads} threads"
    about = {"engine": options.engine, "device": name, "proposal": form(options), "missing": options.missing}
    print(json.dumps({**about, "hidden": options.hidden, "sampler": options.sampler}))
    for length in options.lengths:
        for count in options.streams:
            for particles in options.particles:
                line = measure(length, count, particles, options)
                print(json.dumps(line), flush=True)
                if options.results:
                    with options.results.open("a", encoding="utf-8") as file:
                        file.write(json.dumps({**about, **line}) + "\n")


if __name__ == "__main__":
    main()
