"""Small streams and ensembles for the decoding tests, and slow but obvious reference algorithms."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from functools import lru_cache
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from retrodict.decode.ensemble import Candidates, Ensemble, check_particles, flatten, list_candidates, restrict
from retrodict.events.stream import EventStream

GOLDEN = Path(__file__).resolve().parents[2].parent / "shared" / "golden"


def golden(name: str) -> Any:
    """A golden file of the shared folder beside the checkout; skips the test where it is absent."""
    path = GOLDEN / name
    if not path.exists():
        pytest.skip(f"no {name} beside the checkout")
    return json.loads(path.read_text())


def stream(events: Sequence[tuple[int, float]], end: float = 1e3) -> EventStream:
    """A stream of (type, time) pairs in any order."""
    ordered = sorted(events, key=lambda event: event[1])
    return EventStream([t for _, t in ordered], [int(k) for k, _ in ordered], end=end)


def of_one_type(times: Sequence[float], end: float = 1e3) -> EventStream:
    return stream([(0, float(t)) for t in times], end)


def slow_distance(a: Sequence[float], b: Sequence[float], insert: float, delete: float) -> float:
    """Edit distance by its definition: delete, insert or move the last event."""

    @lru_cache(None)
    def best(i: int, j: int) -> float:
        if i == 0 or j == 0:
            return i * delete + j * insert
        return min(
            best(i - 1, j) + delete,
            best(i, j - 1) + insert,
            best(i - 1, j - 1) + abs(a[i - 1] - b[j - 1]),
        )

    return best(len(a), len(b))


def least_objective(
    particles: Sequence[Sequence[float]],
    w: np.ndarray,
    cost: tuple[float, float],
    most: Callable[[float], int],
    price: Callable[[float], float],
) -> float:
    """The least risk plus prices of any decode with up to ``most`` events at each time of the particles: tries all."""
    insert, delete = cost
    distances = [insert * np.arange(len(p) + 1)[None] for p in particles]  # of each decode to all beginnings of p
    paid = np.zeros(1)
    for t in sorted({t for p in particles for t in p}):
        tried = [(distances, paid)]
        for _ in range(most(t)):
            before, paid = tried[-1]
            longer = [_append(t, rows, p, insert, delete) for rows, p in zip(before, particles, strict=True)]
            tried.append((longer, paid + price(t)))
        distances = [np.concatenate(rows) for rows in zip(*(rows for rows, _ in tried), strict=True)]
        paid = np.concatenate([own for _, own in tried])
    return float(min(w @ [rows[:, -1] for rows in distances] + paid))


def _append(t: float, rows: np.ndarray, particle: Sequence[float], insert: float, delete: float) -> np.ndarray:
    """The rows of the recursion of ``slow_distance`` for decodes with one more event, at t."""
    new = rows + delete
    for j, time in enumerate(particle, 1):
        new[:, j] = np.minimum(np.minimum(new[:, j], new[:, j - 1] + insert), rows[:, j - 1] + abs(t - time))
    return new


def least_risk(particles: list[list[float]], w: np.ndarray, insert: float, delete: float) -> float:
    """The least risk of any sub-multiset of the particles' events, by trying all of them."""
    return least_objective(particles, w, (insert, delete), lambda t: sum(p.count(t) for p in particles), lambda t: 0.0)


def posterior_like(
    events: int, types: int, particles: int, seed: int, end: float | None = None
) -> tuple[list[EventStream], np.ndarray]:
    """Weighted particles around a latent truth: jittered, dropped and spurious events."""
    rng = np.random.default_rng(seed)
    end = events / types if end is None else end
    truth, kinds = rng.uniform(0, end, events), rng.integers(types, size=events)
    streams = []
    for _ in range(particles):
        kept = rng.random(events) < 0.8
        spurious = rng.poisson(0.2 * events)
        times = np.r_[truth[kept] + 0.15 * rng.standard_t(3, kept.sum()), rng.uniform(0, end, spurious)]
        names = np.r_[kinds[kept], rng.integers(types, size=spurious)]
        streams.append(stream(list(zip(names, np.clip(times, 0, end), strict=True)), end))
    return streams, rng.dirichlet(np.full(particles, 2.0))


def candidates_of(streams: Sequence[EventStream]) -> Candidates:
    events = flatten(streams)
    return list_candidates(*events, np.argsort(events[0]))


def one_stretch(particles: list[list[float]], w: list[float]) -> Ensemble:
    """The ensemble of particles of one type, not cut anywhere, and nothing charged."""
    streams, weights = check_particles([of_one_type(p) for p in particles], w)
    candidates = candidates_of(streams)
    free = np.zeros(len(candidates.times))
    return restrict(candidates, weights, free, candidates.offsets[:-1].copy(), 0, len(candidates.times))


def random_stretch(seed: int) -> Ensemble:
    streams, w = posterior_like(8, 1, 12, seed)
    return one_stretch([s.times.tolist() for s in streams], w.tolist())


def slow_risk(decode: np.ndarray, ensemble: Ensemble, cost: tuple[float, float]) -> float:
    """The expected distance of a decode by the definition of the edit distance."""
    own = [ensemble.times[a:b].tolist() for a, b in pairwise(ensemble.offsets)]
    return float(ensemble.weights @ [slow_distance(decode.tolist(), p, *cost) for p in own])
