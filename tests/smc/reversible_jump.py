"""The posterior over missing events of a Hawkes stream by reversible-jump MCMC (Green, 1995).

Written from the definition of the process (the double sum over pairs of events) and sharing nothing with the package:
an independent answer to test sequential Monte Carlo against. Moves: an event is born (uniform in time, any type that
can go missing), one dies, one moves to another time. The evidence follows from the share of the chain spent with
nothing missing: p(x) = p(x, z = ∅) / p(z = ∅ | x).
"""

from __future__ import annotations

from typing import NamedTuple

import numba
import numpy as np


class Chains(NamedTuple):
    """Of each chain: mean count by type and half of the window, [C, K, 2]; share of time with nothing missing, [C]."""

    counts: np.ndarray
    empty: np.ndarray


@numba.njit(cache=False)
def log_joint(base, excitation, decay, rho, times, types, hidden, n, end):
    """log p_model + log p_miss of n events in any order."""
    total = -base.sum() * end
    for i in range(n):
        rate = base[types[i]]
        for j in range(n):
            if times[j] < times[i]:
                d = decay[types[i]]
                rate += excitation[types[j], types[i]] * d * np.exp(-d * (times[i] - times[j]))
        total += np.log(rate)
        for k in range(len(base)):
            total -= excitation[types[i], k] * (1 - np.exp(-decay[k] * (end - times[i])))
        total += np.log(rho[types[i]]) if hidden[i] else np.log(1 - rho[types[i]])
    return total


@numba.njit(cache=False)
def chain(base, excitation, decay, rho, seen_times, seen_types, end, steps, burn_in, rng):
    """One chain: mean counts [K, 2] and the share of time with nothing missing."""
    K, fixed, room = len(base), len(seen_times), 200
    able = np.flatnonzero(rho > 0)
    times, types, hidden = np.zeros(room), np.zeros(room, np.int64), np.zeros(room, np.bool_)
    times[:fixed], types[:fixed] = seen_times, seen_types
    n = fixed
    now = log_joint(base, excitation, decay, rho, times, types, hidden, n, end)
    counts, empty = np.zeros((K, 2)), 0.0
    for step in range(steps):
        u = rng.random()
        missing = n - fixed
        if u < 0.4:
            times[n], types[n], hidden[n] = end * rng.random(), able[rng.integers(0, len(able))], True
            new = log_joint(base, excitation, decay, rho, times, types, hidden, n + 1, end)
            if np.log(rng.random()) < new - now + np.log(end * len(able) / (missing + 1)):
                n, now = n + 1, new
        elif missing > 0:
            i = fixed + rng.integers(0, missing)
            time, kind = times[i], types[i]
            if u < 0.8:
                times[i], types[i] = times[n - 1], types[n - 1]
                new = log_joint(base, excitation, decay, rho, times, types, hidden, n - 1, end)
                if np.log(rng.random()) < new - now - np.log(end * len(able) / missing):
                    n, now = n - 1, new
                else:
                    times[i], types[i] = time, kind
            else:
                times[i] = end * rng.random()
                new = log_joint(base, excitation, decay, rho, times, types, hidden, n, end)
                if np.log(rng.random()) < new - now:
                    now = new
                else:
                    times[i] = time
        if step >= burn_in:
            empty += n == fixed
            for i in range(fixed, n):
                counts[types[i], 0 if times[i] < end / 2 else 1] += 1
    return counts / (steps - burn_in), empty / (steps - burn_in)


def reversible_jump(base, excitation, decay, rho, stream, chains: int = 30, steps: int = 60_000) -> Chains:
    """Independent chains for one observed stream that starts at 0."""
    arrays = [np.asarray(a, dtype=np.float64) for a in (base, excitation, decay, rho)]
    runs = [
        chain(*arrays, stream.times, stream.types, stream.end, steps, steps // 10, np.random.default_rng(seed))
        for seed in range(chains)
    ]
    return Chains(np.array([c for c, _ in runs]), np.array([e for _, e in runs]))
