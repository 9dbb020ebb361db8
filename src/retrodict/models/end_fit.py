"""Fit the end atom: a logistic regression of "this event was the last one" over all events, to convergence.

Log odds are a line in log n, plus a number of its own for each number of events n at which several training streams
ended, plus a part by type, by time, and by the model's features after the event. So a cut after exactly 16 events is
learned as well as ends that become more probable little by little. A penalty λ/2 Σ w² keeps odds finite (as the
pseudo-count of the start atom does) and chance out; how strong it is for the numbers of events, and for time and
features, is chosen on dev. The loss is convex, and Newton steps find its minimum.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray

from retrodict.events.batch import batches_by_length, make_batch
from retrodict.events.stream_set import StreamSet
from retrodict.models.base import Model
from retrodict.models.end import MOST_COUNTS, EndAtom, features_after, is_to_learn, last_events

Floats = NDArray[np.float64]

COUNT_PENALTIES, FEATURE_PENALTIES = (0.01, 1.0, 100.0), (1.0, 30.0, 1000.0, 1e6)  # to choose from on dev
_LINE, _TYPES = 0.02, 0.1  # penalties of the line in log n, and of types
_SEVERAL, _OWN = 3, 64  # streams that end after n events, for n to have a number of its own; the most of such numbers
_MOST = 1 << 24  # numbers of the regression that are worked on; of more streams some are left out
_AT_ONCE = 16_384  # events of one batch
_STEPS, _TOLERANCE = 100, 1e-7  # Newton steps at most; nats per event that are left to gain


class Events(NamedTuple):
    """What is known of all events of streams, [E] each, and features [E, F]."""

    counts: NDArray[np.int64]
    types: NDArray[np.int64]
    times: Floats
    features: Floats
    last: NDArray[np.bool_]


def learn_end(model: Model, train: StreamSet, dev: StreamSet) -> dict[str, Any]:
    """Give the model the end atom of streams that end at events, and none of others; what to record of it."""
    model.end_atom = None
    if not is_to_learn(train):
        return {}
    train, dev = _some(train, model), _some(dev, model)
    known, new = _events(model, train), _events(model, dev)
    form = _Form(known, model.num_types)
    X, y, X_new = form.columns(known), known.last, form.columns(new)
    best: tuple[float, Floats, tuple[float, float]] | None = None

    def attempt(of_counts: float, of_features: float, start: Floats) -> Floats:
        nonlocal best
        found = minimise(X, y, form.penalties(of_counts, of_features), start)
        score = log_probability(X_new, new.last, found)
        if best is None or score > best[0]:
            best = score, found, (of_counts, of_features)
        return found

    at = np.zeros(X.shape[1])
    for penalty in COUNT_PENALTIES:
        at = attempt(penalty, FEATURE_PENALTIES[1], at)
    assert best is not None
    of_counts, at = best[2][0], best[1]
    for penalty in (FEATURE_PENALTIES[0], *FEATURE_PENALTIES[2:]):
        at = attempt(of_counts, penalty, at)
    model.end_atom = form.atom(best[1], model)
    per_stream = best[0] / max(len(dev), 1)
    return {"end_atom": {"dev_log_probability_per_stream": per_stream, "penalties": list(best[2])}}


def _some(streams: StreamSet, model: Model) -> StreamSet:
    """The streams, or as many as the regression can take; a random subset by their ids."""
    width = 2 + _OWN + 1 + model.num_types + 1 + model.num_features
    share = _MOST / max(streams.num_events * width, 1)
    if share >= 1:
        return streams
    order = np.argsort(streams.id_keys, kind="stable")
    return streams[np.sort(order[: max(1, int(share * len(streams)))])]


@torch.no_grad()
def _events(model: Model, streams: StreamSet) -> Events:
    """All events, stream by stream."""
    rows = max(1, _AT_ONCE // (int(streams.lengths.max(initial=0)) + 1))
    parts = []
    for index in batches_by_length(streams.lengths, rows):
        batch = make_batch(streams, index, dtype=model.dtype, device=model.device)
        mask, counts = batch.mask, batch.mask.long().cumsum(1)
        of_all = (counts, batch.types, batch.times, features_after(model, batch), last_events(batch))
        parts.append([field[mask].cpu().numpy() for field in of_all])
    whole = [np.concatenate(field) for field in zip(*parts, strict=True)]
    return Events(whole[0], whole[1], whole[2], whole[3].astype(np.float64), whole[4])


class _Form:
    """The columns of the regression, as they follow from training events."""

    def __init__(self, known: Events, num_types: int) -> None:
        self.num_types = num_types
        self.most = min(int(known.counts.max()), MOST_COUNTS)
        ended = np.bincount(np.minimum(known.counts[known.last], self.most), minlength=self.most + 1)
        often = np.flatnonzero(ended >= _SEVERAL)
        often = often[np.argsort(-ended[often], kind="stable")[:_OWN]]
        self.own = np.union1d(often, [self.most])
        self.mean_log = float(np.log(np.minimum(known.counts, self.most)).mean())
        dense = _dense(known)
        self.mean, spread = dense.mean(0), dense.std(0)
        self.spread = np.where(
            spread > 1e-6 * (1 + np.abs(self.mean)), spread, np.inf
        )  # what never changes says nothing

    def columns(self, events: Events) -> Floats:
        """[E, P]: 1, log n, whether n is each of those with a number of their own, types, time and features."""
        counts = np.minimum(events.counts, self.most)
        line = np.stack([np.ones(len(counts)), np.log(counts) - self.mean_log], 1)
        own, types = counts[:, None] == self.own, events.types[:, None] == np.arange(self.num_types)
        return np.concatenate([line, own, types, (_dense(events) - self.mean) / self.spread], 1)

    def penalties(self, of_counts: float, of_features: float) -> Floats:
        """λ of each column, [P]."""
        sizes = [2, len(self.own), self.num_types, len(self.mean)]
        return np.repeat([_LINE, of_counts, _TYPES, of_features], sizes)

    def atom(self, found: Floats, model: Model) -> EndAtom:
        """The atom that these weights [P] make."""
        line, own, types, dense = np.split(found, np.cumsum([2, len(self.own), self.num_types]))
        by_count = line[0] + line[1] * (np.log(np.arange(1, self.most + 1)) - self.mean_log)
        by_count += -dense @ (self.mean / self.spread)
        by_count[self.own - 1] += own
        scale = self.spread[0] if np.isfinite(self.spread[0]) else 1.0
        by_time = dense[0] if np.isfinite(self.spread[0]) else 0.0
        parts = (by_count, types, by_time, scale, dense[1:] / self.spread[1:])
        return EndAtom(*(torch.as_tensor(part) for part in parts)).to(model.device, model.dtype)


def _dense(events: Events) -> Floats:
    """Time and features, [E, 1 + F]."""
    return np.concatenate([events.times[:, None], events.features], 1)


def log_probability(X: Floats, y: NDArray[np.bool_], w: Floats) -> float:
    """Σ log of the probability of each outcome."""
    return -float(np.logaddexp(0.0, np.where(y, -1.0, 1.0) * (X @ w)).sum())


def minimise(X: Floats, y: NDArray[np.bool_], penalties: Floats, start: Floats) -> Floats:
    """The w [P] of least Σ_i log(1 + exp(∓ X_i w)) + Σ_j penalty_j w_j² / 2, by Newton steps, halved if need be."""

    def loss(w: Floats) -> float:
        return 0.5 * float(penalties @ w**2) - log_probability(X, y, w)

    w, value = start, loss(start)
    for _ in range(_STEPS):
        p = 0.5 * (1 + np.tanh(0.5 * (X @ w)))
        slope = X.T @ (p - y) + penalties * w
        curvature = (X.T * (p * (1 - p))) @ X + np.diag(penalties)
        move = -np.linalg.solve(curvature, slope)
        gain, share = -float(slope @ move), 1.0
        if gain < _TOLERANCE * len(y):
            break
        while (new := loss(w + share * move)) > value - 1e-4 * share * gain and share > 1e-6:
            share /= 2
        w, value = w + share * move, new
    return w
