"""Time per observed event against the number of particles and the length of streams (section 5.6, appendix G.8)."""

from __future__ import annotations

import time
from typing import Any

import torch

import retrodict as rd
from experiments.data import test_pair
from experiments.imputing import METHODS
from experiments.sizes import STOCHASTIC
from experiments.store import Run

REPEATS = 3


def measure(run: Run, device: str) -> dict[str, Any]:
    """Milliseconds per observed event, of one stream and of several at once: the best of three."""
    scale = run.scale
    smoother = METHODS["smoothing"].prepare(run, scale.timed_on, STOCHASTIC, device)
    observed = test_pair(run, scale.timed_on, STOCHASTIC)[0][: scale.timed_streams]
    usual = scale.kinds[scale.timed_on].particles[0]
    cases = [(M, 1.0) for M in scale.timed_particles] + [(usual, share) for share in scale.timed_shares]
    rows = []
    for particles, share in dict.fromkeys(cases):
        streams = cut(observed, share)
        rows.append(
            {
                "particles": particles,
                "length": streams.num_events / len(streams),
                "alone": _milliseconds(streams[:1], smoother, particles),
                "together": _milliseconds(streams, smoother, particles),
            }
        )
    return {"dataset": scale.timed_on, "streams": len(observed), "usual": usual, "rows": rows}


def cut(streams: rd.StreamSet, share: float) -> rd.StreamSet:
    """The first part of each stream."""
    parts = []
    for stream in streams:
        end = stream.start + share * stream.duration
        early = stream.times <= end
        parts.append(rd.EventStream(stream.times[early], stream.types[early], stream.start, end, stream.id))
    return rd.StreamSet(parts, streams.types, streams.axis)


def _milliseconds(streams: rd.StreamSet, smoother: rd.Proposal, particles: int) -> float:
    rd.impute(streams[:1], smoother, particles)  # compiles
    times = []
    for _ in range(REPEATS):
        began = time.perf_counter()
        rd.impute(streams, smoother, particles)
        if torch.cuda.is_available():
            torch.cuda.synchronize()
        times.append(time.perf_counter() - began)
    return 1e3 * min(times) / max(streams.num_events, 1)
