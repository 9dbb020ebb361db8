"""The likelihood's terms of a model with a calendar: λ_k(t) = f_k(past) exp(c_k(t)), integrated by quadrature.

Gaps are cut where the model's own integrals need it, and into parts that are short against the calendar's fastest wave.
Gaps with as many parts are integrated together.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from torch import Tensor

from retrodict.events.batch import Batch
from retrodict.models.quadrature import GaussLegendre, Integral, cut_at, grade, is_graded
from retrodict.models.state import take

if TYPE_CHECKING:
    from retrodict.models.base import Model


def calendar_terms(model: Model, batch: Batch, integral: Integral | None = None) -> tuple[Tensor, Tensor]:
    """log λ of each event [B, L] and ∫ Σ_k λ_k over each gap [B, L+1], as ``Model.terms`` gives them."""
    assert model.calendar is not None
    B, L = batch.types.shape
    states = model.gap_states(batch)
    start, stop, origin = gap_edges(batch)
    areas = gap_areas(model, states, start, stop, origin, integral).sum(-1).unflatten(0, (B, L + 1))
    events = torch.arange(B * (L + 1), device=stop.device).view(B, L + 1)[:, :L].flatten()
    types, at = batch.types.flatten(), stop[events]
    drives = model.drive(take(states, events), at).gather(-1, types[:, None])[:, 0]
    season = model.calendar.log_factor(at, origin[events]).gather(-1, types[:, None])[:, 0]
    own = model.log_activate(drives, types) + season.to(drives.dtype)
    return torch.where(batch.mask, own.view(B, L), 0.0), areas


def gap_edges(batch: Batch) -> tuple[Tensor, Tensor, Tensor]:
    """Both ends of every gap since the start of its stream, and that start, [B (L+1)] each."""
    stop = torch.cat([batch.times, batch.durations[:, None]], 1)
    start = torch.cat([batch.begins[:, None], stop[:, :-1]], 1)
    return start.flatten(), stop.flatten(), batch.starts[:, None].expand_as(stop).flatten()


def gap_areas(
    model: Model, states: object, start: Tensor, stop: Tensor, origin: Tensor, integral: Integral | None
) -> Tensor:
    """∫ λ_k over N gaps (start, stop] of streams that began at ``origin``, [N] each, in states [N, ...]: [N, K]."""
    assert model.calendar is not None
    areas = torch.zeros(len(start), model.num_types, dtype=model.dtype, device=model.device)
    for rows, times, weights in gap_nodes(model, states, start, stop, origin, integral):
        rates = model.activate(model.gap_drives(take(states, rows), times))
        rates = rates * model.calendar.factor(times, origin[rows, None]).to(rates.dtype)
        areas = areas.index_put((rows,), (rates * weights[..., None].to(rates.dtype)).sum(1))
    return areas


def gap_nodes(
    model: Model, states: object, start: Tensor, stop: Tensor, origin: Tensor, integral: Integral | None
) -> list[tuple[Tensor, Tensor, Tensor]]:
    """Which of N gaps, [n], at which times and with which weights, [n, Q] each, to integrate together."""
    assert model.calendar is not None
    rule, calendar = integral or GaussLegendre(), model.calendar
    parts = torch.where(stop > start, calendar.parts(start, stop), 0)
    found = []
    with torch.no_grad():
        for count in parts.unique().tolist():
            rows = (parts == count).nonzero()[:, 0]
            if not count or not len(rows):
                continue
            a, b = start[rows], stop[rows]
            breaks = calendar.breaks(a, b, origin[rows])
            speeds = model.speeds(take(states, rows)) if is_graded(rule) else None
            positions, weights = rule.nodes(a.shape, a)
            positions, weights = cut_at((positions, weights), a, b, grade(rule, speeds, a, b, breaks))
            length = (b - a)[:, None]
            found.append((rows, a[:, None] + length * positions, (length * weights).expand(len(rows), -1)))
    return found
