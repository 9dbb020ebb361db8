"""One round of thinning (Lewis and Shedler, 1979) for many rows at once, several candidates a row.

Candidates come from a Poisson process at the bound; each is accepted with probability λ(t) / bound, and the first
accepted one in time order is the next event, its type drawn in proportion to λ_k(t). If none is accepted the row
moves on to its last candidate, or to the end of the stretch on which the bound holds. The law of the process is
kept whatever the stretch and the number of candidates are.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import torch
from torch import Tensor

from retrodict.random import split, uniform

CANDIDATES = 8
_TIMES, _ACCEPTS, _TYPES = range(3)  # branches of each row's random numbers


class Thinned(NamedTuple):
    """For R rows: whether an event was found, its time and type, how far the row has come, λ_k there [R, K]."""

    found: Tensor
    time: Tensor
    type: Tensor
    now: Tensor
    rates: Tensor


def thin(
    rates: Callable[[Tensor], Tensor], bound: Tensor, keys: Tensor, round_: Tensor, now: Tensor, reach: Tensor
) -> Thinned:
    """Look for the next event in (now, reach], [R] each, with total intensity at most ``bound`` [R] there.

    ``rates`` maps times [R, N] to intensities [R, N, K]; ``keys`` and ``round_`` [R] number the random draws.
    """
    counter = round_[:, None] * CANDIDATES + torch.arange(CANDIDATES, device=keys.device)
    waits = -uniform(split(keys, _TIMES)[:, None], counter).log()
    times = now[:, None] + waits.cumsum(1) / bound[:, None]
    inside = times <= reach[:, None]
    at = rates(torch.where(inside, times, now[:, None]))
    accept = uniform(split(keys, _ACCEPTS)[:, None], counter) * bound[:, None] <= at.sum(-1)
    accept &= inside
    found, which = accept.any(1), accept.to(torch.int8).argmax(1)
    rows = torch.arange(len(keys), device=keys.device)
    chosen = at[rows, which]
    types = categorical(chosen, uniform(split(keys, _TYPES), round_))
    time = times[rows, which]
    last = torch.where(inside[:, -1], times[:, -1], reach)
    return Thinned(found, time, types, torch.where(found, time, last), chosen)


def categorical(weights: Tensor, u: Tensor) -> Tensor:
    """A type drawn in proportion to ``weights`` [R, K] by the uniform number u [R]."""
    cumulative = weights.to(torch.float64).cumsum(-1)
    types = (cumulative <= (u * cumulative[:, -1])[:, None]).sum(-1)
    # Rounding may leave u at the very top: the last type that can happen at all is meant.
    highest = weights.shape[-1] - 1 - (weights > 0).to(torch.int8).flip(-1).argmax(-1)
    return torch.minimum(types, highest)
