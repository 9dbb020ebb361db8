"""What a smoother is told of the mechanism: which share of the events may be missing in each segment, by type."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from retrodict.events.batch import Batch
from retrodict.missingness.base import Context, Missingness
from retrodict.models.quadrature import GaussLegendre
from retrodict.proposals.base import gap_ends

_LEAST = 0.02  # a rate below which its logarithm says no more
_NODES = 3  # between two breaks
_FACTS = ("start", "stream", "end")  # what a context says of a stream, the same in all of its segments


def rate_inputs(rates: Tensor) -> Tensor:
    """Rates [..., R] as a network takes them, with the logarithms of what goes missing and of what is seen, [..., 3R].

    An event that the future asks for, though few go missing, must be proposed at a rate of order 1 / ρ.
    """
    return torch.cat([rates, *((x.clamp(0, 1) + _LEAST).log() / math.log(_LEAST) for x in (rates, 1 - rates))], -1)


@torch.no_grad()
def told_rates(mechanism: Missingness, observed: Batch) -> Tensor:
    """The mean of ρ_k over each segment of observed streams, then ρ_k at its right end, [B, S, 2K] float64.

    A mechanism that looks at preceding events is asked as if there were none but the observed ones.
    """
    left, right = gap_ends(observed)
    context = mechanism.contexts(observed)
    at_end = mechanism.rates(right, context)
    start, stop = _stretches(mechanism, context, left, right)
    segment = torch.searchsorted(right, (start + stop) / 2).clamp(max=right.shape[1] - 1)
    positions, weights = GaussLegendre(_NODES).nodes((), start)
    times = start[..., None] + (stop - start)[..., None] * positions
    rates = mechanism.rates(times, _in_segments(context, segment).over(times))
    areas = (rates * weights[:, None]).sum(-2) * (stop - start)[..., None]
    sums = torch.zeros_like(at_end).scatter_add_(1, segment[..., None].expand_as(areas), areas)
    length = (right - left)[..., None]
    mean = torch.where(length > 0, sums / length.clamp(min=1e-300), at_end).clamp(0, 1)
    return torch.cat([mean, at_end], -1)


def _stretches(mechanism: Missingness, context: Context, left: Tensor, right: Tensor) -> tuple[Tensor, Tensor]:
    """Both ends of the stretches of each stream without an observed event or a break inside, in order, [B, E] each."""
    if context.history:
        cuts = mechanism.breaks(left, right, context)
    else:
        whole = context._replace(**{name: getattr(context, name)[:, 0] for name in _FACTS})
        cuts = mechanism.breaks(left[:, 0], right[:, -1], whole)
    edges = right if cuts is None else torch.cat([right, cuts.flatten(1)], 1).sort(1).values
    return torch.cat([left[:, :1], edges[:, :-1]], 1), edges


def _in_segments(context: Context, segment: Tensor) -> Context:
    """The context [B, S] of each of the segments [B, E]."""
    rows = torch.arange(len(segment), device=segment.device)[:, None]
    facts = {name: getattr(context, name)[:, :1].expand(segment.shape) for name in _FACTS}
    return context._replace(history=tuple(field[rows, segment] for field in context.history), **facts)
