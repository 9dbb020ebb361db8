"""Time to decode one stream, all types together, on one core.

    python benchmarks/decode.py [--streams N] [--out decode.json]

Ensembles look like posteriors: a latent truth, whose events each particle keeps, jitters or drops, each with
a probability and a precision of its own, spurious events, and uneven weights. The unit of time is the mean
distance of two missing events of one type. ``plain`` is the paper's Algorithm 3 in plain Python, from its one
start; ``local`` is the compiled search from three starts with a lower bound, ``one start`` the same from one;
``exact 0.1 %`` and ``exact 1e-9`` stop at that certified gap; ``excess`` is the risk above the optimum. Each
figure is the best of three runs (``plain``: one run), averaged over streams.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from retrodict.decode import consensus, distances
from retrodict.decode.sets import Method
from retrodict.events.stream import EventStream

SIZES = {"taxi": (16, 5), "elevator": (150, 10)}
COSTS = (0.1, 0.3, 1.0, 3.0)
COMPILE = """
import time; from retrodict.events.stream import EventStream
begin = time.perf_counter(); from retrodict.decode import consensus, transport
particles = [EventStream([1.0, 2.0], [0, 0], end=3.0), EventStream([1.5], [0], end=3.0)]
imported = time.perf_counter(); transport(*particles, 1.0); moved = time.perf_counter()
consensus(particles, None, 1.0); exact = time.perf_counter(); consensus(particles, None, 1.0, "local")
print(imported - begin, moved - imported, exact - moved, time.perf_counter() - exact)
"""


def make_ensemble(events: int, types: int, particles: int, seed: int) -> tuple[list[EventStream], np.ndarray[Any, Any]]:
    """Weighted particles around a latent truth of ``events`` events of ``types`` types."""
    rng = np.random.default_rng(seed)
    end = events / types
    truth, kinds = np.sort(rng.uniform(0, end, events)), rng.integers(types, size=events)
    certainty, spread = rng.beta(4, 1, events), rng.lognormal(np.log(0.12), 0.7, events)
    streams = []
    for _ in range(particles):
        kept = rng.random(events) < certainty
        spurious = rng.poisson(0.2 * events)
        times = np.concatenate(
            [truth[kept] + spread[kept] * rng.standard_t(3, kept.sum()), rng.uniform(0, end, spurious)]
        )
        names = np.concatenate([kinds[kept], rng.integers(types, size=spurious)])
        order = np.argsort(times)
        streams.append(EventStream(np.clip(times, 0, end)[order], names[order], end=end))
    return streams, rng.dirichlet(np.full(particles, 2.0))


# --- the paper's algorithm in plain Python ---------------------------------------------------------------


def plain_align(a: list[float], b: list[float], C: float) -> tuple[float, list[int]]:
    """Algorithm 2, with the printed slips mended."""
    D = [[0.0] * (len(b) + 1) for _ in range(len(a) + 1)]
    for i in range(1, len(a) + 1):
        D[i][0] = D[i - 1][0] + C
    for j in range(1, len(b) + 1):
        D[0][j] = D[0][j - 1] + C
    for i in range(1, len(a) + 1):
        for j in range(1, len(b) + 1):
            D[i][j] = min(D[i - 1][j - 1] + abs(a[i - 1] - b[j - 1]), D[i - 1][j] + C, D[i][j - 1] + C)
    match, i, j = [-1] * len(a), len(a), len(b)
    while i > 0 and j > 0:
        if D[i][j] == D[i - 1][j - 1] + abs(a[i - 1] - b[j - 1]):
            i, j = i - 1, j - 1
            match[i] = j
        elif D[i][j] == D[i - 1][j] + C:
            i -= 1
        else:
            j -= 1
    return D[-1][-1], match


def plain_phases(
    z: list[float], particles: list[list[float]], w: list[float], C: float, matches: list[list[int]]
) -> list[float]:
    """Move to the weighted median, delete, insert: one round of Algorithm 3 after its Align Phase."""
    free = [set(range(len(p))) for p in particles]
    decode = []
    for i, t in enumerate(z):
        aligned = sorted((p[m[i]], x) for p, m, x in zip(particles, matches, w, strict=True) if m[i] >= 0)
        below, half = 0.0, sum(x for _, x in aligned) / 2
        for time_, x in aligned:
            below += x
            if below >= half:
                t = time_
                break
        present = sum(x for _, x in aligned)
        if sum(x * (C - abs(time_ - t)) for time_, x in aligned) >= (1 - present) * C:
            decode.append(t)
            for m, unaligned in zip(matches, free, strict=True):
                unaligned.discard(m[i])
    candidates = sorted({t for p in particles for t in p})
    while True:
        best, where = 1e-12, None
        for t in candidates:
            gain = 0.0
            for p, x, unaligned in zip(particles, w, free, strict=True):
                nearest = min((abs(p[e] - t) for e in unaligned), default=2 * C)
                gain += x * (C - nearest) if nearest < 2 * C else -x * C
            if gain > best:
                best, where = gain, t
        if where is None:
            return sorted(decode)
        decode.append(where)
        for p, unaligned in zip(particles, free, strict=True):
            nearest, event = min(((abs(p[e] - where), e) for e in unaligned), default=(2 * C, -1))
            if nearest < 2 * C:
                unaligned.discard(event)


def plain_consensus(streams: list[EventStream], weights: np.ndarray[Any, Any], C: float, types: int) -> float:
    """Algorithm 3 for every type: from the heaviest particle until the risk stops falling."""
    total, w = 0.0, weights.tolist()
    for k in range(types):
        particles = [s.times[s.types == k].tolist() for s in streams]
        z, lowest = particles[int(np.argmax(weights))], float("inf")
        while True:
            aligned = [plain_align(z, p, C) for p in particles]
            risk = sum(x * d for x, (d, _) in zip(w, aligned, strict=True))
            if risk >= lowest - 1e-12:
                break
            lowest = risk
            z = plain_phases(z, particles, w, C, [match for _, match in aligned])
        total += lowest
    return total


# --- measuring -------------------------------------------------------------------------------------------


def best_of(repeats: int, call: Callable[[], Any]) -> tuple[float, Any]:
    """Shortest time in milliseconds, and the result."""
    times = []
    for _ in range(repeats):
        begin = time.perf_counter()
        result = call()
        times.append(time.perf_counter() - begin)
    return 1e3 * min(times), result


def measure_stream(events: int, types: int, cost: float, seed: int, plain: bool) -> dict[str, float]:
    """All decoders on one ensemble, at one cost."""
    particles, w = make_ensemble(events, types, 50, seed)
    row: dict[str, float] = {}
    row["exact 0.1 %"], rough = best_of(3, lambda: consensus(particles, w, cost, tolerance=1e-3))
    row["exact 1e-9"], exact = best_of(3, lambda: consensus(particles, w, cost))
    row["local"], local = best_of(3, lambda: consensus(particles, w, cost, "local"))
    row["one start"], _ = best_of(3, lambda: consensus(particles, w, cost, "local", starts=1))
    pairs_ms, _ = best_of(3, lambda: distances([exact.stream] * 50, particles, cost))
    row["transport"] = pairs_ms / 50
    row |= {"gap 0.1 %": rough.gap, "gap 1e-9": exact.gap, "local bound gap": local.gap}
    row["local excess"] = local.risk / exact.risk - 1
    if plain:
        row["plain"], risk = best_of(1, lambda: plain_consensus(particles, w, cost, types))
        row["plain excess"] = risk / exact.risk - 1
        row["plain / local"] = row["plain"] / row["local"]
        row["plain / one start"] = row["plain"] / row["one start"]
    return row


def measure(name: str, cost: float, streams: int, plain_streams: int) -> dict[str, Any]:
    """Means over ensembles of one size, and the worst time and gaps."""
    rows = [measure_stream(*SIZES[name], cost, seed, seed < plain_streams) for seed in range(streams)]
    keys = dict.fromkeys(key for row in rows for key in row)
    mean = {key: float(np.mean([row[key] for row in rows if key in row])) for key in keys}
    worst = {f"worst {key}": max(row[key] for row in rows) for key in ("exact 1e-9", "gap 0.1 %", "gap 1e-9")}
    return {"size": name, "cost": cost} | mean | worst | {"0.1 % / local": mean["exact 0.1 %"] / mean["local"]}


def measure_large(name: str, particles: int, method: Method, tolerance: float) -> dict[str, Any]:
    """Many particles: seconds, gap, and the peak memory of this process."""
    ensemble, w = make_ensemble(*SIZES[name], particles, 0)
    ms, result = best_of(1, lambda: consensus(ensemble, w, 1.0, method, tolerance=tolerance))
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    label = method if method == "local" else f"{method} {tolerance:g}"
    return {"size": name, "M": particles, "method": label, "s": ms / 1e3, "gap": result.gap, "MiB": peak}


def measure_compilation() -> dict[str, dict[str, float]]:
    """Seconds to the first results in a new process, with an empty cache of compiled code and with a full one."""
    names = ("import", "first transport", "first exact", "first local after it")
    with tempfile.TemporaryDirectory() as cache:
        runs = {}
        for label in ("nothing cached", "cached"):
            done = subprocess.run(
                [sys.executable, "-c", COMPILE],
                env=os.environ | {"NUMBA_CACHE_DIR": cache},
                capture_output=True,
                text=True,
                check=True,
            )
            runs[label] = dict(zip(names, map(float, done.stdout.split()), strict=True))
    return runs


def table(rows: list[dict[str, Any]], columns: list[str]) -> None:
    """Print rows under their headings."""
    print(" | ".join(f"{c:>16}" for c in columns))
    for row in rows:
        cells = (row.get(c, float("nan")) for c in columns)
        print(" | ".join(f"{c:>16}" if isinstance(c, str) else f"{c:>16.4g}" for c in cells))
    print()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--streams", type=int, default=10, help="ensembles for each size and cost")
    parser.add_argument("--plain-streams", type=int, default=5, help="of these, how many in plain Python too")
    parser.add_argument("--particles", type=int, nargs="*", default=[100, 200, 1000], help="M of the large runs")
    parser.add_argument("--out", type=Path, help="write all figures here as JSON")
    options = parser.parse_args()
    os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
    compilation = measure_compilation()
    for label, seconds in compilation.items():
        print(f"{label}: " + ", ".join(f"{name} {value:.2f} s" for name, value in seconds.items()))
    consensus(*make_ensemble(16, 5, 50, 0), 1.0)
    consensus(*make_ensemble(16, 5, 50, 0), 1.0, "local")
    print(f"\nmilliseconds per stream, M = 50, all types, one core ({platform.processor() or platform.machine()})")
    rows = [measure(name, cost, options.streams, options.plain_streams) for name in SIZES for cost in COSTS]
    table(rows, ["size", "cost", "transport", "plain", "local", "one start", "exact 0.1 %", "exact 1e-9"])
    table(rows, ["size", "cost", "plain / local", "plain / one start", "0.1 % / local", "worst exact 1e-9"])
    table(
        rows, ["size", "cost", "worst gap 0.1 %", "worst gap 1e-9", "local bound gap", "local excess", "plain excess"]
    )
    runs: list[tuple[Method, float]] = [("local", 0.0), ("exact", 1e-3), ("exact", 1e-9)]
    large = [measure_large(n, M, *run) for n in SIZES for M in options.particles for run in runs]
    table(large, ["size", "M", "method", "s", "gap", "MiB"])
    if options.out:
        options.out.write_text(json.dumps({"compile": compilation, "decode": rows, "large": large}, indent=2))


if __name__ == "__main__":
    main()
