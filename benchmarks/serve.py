"""How long an answer of ``retrodict serve`` takes, and how many there are in a second, beside calling ``rd.impute``.

    python benchmarks/serve.py --seconds 20

Each request has one stream (flights: ten observed events in the mean, a neural Hawkes process with a smoother; doors: a
Hawkes process that filters) and is imputed and decoded. Clients ask again as soon as they are answered. Server and
clients share the cores of the machine. "direct" calls ``rd.impute``, decodes and writes in one process and one thread,
stream after stream; "direct, at once" does so for all streams together, in as many threads as there are cores. "CPU ms"
is processor time a request, of the server or of the calling process: it depends little on what else runs on the
machine, unlike the other figures.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import tempfile
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import torch
from serving import Client, Server, doors, make_models, message

import retrodict as rd
from retrodict.datasets import flights_demo, flights_sample


def flights() -> rd.StreamSet:
    """Flights with hidden departures."""
    smoother = flights_demo.flights_smoother()
    return smoother.missingness.censor(flights_demo.sample_splits(flights_sample())[2])[0]


def through_doors() -> rd.StreamSet:
    """Streams of a Hawkes process, half of whose first type is hidden."""
    return rd.ByType({"in": 0.5}).censor(rd.simulate(doors(), 100, end=20.0, seed=0), seed=0)[0]


def as_request(streams: rd.StreamSet, i: int, more: dict[str, Any]) -> dict[str, Any]:
    stream = streams[i]
    types = [streams.types[kind] for kind in stream.types]
    value = {
        "id": str(stream.id),
        "horizon": [stream.start, stream.end],
        "times": stream.times.tolist(),
        "types": types,
    }
    return {"streams": [value], "cost": 1.0, **more}


async def load(port: int, requests: list[bytes], clients: int, seconds: float) -> tuple[np.ndarray, float]:
    """Seconds that each answer took, and how many there were in a second."""
    taken: list[float] = []
    begun = time.perf_counter()
    until = begun + seconds

    async def one(number: int) -> None:
        client, turn = Client(port), number
        while time.perf_counter() < until:
            begin = time.perf_counter()
            status, body = await client.ask(requests[turn % len(requests)])
            assert status == 200, body
            taken.append(time.perf_counter() - begin)
            turn += clients
        client.leave()

    await asyncio.gather(*(one(number) for number in range(clients)))
    return np.array(taken), len(taken) / (time.perf_counter() - begun)


def direct(streams: rd.StreamSet, proposal: rd.Proposal, particles: int, seconds: float) -> np.ndarray:
    """Seconds that each call of the package takes."""
    taken, until, i = [], time.perf_counter() + seconds, 0
    while time.perf_counter() < until:
        one = streams[[i % len(streams)]]
        begin = time.perf_counter()
        posterior = rd.impute(one, proposal, particles=particles)
        json.dumps(rd.fill(posterior.observed, posterior.consensus(1.0)).event_times.tolist())
        taken.append(time.perf_counter() - begin)
        i += 1
    return np.array(taken)


def at_once(streams: rd.StreamSet, proposal: rd.Proposal, particles: int) -> float:
    """Streams per second where all are given at once."""
    begin = time.perf_counter()
    posterior = rd.impute(streams, proposal, particles=particles)
    rd.fill(posterior.observed, posterior.consensus(1.0))
    return len(streams) / (time.perf_counter() - begin)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=20.0)
    parser.add_argument("--clients", type=int, nargs="+", default=[1, 8, 64])
    given = parser.parse_args()
    warnings.simplefilter("ignore")
    cores, place = os.cpu_count() or 1, Path(tempfile.mkdtemp())
    filtering = rd.Filtering(doors(), rd.ByType({"in": 0.5}))
    cases = [
        ("flights", flights(), flights_demo.flights_smoother(), 1000, {"model": "flights"}),
        ("flights", flights(), flights_demo.flights_smoother(), 200, {"model": "flights"}),
        ("doors", through_doors(), filtering, 200, {"model": "doors", "missing": "in=0.5"}),
    ]
    print(f"{cores} cores, load {os.getloadavg()[0]:.1f} before")
    print("| model, particles | clients | p50 ms | p99 ms | requests/s | CPU ms | requests a run |")
    print("|---|---|---|---|---|---|---|")

    def row(case: str, who: str, taken: np.ndarray, rate: float, cpu: float, batch: str = "") -> None:
        low, high = np.quantile(taken, [0.5, 0.99]) * 1e3
        print(f"| {case} | {who} | {low:.0f} | {high:.0f} | {rate:.1f} | {cpu * 1e3:.0f} | {batch} |", flush=True)

    for name, streams, proposal, particles, more in cases:
        case = f"{name}, {particles:,}"
        torch.set_num_threads(1)
        direct(streams, proposal, particles, 1.0)
        used = time.process_time()
        taken = direct(streams, proposal, particles, given.seconds)
        row(case, "direct", taken, len(taken) / taken.sum(), (time.process_time() - used) / len(taken))
        torch.set_num_threads(cores)
        used = time.process_time()
        rate, used = at_once(streams, proposal, particles), time.process_time() - used
        print(f"| {case} | direct, at once | | | {rate:.1f} | {used / len(streams) * 1e3:.0f} | |", flush=True)
        requests = [
            message("/v1/impute", as_request(streams, i, {**more, "particles": particles})) for i in range(len(streams))
        ]
        with Server(*make_models(place / case), log=place / "log") as server:
            asyncio.run(load(server.port, requests, 2, 2.0))
            for clients in given.clients:
                before = [server.metric(f"retrodict_batch_requests_{what}") for what in ("sum", "count")]
                used = server.cpu()
                taken, rate = asyncio.run(load(server.port, requests, clients, given.seconds))
                used = (server.cpu() - used) / len(taken)
                after = [server.metric(f"retrodict_batch_requests_{what}") for what in ("sum", "count")]
                batch = (after[0] - before[0]) / (after[1] - before[1])
                row(case, str(clients), taken, rate, used, f"{batch:.1f}")
    print(f"load {os.getloadavg()[0]:.1f} after")


if __name__ == "__main__":
    main()
