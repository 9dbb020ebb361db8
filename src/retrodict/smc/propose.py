"""Draw the next missing event of each row from q, by thinning or by inversion on a grid (line 32 of Algorithm 1).

Both return the same ``Step``. Thinning draws from λ^q itself. Inversion takes a piecewise-linear interpolant of λ^q on
a small grid over the rest of the segment as the proposal: no bound, no rejection, and its integral is exact.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple, Protocol

import torch
from torch import Tensor

from retrodict.models.thinning import CANDIDATES, categorical, thin
from retrodict.random import split, uniform

_TIMES, _ACCEPTS, _TYPES = range(3)


class Ask(NamedTuple):
    """R rows that stand at ``now`` in segments that end at ``right``, [R] each, and want their next event.

    ``rates`` maps times [R, N] to λ^q_k [R, N, K], ``bound`` intervals [R], [R] to bounds [R, K]; ``keys`` and
    ``rounds`` [R] number the random draws; ``window`` [R] is how far a bound should reach.
    """

    rates: Callable[[Tensor], Tensor]
    bound: Callable[[Tensor, Tensor], Tensor]
    keys: Tensor
    rounds: Tensor
    now: Tensor
    right: Tensor
    window: Tensor


class Step(NamedTuple):
    """For R rows after one round.

    ``found`` an event at ``time`` of ``type``; else the row has come to ``now`` (it is closed when that is the end of
    its segment). ``log_rate`` and ``area``, where not None, are log λ^q of the event and ∫ λ^q since the row's last
    event as the sampler itself knows them; else they follow from λ^q.
    """

    found: Tensor
    time: Tensor
    type: Tensor
    now: Tensor
    window: Tensor
    log_rate: Tensor | None = None
    area: Tensor | None = None


class Sampler(Protocol):
    """Draws the next event of each row."""

    def step(self, ask: Ask) -> Step:
        """One round for R rows."""
        ...


@dataclass(frozen=True)
class Thinning:
    """The reference: exact draws from λ^q, with the bound taken over adaptive sub-intervals of the segment."""

    def step(self, ask: Ask) -> Step:
        """Thin candidates over the next window, which should hold about half of them."""
        reach = torch.minimum(ask.now + ask.window, ask.right)
        most = ask.bound(ask.now, reach).sum(-1).to(torch.float64)
        found, time, types, moved, _ = thin(ask.rates, most, ask.keys, ask.rounds, ask.now, reach)
        return Step(found, time, types, moved, 0.5 * CANDIDATES / most)


@dataclass(frozen=True)
class Inversion:
    """Draws from the interpolant of λ^q on a grid of ``points`` over the rest of the segment."""

    points: int = 9

    def step(self, ask: Ask) -> Step:
        """Either the next event or the end of the segment, in one round."""
        rates, _, keys, rounds, now, right, window = ask
        rows = torch.arange(len(now), device=now.device)
        length = right - now
        grid = torch.linspace(0, 1, self.points, dtype=torch.float64, device=now.device)
        values = rates(now[:, None] + length[:, None] * grid).to(torch.float64)
        total = values.sum(-1)
        width = length / (self.points - 1)
        cells = 0.5 * (total[:, 1:] + total[:, :-1]) * width[:, None]
        upto = torch.cat([torch.zeros_like(length)[:, None], cells.cumsum(1)], 1)
        wanted = -uniform(split(keys, _TIMES), rounds).log()
        found = wanted <= upto[:, -1]
        cell = (torch.searchsorted(upto, wanted[:, None].contiguous(), right=True)[:, 0] - 1).clamp(0, self.points - 2)
        inside = _solve(total[rows, cell], total[rows, cell + 1], width, wanted - upto[rows, cell])
        left, next_ = values[rows, cell], values[rows, cell + 1]
        here = left + (next_ - left) * inside[:, None]
        types = categorical(here, uniform(split(keys, _TYPES), rounds))
        time = torch.minimum(now + (cell + inside) * width, right)
        log_rate = here[rows, types].log()
        area = torch.where(found, wanted, upto[:, -1])
        return Step(found, time, types, torch.where(found, time, right), window, log_rate, area)


def _solve(left: Tensor, right: Tensor, width: Tensor, area: Tensor) -> Tensor:
    """The fraction s of a cell whose linear ramp from ``left`` to ``right`` has this area up to s, [R]."""
    slope = right - left
    share = area / width.clamp(min=1e-300)
    # left s + slope s²/2 = share, written so that neither a flat nor a falling ramp cancels.
    root = (left.square() + 2 * slope * share).clamp(min=0).sqrt()
    return (2 * share / (left + root).clamp(min=1e-300)).clamp(0, 1)


SAMPLERS: dict[str, Sampler] = {"thinning": Thinning(), "inversion": Inversion()}
