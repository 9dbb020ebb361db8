"""Missing rates as compiled engines take them: cubics in time, piece by piece, and what the last triggers change.

An engine need not know mechanisms, nor they engines: a mechanism that says ``depends_on_time_alone`` is asked for its
breaks and rates over each stream, and pieces are halved until the cubics through its rates are right to about 1e-7.
"""

from __future__ import annotations

import math
from typing import NamedTuple, Protocol

import torch
from torch import Tensor

from retrodict.events.batch import Batch
from retrodict.missingness.after import After
from retrodict.missingness.base import Context, Either, Missingness, between
from retrodict.missingness.by_type import ByType

_TOLERANCE = 1e-7
_LEAST = 1e-13  # share of a stream below which a piece is not halved: what is steeper than that is a jump
# Inside a piece alone, as rates may jump at its ends: Chebyshev's points, and where the cubic through them is checked.
_POINTS = (1 - torch.cos(torch.pi * (torch.arange(4, dtype=torch.float64) + 0.5) / 4)) / 2
_CHECKS = torch.tensor([0.001, 0.15, 0.5, 0.85, 0.999], dtype=torch.float64)


class Recent(NamedTuple):
    """From ``After``: rates ``soon`` [K] for the time ``reach`` after a ``trigger`` [K], and ``late`` [K] otherwise."""

    trigger: Tensor
    reach: float
    soon: Tensor
    late: Tensor


class Season(Protocol):
    """What multiplies intensities at all times, whatever happened before (a model's calendar)."""

    @property
    def stretch(self) -> float:
        """Over which length of time the nodes of one panel follow it."""

    def factor(self, t: Tensor, start: Tensor) -> Tensor:
        """The factor of each type at t [...] since ``start`` [...], [..., K]."""

    def bound(self, start: Tensor, stop: Tensor, origin: Tensor) -> Tensor:
        """An upper bound of it over [start, stop] since ``origin``, [...] each, [..., K]."""

    def jumps(self, start: Tensor, stop: Tensor, origin: Tensor) -> list[Tensor]:
        """Times in [start, stop] since ``origin``, [...] each, at which it jumps, in lists of [..., J]."""


class Pieces(NamedTuple):
    """ρ of B streams: 1 - (1 - what depends on time) Π (1 - what depends on the last trigger).

    ``breaks`` [B, P+1] float64, since the start of the stream: piece p lies between breaks p and p + 1; the first is 0,
    the last is the stream's end, which also fills up streams with fewer pieces. ``rates`` [B, P, 4, K] float64: what
    depends on time, as the control points of a cubic over each piece (Bernstein's form: it stays between the smallest
    and the largest of them), in [0, 1]. ``bends`` [B, P] bool: whether rates jump or bend where a piece begins, so that
    integrals are cut there; elsewhere pieces join smoothly. ``factors`` [B, P, 4, K] float64: the same of what
    multiplies intensities, where there is a season.
    """

    breaks: Tensor
    rates: Tensor
    after: tuple[Recent, ...]
    bends: Tensor
    factors: Tensor | None = None

    def at(self, t: Tensor) -> Tensor:
        """What depends on time, at times t [B, N]: [B, N, K]; of two pieces that meet at t, the right one's."""
        last = (self.breaks[:, 1:] > self.breaks[:, :-1]).sum(1, keepdim=True) - 1
        piece = torch.searchsorted(self.breaks.contiguous(), t.contiguous(), right=True) - 1
        piece = torch.minimum(piece, last).clamp(min=0)
        left, right = self.breaks.gather(1, piece), self.breaks.gather(1, piece + 1)
        share = ((t - left) / (right - left).clamp(min=1e-300)).clamp(0, 1)
        own = self.rates[torch.arange(len(t), device=t.device)[:, None], piece]
        return torch.einsum("bnj,bnjk->bnk", _bernstein(share), own)


def pieces_of(mechanism: Missingness, batch: Batch, season: Season | None = None) -> Pieces | None:
    """The missing rates of observed streams in pieces; None where they depend on more than time and last triggers.

    A season's factors are cut into the same pieces, to about 1e-6 of a bound of each type's.
    """
    timed = of_time(mechanism)
    if timed is None:
        return None
    after = tuple(
        Recent(part.is_trigger, part.reach, part.soon, part.late)
        for part in _parts(mechanism)
        if type(part) is After and part.is_trigger is not None
    )
    device = batch.durations.device
    if season is None:
        breaks, rates, bends = (x.to(device) for x in _cut(timed, batch))
        return Pieces(breaks, rates, after, bends)
    both = _Seasonal(timed, season, batch)
    breaks, rates, bends = (x.to(device) for x in _cut(both, batch))
    K = rates.shape[-1] // 2
    return Pieces(breaks, rates[..., :K].contiguous(), after, bends, rates[..., K:] * both.most.to(device))


class _Seasonal(Missingness):
    """Missing rates, and a season's factors as shares of their largest values, [..., 2 K], to be cut together."""

    _SHARE = 10.0  # how much less exact factors are than rates, which decide what is possible at all

    def __init__(self, timed: Missingness, season: Season, batch: Batch) -> None:
        self.timed, self.season = timed, season
        starts, ends = batch.starts.cpu().double(), batch.durations.cpu().double()
        found = season.bound(torch.zeros_like(ends), ends, starts).detach().cpu()
        self.most = self._SHARE * (found.amax(0) if len(found) else torch.ones(1, dtype=torch.float64))

    def rates(self, t: Tensor, context: Context | None = None) -> Tensor:
        """Both."""
        assert context is not None
        factors = self.season.factor(t, context.start).detach().cpu() / self.most
        return torch.cat([self.timed.rates(t, context).to(torch.float64).expand_as(factors), factors], -1)

    def breaks(self, start: Tensor, stop: Tensor, context: Context | None = None) -> Tensor | None:
        """Where rates bend or the season jumps, and as often as integrals have to be cut."""
        assert context is not None
        own, length = self.timed.breaks(start, stop, context), float((stop - start).max()) if len(start) else 0.0
        number = torch.arange(1, max(1, math.ceil(length / self.season.stretch)), dtype=torch.float64)
        found = [start[..., None] + number * self.season.stretch, *self.season.jumps(start, stop, context.start)]
        return between(torch.cat(found if own is None else [own, *found], -1), start, stop)


@torch.no_grad()
def rates_at(mechanism: Missingness, batch: Batch, t: Tensor) -> Tensor:
    """What depends on time, at times t [B, N], as the mechanism itself says: [B, N, K] float64.

    For observed events and the start, which may lie on a jump; of a mechanism that has pieces.
    """
    timed = of_time(mechanism)
    assert timed is not None
    context = Context(batch.starts, batch.ids, None, batch.durations)
    return timed.rates(t, context.over(t)).to(torch.float64)


def of_time(mechanism: Missingness) -> Missingness | None:
    """The part of a bound mechanism that depends on time alone; None where more than that and ``After`` is in it."""
    rest = [part for part in _parts(mechanism) if type(part) is not After]
    if not all(part.depends_on_time_alone for part in rest):
        return None
    if rest:
        return rest[0] if len(rest) == 1 else Either(*rest)
    return ByType([0.0] * len(next(part.soon for part in _parts(mechanism) if isinstance(part, After))))


def _parts(mechanism: Missingness) -> tuple[Missingness, ...]:
    return mechanism.parts if isinstance(mechanism, Either) else (mechanism,)


@torch.no_grad()
def _cut(timed: Missingness, batch: Batch) -> tuple[Tensor, Tensor, Tensor]:
    """Breaks [B, P+1], control points [B, P, 4, K], and which breaks are the mechanism's own [B, P]."""
    starts, ids, ends = batch.starts.cpu().double(), batch.ids.cpu(), batch.durations.cpu().double()
    begins = batch.begins.cpu().double()  # what lies before is not asked for
    whole = Context(starts, ids, None, ends)
    if timed.is_constant:
        return _one_piece(timed, whole, ends)
    inner = timed.breaks(torch.zeros_like(ends), ends, whole)
    sides = [torch.zeros_like(ends)[:, None], ends[:, None]]
    edges = torch.cat(sides if inner is None else [sides[0], inner, sides[1]], 1)
    real = edges.diff(dim=1) > 0
    real[:, 0] = True
    stream, number = real.nonzero(as_tuple=True)
    left, right = edges[stream, number], edges[stream, number + 1]
    own = torch.ones_like(stream, dtype=torch.bool)
    done = []
    while True:
        control, error = _fit(timed, left, right, Context(starts[stream], ids[stream], None, ends[stream]))
        good = (error <= _TOLERANCE) | (right - left <= _LEAST * ends[stream]) | (right <= begins[stream])
        done.append([x[good] for x in (stream, left, right, control, own)])
        if bool(good.all()):
            break
        stream, left, right, own = (x[~good] for x in (stream, left, right, own))
        middle = (left + right) / 2
        stream, left, right = stream.repeat(2), torch.cat([left, middle]), torch.cat([middle, right])
        own = torch.cat([own, torch.zeros_like(own)])
    stream, left, right, control, own = (torch.cat(field) for field in zip(*done, strict=True))
    # Stable by stream after stable by time: pieces in order within each stream.
    order = left.argsort(stable=True)
    order = order[stream[order].argsort(stable=True)]
    counts = torch.bincount(stream, minlength=len(ends))
    place = torch.arange(len(order)) - torch.repeat_interleave(counts.cumsum(0) - counts, counts)
    at, most = (stream[order], place), int(counts.max()) if len(counts) else 1
    breaks = ends[:, None].repeat(1, most + 1)
    breaks[at] = left[order]
    rates = torch.zeros(len(ends), most, 4, control.shape[-1], dtype=torch.float64).index_put(at, control[order])
    bends = torch.zeros(len(ends), most, dtype=torch.bool).index_put(at, own[order])
    return breaks, rates, bends


def _one_piece(timed: Missingness, whole: Context, ends: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """The same where rates never change."""
    rates = timed.rates(torch.zeros_like(ends), whole).to(torch.float64)
    breaks = torch.stack([torch.zeros_like(ends), ends], 1)
    return breaks, rates[:, None, None].repeat(1, 1, 4, 1), torch.ones(len(ends), 1, dtype=torch.bool)


def _fit(timed: Missingness, left: Tensor, right: Tensor, context: Context) -> tuple[Tensor, Tensor]:
    """Control points [N, 4, K] of the cubics over pieces, and how far off these are where they are checked, [N]."""
    shares = torch.cat([_POINTS, _CHECKS])
    times = left[:, None] + (right - left)[:, None] * shares
    values = timed.rates(times, context.over(times)).to(torch.float64)
    inside, checked = values[:, : len(_POINTS)], values[:, len(_POINTS) :]
    control = torch.linalg.solve(_bernstein(_POINTS), inside).clamp(0, 1)
    # Exactly constant where the rates are, as for types that never go missing.
    flat = (inside == inside[:, :1]).all(1, keepdim=True)
    control = torch.where(flat, inside[:, :1], control)
    return control, (_bernstein(_CHECKS) @ control - checked).abs().amax((1, 2))


def _bernstein(share: Tensor) -> Tensor:
    """Bernstein's four cubics at shares [...] of a piece, [..., 4]."""
    other = 1 - share
    return torch.stack([other**3, 3 * share * other**2, 3 * share**2 * other, share**3], -1)
