"""Draw the next missing event of each row from q, by thinning or by inversion on a grid (lines 29-39 of Algorithm 1).

Both return what was ``Drawn``. Thinning draws from λ^q itself. Inversion takes a piecewise-linear interpolant of λ^q on
a small grid over the rest of the segment as the proposal: no bound, no rejection, and its integral is exact. What moves
fast after an event gets a grid in each panel (``models/quadrature.py``), or the interpolant would be far too high.
Where missing rates vary in time, the grid has a point at each of their breaks, and the interpolant is kept above zero
wherever something can go missing.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple, Protocol

import torch
from torch import Tensor

from retrodict.models.quadrature import GaussLegendre, Speeds, count_panels, panel_edges
from retrodict.models.thinning import CANDIDATES, categorical, thin
from retrodict.random import split, uniform

_TIMES, _ACCEPTS, _TYPES = range(3)
_INSET = 1e-3  # how far inside a cell, as a share of it, rates are looked at
_LEAST = 1e-2  # the interpolant is at least this share of the model's intensity times the bound of ρ


class Varying(NamedTuple):
    """How missing rates vary: their ``breaks`` between now and right, [R, J] or None, and a ``floor`` of λ^q.

    ``floor`` maps times [R, N] and the two ends of the cells they are in, [R, N] each, to λ^p_k times a bound of ρ_k
    over the cell, [R, N, K].
    """

    breaks: Callable[[], Tensor | None]
    floor: Callable[[Tensor, Tensor, Tensor], Tensor]


class Ask(NamedTuple):
    """R rows that want their next event."""

    rates: Callable[[Tensor], Tensor]  # from times [R, N] to λ^q_k [R, N, K]
    bound: Callable[[Tensor, Tensor], Tensor]  # from both ends of intervals, [R] each, to bounds of λ^q_k there, [R, K]
    keys: Tensor  # [R] int64: the rows' random keys
    rounds: Tensor  # [R] int64: how often each row has asked before, which numbers its random draws
    now: Tensor  # [R] float64: where each row stands
    right: Tensor  # [R] float64: where its segment ends
    window: Tensor  # [R] float64: how far a bound should reach
    varying: Varying | None = None  # how missing rates vary in time; None where they do not
    speeds: Speeds | None = None  # how fast intensities move since the row's last event, where that is known


class Drawn(NamedTuple):
    """What R rows drew in one round: their next event, or how far they have come without one."""

    found: Tensor  # [R]: whether there is an event
    time: Tensor  # [R] float64: when
    type: Tensor  # [R] int64: of which type
    now: Tensor  # [R] float64: how far the row has come; at the end of its segment it is closed
    window: Tensor  # [R] float64: how far the next bound should reach
    log_rate: Tensor | None = None  # [R]: log λ^q of the event where the sampler itself knows it, or None
    area: Tensor | None = None  # [R]: ∫ λ^q since the row's last event where the sampler itself knows it, or None

    def some(self, which: Tensor) -> Drawn:
        """What some of the rows drew."""
        known = (None if field is None else field[which] for field in (self.log_rate, self.area))
        return Drawn(*(field[which] for field in self[:5]), *known)


class Sampler(Protocol):
    """Draws the next event of each row."""

    def step(self, ask: Ask) -> Drawn:
        """One round for R rows."""


@dataclass(frozen=True)
class Thinning:
    """The reference: exact draws from λ^q, with the bound taken over adaptive sub-intervals of the segment."""

    def step(self, ask: Ask) -> Drawn:
        """Thin candidates over the next window, which should hold about half of them."""
        reach = torch.minimum(ask.now + ask.window, ask.right)
        most = ask.bound(ask.now, reach).sum(-1).to(torch.float64)
        found, time, types, moved, _ = thin(ask.rates, most, ask.keys, ask.rounds, ask.now, reach)
        return Drawn(found, time, types, moved, 0.5 * CANDIDATES / most)


@dataclass(frozen=True)
class Inversion:
    """Draws from the interpolant of λ^q on a grid of ``points`` over the rest of the segment."""

    points: int = 9

    def step(self, ask: Ask) -> Drawn:
        """Either the next event or the end of the segment, in one round."""
        keys, rounds, now, right = ask.keys, ask.rounds, ask.now, ask.right
        rows = torch.arange(len(now), device=now.device)
        edges, lefts, rights = self._cells(ask)
        widths, total = edges.diff(dim=1), (lefts.sum(-1), rights.sum(-1))
        cells = 0.5 * (total[0] + total[1]) * widths
        upto = torch.cat([torch.zeros_like(now)[:, None], cells.cumsum(1)], 1)
        wanted = -uniform(split(keys, _TIMES), rounds).log()
        found = wanted <= upto[:, -1]
        cell = torch.searchsorted(upto, wanted[:, None].contiguous(), right=True)[:, 0] - 1
        at = (rows, cell.clamp(0, cells.shape[1] - 1))
        inside = _solve(total[0][at], total[1][at], widths[at], wanted - upto[at])
        here = lefts[at] + (rights[at] - lefts[at]) * inside[:, None]
        types = categorical(here, uniform(split(keys, _TYPES), rounds))
        time = torch.minimum(edges[at] + inside * widths[at], right)
        log_rate = here[rows, types].log()
        area = torch.where(found, wanted, upto[:, -1])
        return Drawn(found, time, types, torch.where(found, time, right), ask.window, log_rate, area)

    def _cells(self, ask: Ask) -> tuple[Tensor, Tensor, Tensor]:
        """Edges [R, C+1] of the interpolant's cells, and its values at both ends of each, [R, C, K]."""
        edges = ask.now[:, None] + (ask.right - ask.now)[:, None] * self._grid(ask)
        if ask.varying is None:
            values = ask.rates(edges).to(torch.float64)
            return edges, values[:, :-1], values[:, 1:]
        breaks = ask.varying.breaks()
        if breaks is not None:
            edges = torch.cat([edges, breaks], 1).sort(1).values
        ends = torch.stack([edges[:, :-1], edges[:, 1:]], 2)
        # Just inside the cell: at its very ends rates may jump.
        times = (ends + (ends.flip(2) - ends) * _INSET).flatten(1)
        floor = ask.varying.floor(times, *(side.repeat_interleave(2, 1) for side in ends.unbind(2)))
        values = torch.maximum(ask.rates(times), _LEAST * floor).to(torch.float64).unflatten(1, (-1, 2))
        return edges, values[:, :, 0], values[:, :, 1]

    def _grid(self, ask: Ask) -> Tensor:
        """Where the points lie, as fractions of what is left of the segment: [N], or [R, N] where there are panels."""
        grid = torch.linspace(0, 1, self.points, dtype=torch.float64, device=ask.now.device)
        rule = GaussLegendre(max(self.points - 1, 1))
        counts = count_panels(rule, ask.speeds, ask.right - ask.now)
        if counts is None:
            return grid
        inner = panel_edges(rule, counts)
        left = torch.cat([torch.zeros_like(inner[:, :1]), inner], 1)[..., None]
        right = torch.cat([inner, torch.ones_like(inner[:, :1])], 1)[..., None]
        return (left + (right - left) * torch.sin(grid * torch.pi / 2).square()).flatten(1)


def _solve(left: Tensor, right: Tensor, width: Tensor, area: Tensor) -> Tensor:
    """The fraction s of a cell whose linear ramp from ``left`` to ``right`` has this area up to s, [R]."""
    slope = right - left
    share = area / width.clamp(min=1e-300)
    # left s + slope s²/2 = share, written so that neither a flat nor a falling ramp cancels.
    root = (left.square() + 2 * slope * share).clamp(min=0).sqrt()
    return (2 * share / (left + root).clamp(min=1e-300)).clamp(0, 1)


SAMPLERS: dict[str, Sampler] = {"thinning": Thinning(), "inversion": Inversion()}
