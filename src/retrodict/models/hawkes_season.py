"""Integrals that the fit of a Hawkes process with a calendar needs: of exponentials times the calendar's factors."""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import NDArray

from retrodict.events.stream_set import StreamSet
from retrodict.models.calendar import Calendar
from retrodict.models.quadrature import GaussLegendre, Speeds, cut_at, grade

Floats = NDArray[np.float64]
_RULE = GaussLegendre(8)
_AT_ONCE = 20_000  # gaps


@torch.no_grad()
def seasonal_areas(streams: StreamSet, before: Floats, decays: Floats, calendar: Calendar) -> tuple[Floats, Floats]:
    """∫ g_k over all streams, [K], and what an event of each source and scale causes there in all, [R K, K].

    ``before`` [N, R, K] is what unit jumps of earlier events add just before each event.
    """
    N, R, K = before.shape
    lengths, starts = streams.lengths, streams.starts + streams.axis.since_1970
    gaps = int(N + len(streams))
    first = streams.offsets[:-1] + np.arange(len(streams))
    event = np.ones(gaps, dtype=bool)
    event[first] = False  # a gap that begins with an event
    after = np.zeros((gaps, R, K))
    after[event] = before
    after[event.nonzero()[0], :, streams.event_types] += decays
    owner = np.repeat(np.arange(len(streams)), lengths + 1)
    since = np.zeros(gaps)
    since[event] = streams.event_times - np.repeat(streams.starts, lengths)
    until = np.append(since[1:], 0.0)
    until[first + lengths] = streams.durations
    time, caused, rates = np.zeros(K), np.zeros((R * K, K)), torch.as_tensor(decays)
    parts = calendar.parts(torch.as_tensor(since), torch.as_tensor(until)).numpy()
    order = np.argsort(parts, kind="stable")
    order = order[until[order] > since[order]]
    for some in (order[i : i + _AT_ONCE] for i in range(0, len(order), _AT_ONCE)):
        start, stop, origin = (torch.as_tensor(x[some]) for x in (since, until, starts[owner]))
        state = torch.as_tensor(after[some])
        masses = state.sum(-1) / rates
        breaks = calendar.breaks(start, stop, origin)
        breaks = grade(_RULE, Speeds(rates.expand_as(masses), masses), start, stop, breaks)
        positions, weights = cut_at(_RULE.nodes((), start), start, stop, breaks)
        elapsed = (stop - start)[:, None] * positions
        factors = calendar.factor(start[:, None] + elapsed, origin[:, None]).double()
        factors = factors * ((stop - start)[:, None] * weights)[..., None]
        time += factors.sum((0, 1)).numpy()
        fading = torch.exp(-rates * elapsed[..., None])
        per_gap = torch.einsum("nqr,nqk->nrk", fading, factors)
        caused += torch.einsum("nrj,nrk->rjk", state, per_gap).reshape(R * K, K).numpy()
    return time, caused
