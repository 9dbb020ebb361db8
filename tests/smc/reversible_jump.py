"""The posterior over missing events of a Hawkes stream by reversible-jump MCMC (Green, 1995).

Written from the definition of the process (the double sum over pairs of events) and sharing nothing with the package:
an independent answer to test sequential Monte Carlo against. Moves: an event is born (uniform in time, any type that
can go missing), one dies, one moves to another time. The evidence follows from the share of the chain spent with
nothing missing: p(x) = p(x, z = ∅) / p(z = ∅ | x).

Missing rates are those of types, ``rho``, unless ``how`` names another way in which they depend on the time and on the
preceding events; ``numbers`` says the rest.
"""

from __future__ import annotations

from typing import NamedTuple

import numba
import numpy as np


class Chains(NamedTuple):
    """Of each chain: mean count by type and half of the window, [C, K, 2]; share of time with nothing missing, [C]."""

    counts: np.ndarray
    empty: np.ndarray


BY_TYPE, WINDOW, TABLE, DELAY, AFTER, NETWORK, SEVERAL = range(7)


@numba.njit(cache=False)
def missing_rate(how, numbers, rho, i, times, types, n, end):
    """The probability that event i of n goes missing."""
    t, k = times[i], types[i]
    if how == WINDOW:  # from, to; rates inside, a tenth of them outside
        return rho[k] if numbers[0] <= t < numbers[1] else 0.1 * rho[k]
    if how == TABLE:  # every two units: from 0 up to rho in the first, down again in the second
        return rho[k] * (1 - abs(t % 2 - 1))
    if how == DELAY:  # mean delay
        return rho[k] * np.exp(-(end - t) / numbers[0])
    if how == AFTER:  # within so long after type 1
        for j in range(n):
            if types[j] == 1 and 0 < t - times[j] < numbers[0]:
                return rho[k]
        return 0.2 * rho[k]
    if how == NETWORK:  # one unit: scale of the traces, weights by type, bias, then by type weight and bias
        K = len(rho)
        total = numbers[1 + K]
        for m in range(K):
            trace = 0.0
            for j in range(n):
                if types[j] == m and times[j] < t:
                    trace += np.exp(-(t - times[j]) / numbers[0])
            total += numbers[1 + m] * np.log(1 + trace)
        return 1 / (1 + np.exp(-numbers[2 + K + k] * np.tanh(total) - numbers[2 + 2 * K + k]))
    if how == SEVERAL:  # by type, in a window, or late
        inside = numbers[0] <= t < numbers[1]
        return 1 - (1 - rho[k]) * (0.5 if inside else 1) * (1 - np.exp(-(end - t) / numbers[2]))
    return rho[k]


@numba.njit(cache=False)
def log_joint(base, excitation, decay, rho, times, types, hidden, n, end, how, numbers):
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
        rate_missing = missing_rate(how, numbers, rho, i, times, types, n, end)
        total += np.log(rate_missing) if hidden[i] else np.log(1 - rate_missing)
    return total


@numba.njit(cache=False)
def chain(base, excitation, decay, rho, seen_times, seen_types, end, steps, burn_in, rng, how, numbers):
    """One chain: mean counts [K, 2] and the share of time with nothing missing."""
    K, fixed, room = len(base), len(seen_times), 200
    able = np.flatnonzero(rho > 0)
    times, types, hidden = np.zeros(room), np.zeros(room, np.int64), np.zeros(room, np.bool_)
    times[:fixed], types[:fixed] = seen_times, seen_types
    n = fixed
    now = log_joint(base, excitation, decay, rho, times, types, hidden, n, end, how, numbers)
    counts, empty = np.zeros((K, 2)), 0.0
    for step in range(steps):
        u = rng.random()
        missing = n - fixed
        if u < 0.4:
            times[n], types[n], hidden[n] = end * rng.random(), able[rng.integers(0, len(able))], True
            new = log_joint(base, excitation, decay, rho, times, types, hidden, n + 1, end, how, numbers)
            if np.log(rng.random()) < new - now + np.log(end * len(able) / (missing + 1)):
                n, now = n + 1, new
        elif missing > 0:
            i = fixed + rng.integers(0, missing)
            time, kind = times[i], types[i]
            if u < 0.8:
                times[i], types[i] = times[n - 1], types[n - 1]
                new = log_joint(base, excitation, decay, rho, times, types, hidden, n - 1, end, how, numbers)
                if np.log(rng.random()) < new - now - np.log(end * len(able) / missing):
                    n, now = n - 1, new
                else:
                    times[i], types[i] = time, kind
            else:
                times[i] = end * rng.random()
                new = log_joint(base, excitation, decay, rho, times, types, hidden, n, end, how, numbers)
                if np.log(rng.random()) < new - now:
                    now = new
                else:
                    times[i] = time
        if step >= burn_in:
            empty += n == fixed
            for i in range(fixed, n):
                counts[types[i], 0 if times[i] < end / 2 else 1] += 1
    return counts / (steps - burn_in), empty / (steps - burn_in)


def reversible_jump(
    base, excitation, decay, rho, stream, chains: int = 30, steps: int = 60_000, how: int = BY_TYPE, numbers=()
) -> Chains:
    """Independent chains for one observed stream that starts at 0."""
    arrays = [np.asarray(a, dtype=np.float64) for a in (base, excitation, decay, rho)]
    numbers = np.asarray(numbers, dtype=np.float64)
    runs = [
        chain(
            *arrays,
            stream.times,
            stream.types,
            stream.end,
            steps,
            steps // 10,
            np.random.default_rng(seed),
            how,
            numbers,
        )
        for seed in range(chains)
    ]
    return Chains(np.array([c for c, _ in runs]), np.array([e for _, e in runs]))
