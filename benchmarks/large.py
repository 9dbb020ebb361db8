"""Long streams and many types through ``rd.impute``: seconds of one core, and the most memory a process has taken.

    python benchmarks/large.py length --events 1000000 --particles 20
    python benchmarks/large.py online --events 1000000 --particles 20
    python benchmarks/large.py types --types 1000 --model hawkes
    python benchmarks/large.py types --types 1000 --model neural_hawkes

``length`` is one stream of ``--events`` observed events and a Hawkes process of 4 types, about as many missing.
``online`` feeds the same to ``rd.Online``, 1,000 at a time, and asks for the posterior of each thousand. ``types`` is
20 streams of 100 observed events and a model of ``--types`` types. Times and types are random. Run it once for each
figure: ``before`` is the memory that was taken when streams and model were there.
"""

from __future__ import annotations

import argparse
import json
import resource
import time

import numpy as np
import torch

import retrodict as rd


def peak() -> float:
    """MiB that this process has taken at most."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def long_stream(options: argparse.Namespace) -> tuple[rd.StreamSet, rd.Model]:
    """One stream with this many observed events; types, times and gaps as a Hawkes process could have them."""
    model = rd.Hawkes([0.4] * 4, (0.05 + 0.1 * np.eye(4)).tolist(), 2.0)
    generator = np.random.default_rng(0)
    times = np.cumsum(generator.exponential(1.0, options.events))
    stream = rd.EventStream(times, generator.integers(0, 4, options.events), end=float(times[-1]) + 1.0, id="long")
    return rd.StreamSet([stream], types=[str(k) for k in range(4)]), model


def many_types(options: argparse.Namespace) -> tuple[rd.StreamSet, rd.Model]:
    """Streams of a model of many types, in which a few excite a few."""
    K = options.types
    torch.manual_seed(0)
    if options.model == "hawkes":
        generator = np.random.default_rng(0)
        excitation = np.zeros((K, K))
        for k in range(K):
            excitation[k, generator.integers(0, K, 5)] = 0.1
        model: rd.Model = rd.Hawkes(torch.full((K,), 1.0 / K), torch.from_numpy(excitation).float(), 2.0)
    else:
        model = rd.NeuralHawkes(K, options.cells, time_scale=1.0)
        with torch.no_grad():
            model.log_scale.fill_(float(np.log(1.0 / K / np.log(2))))
            model.readout.div_(K)  # so that one event happens in a unit of time, whatever the number of types
    generator = np.random.default_rng(1)
    streams = []
    for i in range(options.streams):
        times = np.cumsum(generator.exponential(1.0, options.events))
        streams.append(rd.EventStream(times, generator.integers(0, K, options.events), end=times[-1] + 1, id=i))
    return rd.StreamSet(streams, types=[str(k) for k in range(K)]), model


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["length", "online", "types"])
    parser.add_argument("--events", type=int)
    parser.add_argument("--streams", type=int, default=20)
    parser.add_argument("--types", type=int, default=1000)
    parser.add_argument("--cells", type=int, default=64)
    parser.add_argument("--model", choices=["hawkes", "neural_hawkes"], default="hawkes")
    parser.add_argument("--particles", type=int, default=20)
    parser.add_argument("--engine", default="auto")
    options = parser.parse_args()
    options.events = options.events or (100 if options.what == "types" else 1_000_000)
    torch.set_num_threads(1)
    streams, model = many_types(options) if options.what == "types" else long_stream(options)
    before, begin = peak(), time.process_time()
    proposal = rd.Filtering(model, rd.ByType(0.5))
    if options.what == "online":
        engine, count = bit_by_bit(streams, proposal, options)
    else:
        given = {"particles": options.particles, "engine": options.engine, "max_events": 100_000_000}
        posterior = rd.impute(streams, proposal, **given)
        engine, count = posterior.about["engine"], float(posterior.expected_count().sum())
    facts = {"engine": engine, "expected": round(count), "seconds": round(time.process_time() - begin, 1)}
    print(json.dumps(vars(options) | facts | {"before_mib": round(before), "peak_mib": round(peak())}))


def bit_by_bit(streams: rd.StreamSet, proposal: rd.Proposal, options: argparse.Namespace) -> tuple[str, float]:
    """Feed a stream, a thousand events at a time, and ask after each thousand what went missing."""
    times, types = streams.event_times, streams.event_types.tolist()
    online = rd.Online(proposal, lag=1500.0, particles=options.particles)  # longer than a thousand events take
    online.feed({"long": []}, start=0.0)
    count, known = 0.0, 0.0
    for first in range(0, len(times), 1000):
        online.feed({"long": list(zip(times[first : first + 1000], types[first : first + 1000], strict=True))})
        count += float(online.posterior().expected_count(start=known)[0])
        known = online.now("long")
    return online.engine, count


if __name__ == "__main__":
    main()
