"""Time per observed event against the number of particles and the length of streams (section 5.6, appendix G.8)."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import torch

from retrodict.events.stream import EventStream
from retrodict.events.stream_set import StreamSet
from retrodict.experiments.data import test_pair
from retrodict.experiments.jobs import Job
from retrodict.experiments.place import Place
from retrodict.experiments.plan import model_job, smoother_job
from retrodict.experiments.scale import STOCHASTIC, Scale
from retrodict.smc.impute import impute

REPEATS = 3


def jobs(scale: Scale) -> list[Job]:
    """Every number of particles at full length, and every length at the usual number of particles."""
    dataset = scale.runtime_kind
    usual = scale.particles[dataset][0]
    cases = [(M, 1.0) for M in scale.runtime_particles] + [(usual, share) for share in scale.runtime_shares]
    return [
        Job(
            f"runtime/{dataset}.{particles}.{share:g}",
            "measure",
            "runtime:measure",
            {"dataset": dataset, "particles": particles, "share": share},
            (model_job(dataset), smoother_job(dataset, STOCHASTIC, "ours")),
            alone=True,
        )
        for particles, share in dict.fromkeys(cases)
    ]


def measure(place: Place, device: str, dataset: str, particles: int, share: float) -> dict[str, Any]:
    """Seconds to impute the first ``share`` of each stream: of all at once, and of one by itself; best of three."""
    observed = cut(test_pair(place, dataset, STOCHASTIC)[0][: place.scale.runtime_streams], share)
    smoother = place.smoother(dataset, STOCHASTIC, "ours", device)
    result: dict[str, Any] = {"particles": particles, "share": share}
    for name, streams in (("together", observed), ("alone", observed[:1])):
        took = _best(lambda streams=streams: impute(streams, smoother, particles, seed=0), device)  # type: ignore[misc]
        result[name] = {"streams": len(streams), "observed": streams.num_events, "seconds": took}
    return result


def cut(streams: StreamSet, share: float) -> StreamSet:
    """The first part of each stream."""
    if share == 1:
        return streams
    parts = []
    for stream in streams:
        end = stream.start + share * stream.duration
        early = stream.times <= end
        parts.append(EventStream(stream.times[early], stream.types[early], stream.start, end, stream.id))
    return StreamSet(parts, streams.types, streams.axis)


def _best(run: Callable[[], Any], device: str) -> float:
    run()  # compiles and warms up
    times = []
    for _ in range(REPEATS):
        began = time.perf_counter()
        run()
        if device == "cuda":
            torch.cuda.synchronize()
        times.append(time.perf_counter() - began)
    return min(times)
