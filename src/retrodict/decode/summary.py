"""What the particles say about each event of a decode."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from retrodict.decode.align import align_groups
from retrodict.decode.arrays import Floats, Ints
from retrodict.decode.cost import Cost
from retrodict.decode.particles import Particles


class Summary(NamedTuple):
    """The ``probability`` [I] and ``interval`` [I, 2] of each event, and the expected terms of eq. (decomp)."""

    probability: Floats
    interval: Floats
    moved: float
    inserted: float
    deleted: float


def summarise(times: Floats, types: Ints, particles: Particles, cost: Cost, level: float) -> Summary:
    """Align a decode, ``times`` [I] sorted by ``types`` [I], with every particle and weigh what it meets."""
    M, K = len(particles.weights), particles.groups.num_types
    bounds = np.searchsorted(types, np.arange(K + 1))
    every = np.arange(M * K)
    flat = np.empty(M * len(times), dtype=np.int64)
    own = particles.groups
    pairs = np.stack([every % max(K, 1), every], axis=1)
    align_groups(times, bounds, own.times, own.offsets, pairs, cost.insert, cost.delete, flat)
    match = flat.reshape(M, len(times))
    aligned = match >= 0
    where = np.where(aligned, own.times[match], np.inf) if len(times) else np.empty((M, 0))
    mass = aligned * particles.weights[:, None]
    agreed = aligned.sum(axis=1)
    lengths = np.diff(own.offsets[:: max(K, 1)]) if K else np.zeros(M)
    return Summary(
        np.minimum(mass.sum(axis=0), 1.0),
        _quantiles(where, mass, times, level),
        float(particles.weights @ np.where(aligned, np.abs(where - times), 0.0).sum(axis=1)),
        float(particles.weights @ (lengths - agreed)),
        float(particles.weights @ (len(times) - agreed)),
    )


def _quantiles(where: Floats, mass: Floats, decode: Floats, level: float) -> Floats:
    """Central interval [I, 2] of the aligned times ``where`` [M, I]; an event nobody has stays a point."""
    order = np.argsort(where, axis=0, kind="stable")
    below = np.cumsum(np.take_along_axis(mass, order, axis=0), axis=0)
    total = below[-1]
    slack = 1e-12 * total  # cumulative sums of weights round
    events = np.arange(len(decode))
    ends = []
    for share in (0.5 * (1 - level), 0.5 * (1 + level)):
        place = np.argmax(below >= share * total - slack, axis=0)
        ends.append(np.where(total > 0, where[order[place, events], events], decode))
    return np.stack(ends, axis=1)
