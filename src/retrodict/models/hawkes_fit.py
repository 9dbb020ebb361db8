"""Base rates and excitations of greatest likelihood, for decays that are given.

λ_k is linear in base_k and in what excites type k, so that the log-likelihood is concave, and a sum over k of
functions that share no parameter. For one type it is Σ_i w_i log (X a)_i - c · a over a >= 0. A row of X holds 1 and,
for each pair of a source and a scale, what the source's events before event i would add to λ_k(t_i); c has the total
time, and how many events each pair has had time to cause for each that one of its events causes. ``maximise`` climbs by
Newton steps within the constraint. It ends by a certificate: with s = max_j Σ_i w_i X_ij / λ_i / c_j, the numbers
w_i / (s λ_i) are feasible in the dual problem, so that no a has a log-likelihood higher by more than
W log s + c · a - W, where W = Σ_i w_i.

Two things keep chance out. Every type has half an event more than was seen, with nothing before it, so that a type is
never impossible. Every source has some more events that caused nothing, as many as is best on dev for the excited type.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from retrodict import _limits
from retrodict.events.stream_set import StreamSet
from retrodict.models.calendar import Calendar
from retrodict.models.hawkes_season import seasonal_areas
from retrodict.models.start import first_types

Floats = NDArray[np.float64]

TOLERANCE = 1e-6  # nats per event that a better answer could gain at most
IDLE = (1.0, 4.0, 16.0, 64.0, 256.0, 1024.0)  # events of each source that caused nothing, to choose from on dev
_STEPS, _NEW = 200, 100  # Newton steps at most; parameters that may leave zero in one of them


@dataclass(frozen=True)
class Fit:
    """``base`` [K], ``excitation`` [R, K, K], and how it went."""

    base: Floats
    excitation: Floats
    record: dict[str, Any]


class Maximum(NamedTuple):
    """Where the maximum is, [P], by how much at most the log-likelihood is below it, and how many steps it took."""

    at: Floats
    gap: float
    steps: int


class History:
    """What likelihoods need to know of streams: ``before`` [N, R K] for each event, ``caused`` [R K], ``time``.

    Where intensities are multiplied by a calendar's factors, ``caused`` [R K, K] and ``time`` [K] count these.
    """

    def __init__(self, streams: StreamSet, decays: Floats, start_atom: bool, calendar: Calendar | None = None) -> None:
        N, R, K = streams.num_events, len(decays), streams.num_types
        _limits.ask_memory(16.0 * N * R * K, f"fitting {R} scales to {N:,} events of {K:,} types", "use fewer scales")
        self.types = np.asarray(streams.event_types)
        before = _before(streams, decays)
        self.before = before.reshape(N, R * K)
        if calendar is None:
            self.time: Any = float(streams.durations.sum())
            left = np.repeat(streams.ends, streams.lengths) - streams.event_times
            caused = [np.bincount(self.types, -np.expm1(-decay * left), minlength=K) for decay in decays]
            self.caused: Floats = np.concatenate(caused).astype(np.float64)
        else:
            self.time, self.caused = seasonal_areas(streams, before, decays, calendar)
        self.scored = np.ones(N, dtype=bool)
        if start_atom:  # it scores the events at the very start
            self.scored[streams.offsets[:-1][first_types(streams) >= 0]] = False

    def rows(self, k: int) -> Floats:
        """[n, 1 + R K] for the events of a type."""
        before = self.before[(self.types == k) & self.scored]
        return np.concatenate([np.ones((len(before), 1)), before], 1)

    def areas(self, k: int) -> Floats:
        """[1 + R K]: what each parameter of a type adds to the expected number of its events."""
        if isinstance(self.time, float):
            return np.concatenate([[self.time], self.caused])
        return np.concatenate([[self.time[k]], self.caused[:, k]])


def fit_excitation(
    train: StreamSet, dev: StreamSet, decays: Floats, start_atom: bool, calendar: Calendar | None = None
) -> Fit:
    """The best parameters for ``decays`` [R] on training streams; dev streams say how much to hold back."""
    R, K = len(decays), train.num_types
    known, new = (History(streams, decays, start_atom, calendar) for streams in (train, dev))
    best, gaps, idle, steps = np.zeros((1 + R * K, K)), 0.0, np.zeros(K), 0
    for k in range(K):
        X, X_new = known.rows(k), new.rows(k)
        X = np.concatenate([X, np.eye(1, 1 + R * K)])  # half an event with nothing before it
        w = np.ones(len(X))
        w[-1] = 0.5
        top, at = -np.inf, None
        for more in reversed(IDLE):
            areas = known.areas(k)
            areas[1:] += more
            found = maximise(X, w, areas, at)
            at, steps = found.at, steps + found.steps
            score = float(np.log(X_new @ at).sum() - new.areas(k) @ at)
            if score > top:
                top, idle[k], best[:, k], gap = score, more, at, found.gap
        gaps += gap
    below = gaps / max(int(known.scored.sum()), 1)
    record = {
        "ended": "converged" if below <= 2 * TOLERANCE else "all steps done",
        "decays": decays.tolist(),
        "idle_events": idle.tolist(),
        "newton_steps": steps,
        "nats_below_maximum": below,
    }
    return Fit(best[0], best[1:].reshape(R, K, K), record)


def maximise(X: Floats, w: Floats, c: Floats, start: Floats | None = None) -> Maximum:
    """Maximise Σ_i w_i log (X a)_i - c · a over a >= 0, for X [n, P] >= 0 with a first column above zero.

    Each step maximises the quadratic approximation under the constraint (non-negative least squares) over the
    parameters above zero and those that want to be; then as much of the step is taken as helps.
    """
    W = float(w.sum())
    a = np.zeros_like(c) if start is None else start * c  # in events caused, so that all slopes are 1
    a[0] = max(a[0], 0.01 * W)
    rates = X @ (a / c)
    steps, gap = 0, np.inf
    while steps < _STEPS:
        a, rates = a * (W / a.sum()), rates * (W / a.sum())  # the best multiple
        pull = (X.T @ (w / rates)) / c
        gap = W * float(np.log(pull.max()))
        if gap <= TOLERANCE * W:
            break
        steps += 1
        free = _free(a, pull)
        Y = X[:, free] * (np.sqrt(w) / rates)[:, None] / c[free]
        target = _quadratic(Y.T @ Y, 2 * pull[free] - 1)
        move = target - a[free]
        push = X[:, free] @ (move / c[free])
        share = _share(rates, push, w, float(move.sum()), float((pull[free] - 1) @ move))
        a[free] = np.maximum(a[free] + share * move, 0.0)
        rates = X @ (a / c)
    return Maximum(a / c, max(gap, 0.0), steps)


def _free(a: Floats, pull: Floats) -> NDArray[np.int64]:
    """Parameters above zero, and those at zero whose pull is strongest."""
    away = np.flatnonzero((a <= 0) & (pull > 1))
    away = away[np.argsort(-pull[away], kind="stable")[:_NEW]]
    return np.sort(np.concatenate([np.flatnonzero(a > 0), away]))


def _quadratic(H: Floats, b: Floats) -> Floats:
    """The x >= 0 with the least x H x / 2 - b x."""
    from scipy.linalg import solve_triangular  # SciPy takes a second to load, which only this fit needs
    from scipy.optimize import nnls

    H = H + 1e-10 * np.trace(H) / len(H) * np.eye(len(H))
    lower = np.linalg.cholesky(H)
    return np.asarray(nnls(lower.T, solve_triangular(lower, b, lower=True), maxiter=50 * len(b))[0])


def _share(rates: Floats, push: Floats, w: Floats, more: float, slope: float) -> float:
    """How much of a step to take: half as much, and again, until it gains what a tangent promises in part."""
    share = 1.0
    for _ in range(40):
        moved = rates + share * push
        if (moved > 1e-3 * rates).all() and w @ np.log(moved / rates) - share * more >= 1e-4 * share * slope:
            return share
        share /= 2
    return 0.0


def _before(streams: StreamSet, decays: Floats) -> Floats:
    """decay_r Σ exp(-decay_r (t_i - t)) over earlier events of each type, [N, R, K], all streams at once."""
    N, R, K = streams.num_events, len(decays), streams.num_types
    before, types, times = np.zeros((N, R, K)), np.asarray(streams.event_types), np.asarray(streams.event_times)
    order = np.argsort(-streams.lengths, kind="stable")
    firsts, lengths = streams.offsets[:-1][order], streams.lengths[order]
    state = np.zeros((len(order), R, K))
    for i in range(int(lengths.max(initial=0))):
        now = firsts[: np.searchsorted(-lengths, -i)] + i
        rows = state[: len(now)]
        if i:
            rows *= np.exp(-decays * (times[now] - times[now - 1])[:, None])[:, :, None]
        before[now] = rows
        rows[np.arange(len(now)), :, types[now]] += decays
    return before
