"""Learn a calendar: given what the past says, the log-likelihood is concave in its weights, and apart for each type.

For type k it is Σ_i w · φ(t_i) - ∫ f_k(t) exp(w · φ(t)) dt - κ/2 Σ_j w_j² over its events and all of the time; Newton
steps find its maximum. The constant has next to no penalty. How strong κ is, and whether there are weeks beside days,
is chosen on dev. Models that are fitted by gradient steps go on from the calendar of a Poisson process
(``calendar_first.py``); others are fitted in turn with theirs.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray

from retrodict.events.batch import batches_by_length, make_batch
from retrodict.events.stream_set import StreamSet
from retrodict.models.base import Model
from retrodict.models.calendar_terms import gap_edges, gap_nodes
from retrodict.models.quadrature import GaussLegendre
from retrodict.models.state import take

Floats = NDArray[np.float64]

CELLS = 2016  # of a week
_LEVEL = 1e-3  # the penalty of the constant, for types that never happen
_MOST = 1 << 21  # gaps that are looked at; of more streams some are left out
_AT_ONCE = 8192  # gaps of one batch
_STEPS, _TOLERANCE = 50, 1e-7  # Newton steps at most; nats per event that are left to gain
_RULE = GaussLegendre(4)


class Times(NamedTuple):
    """All that the likelihood needs to know of streams, in C cells of five minutes of the week between covariates.

    ``own`` [K, J] sums up φ over the events of each type, ``counts`` [K] are their numbers, ``nodes`` [C, J] is φ in
    the middle of each cell, and ``rates`` [C, K] the integral of f_k over all time that falls into it.
    """

    own: Floats
    counts: Floats
    nodes: Floats
    rates: Floats


def improve_calendar(
    model: Model, train: StreamSet, dev: StreamSet, penalties: tuple[float, ...] | None = None
) -> float:
    """Give the model's calendar the weights that are best for what the model says of the past.

    ``penalties`` are tried on dev; by default that of the calendar is kept. Returns what the calendar gains on dev
    against none, in nats per event.
    """
    calendar = model.calendar
    assert calendar is not None
    known, new = _times(model, train), _times(model, dev)
    weights = calendar.weights.detach().double().cpu().numpy()
    best, top = weights, -np.inf
    for penalty in sorted(penalties or (calendar.penalty,), reverse=True):
        weights = np.stack([_maximise(known, k, penalty, weights[k]) for k in range(model.num_types)])
        score = _score(new, weights)
        if score > top:
            best, top, calendar.penalty = weights, score, penalty
    with torch.no_grad():
        calendar.weights.copy_(torch.as_tensor(best))
    return (top - _score(new, 0 * best)) / max(float(new.counts.sum()), 1.0)


@torch.no_grad()
def _times(model: Model, streams: StreamSet) -> Times:
    """Events and integrals of the streams, or of as many as are worth looking at."""
    calendar = model.calendar
    assert calendar is not None
    streams = _some(streams)
    rows = max(1, _AT_ONCE // (int(streams.lengths.max(initial=0)) + 1))
    own, counts = torch.zeros(calendar.weights.shape, dtype=torch.float64), torch.zeros(model.num_types).double()
    steps = 0 if calendar.covariates is None else len(calendar.covariates.days)
    sums = torch.zeros((steps + 1) * CELLS, model.num_types, dtype=torch.float64)
    for index in batches_by_length(streams.lengths, rows):
        batch = make_batch(streams, index, dtype=model.dtype, device=model.device)
        scored = batch.mask & (batch.times > 0) if model.start_atom is not None else batch.mask
        when, types = batch.starts[:, None].expand_as(batch.times)[scored], batch.types[scored].cpu()
        own.index_add_(0, types, calendar.features(batch.times[scored], when).cpu())
        counts += torch.bincount(types, minlength=model.num_types)
        states, (start, stop, origin) = model.gap_states(batch), gap_edges(batch)
        for some, times, weights in gap_nodes(model, states, start, stop, origin, _RULE):
            rates = model.activate(model.gap_drives(take(states, some), times)).double() * weights[..., None]
            cells = calendar.cells(times, origin[some, None], CELLS)
            sums.index_add_(0, cells.flatten().cpu(), rates.flatten(0, 1).cpu())
    used = sums.any(1).nonzero()[:, 0]
    found = (own, counts, calendar.cell_features(used, CELLS), sums[used])
    return Times(*(tensor.numpy() for tensor in found))


def _some(streams: StreamSet) -> StreamSet:
    """The streams, or a random subset by their ids of a bounded size."""
    share = _MOST / max(streams.num_events + len(streams), 1)
    if share >= 1:
        return streams
    order = np.argsort(streams.id_keys, kind="stable")
    return streams[np.sort(order[: max(1, int(share * len(streams)))])]


def _score(times: Times, weights: Floats) -> float:
    """The log-likelihood up to what does not depend on the weights [K, J]."""
    return float((times.own * weights).sum() - (times.rates * np.exp(times.nodes @ weights.T)).sum())


def _maximise(times: Times, k: int, penalty: float, start: Floats) -> Floats:
    """The best weights [J] of a type, by Newton steps that are halved if need be."""
    own, held, nodes, rates = times.own[k], np.full(len(start), penalty), times.nodes, times.rates[:, k]
    held[0] = _LEVEL

    def gain(w: Floats) -> float:
        with np.errstate(over="ignore"):
            return float(own @ w - rates @ np.exp(nodes @ w) - 0.5 * held @ w**2)

    w, value = start.copy(), gain(start)
    for _ in range(_STEPS):
        mass = rates * np.exp(nodes @ w)
        slope = own - nodes.T @ mass - held * w
        move = np.linalg.solve((nodes.T * mass) @ nodes + np.diag(held), slope)
        promise, share = float(slope @ move), 1.0
        if promise < _TOLERANCE * max(own[0], 1.0):
            break
        while not (new := gain(w + share * move)) > value + 1e-4 * share * promise and share > 1e-6:
            share /= 2
        w, value = w + share * move, new
    return w
