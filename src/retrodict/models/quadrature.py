"""How integrals of intensities are taken: at which points of each piece between two events, with which weights.

The same rules serve likelihoods, training and the sampler, wherever ``integral=`` is asked for. Gauss-Legendre is the
default: intensities are smooth between events, so a few nodes per piece give the integral almost exactly. What moves
much faster than a piece is long would slip between them: such a piece is cut into panels that widen by a constant
factor after the event, as many as it takes (``count_panels``), with the nodes in each. Monte Carlo is the paper's rule
(appendix C.3), unbiased but noisy; stratified points are unbiased too, and less noisy.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple, Protocol

import numpy as np
import torch
from torch import Tensor

from retrodict.random import split, uniform

_POINTS = 5  # a branch of each stream's random numbers
_MOST_PANELS = 24


class Speeds(NamedTuple):
    """How fast a state moves until the next event: S parts of its intensities that decay on their own, [..., S] each.

    ``rates`` are their decays and ``masses`` bounds of the numbers of events that they add or take away in all time.
    """

    rates: Tensor
    masses: Tensor


@dataclass(frozen=True)
class Pieces:
    """R pieces (start, stop] of a sampler's segments, from one event of a particle to the next.

    ``left`` and ``right`` are the ends of the segment that each piece lies in, ``number`` the segment's number and
    ``keys`` its stream's random key, [R] each. ``breaks`` [R, J], where there are any, are times in each piece at which
    intensities jump or bend.
    """

    start: Tensor
    stop: Tensor
    number: Tensor
    left: Tensor
    right: Tensor
    keys: Tensor
    breaks: Tensor | None = None

    def points(self, fractions: Tensor) -> tuple[Tensor, Tensor]:
        """Fractions [R, Q] of the segments as points of the pieces; those outside their piece weigh nothing."""
        width, length = (self.right - self.left)[:, None], (self.stop - self.start)[:, None]
        times = self.left[:, None] + width * fractions
        inside = (times > self.start[:, None]) & (times <= self.stop[:, None])
        # Outside its piece a particle's state says nothing: its intensity is evaluated at the end instead.
        positions = torch.where(inside, (times - self.start[:, None]) / length, 1.0)
        return positions, torch.where(inside, width / length / fractions.shape[1], 0.0)


class Integral(Protocol):
    """A rule for integrals over the unit interval, applied to every piece after scaling."""

    def nodes(self, shape: Sequence[int], like: Tensor, pieces: Pieces | None = None) -> tuple[Tensor, Tensor]:
        """Positions in (0, 1), [*shape, Q] or [Q], and weights of the same shape or [Q] for pieces of this shape.

        ``pieces`` are given by a sampler, in which a rule with random points draws the same ones for all particles.
        """


@lru_cache
def _legendre(count: int) -> tuple[np.ndarray, np.ndarray]:
    points, weights = np.polynomial.legendre.leggauss(count)
    return (points + 1) / 2, weights / 2


@dataclass(frozen=True)
class GaussLegendre:
    """``count`` nodes in each panel, of which a piece that a model moves through slowly has one.

    In one panel the rule is exact for polynomials of degree below twice ``count``. ``graded=False`` never cuts a piece,
    and a sampler then takes no integral in closed form.
    """

    count: int = 16
    graded: bool = True

    def nodes(self, shape: Sequence[int], like: Tensor, pieces: Pieces | None = None) -> tuple[Tensor, Tensor]:
        """The nodes of one panel: positions [Q], weights [Q]."""
        points, weights = _legendre(self.count)
        return (
            torch.as_tensor(points, dtype=like.dtype, device=like.device),
            torch.as_tensor(weights, dtype=like.dtype, device=like.device),
        )

    @property
    def error(self) -> float:
        """About the error of an integral that is aimed at, in events a piece: 1e-3 by 4 nodes, 1e-5 by 8."""
        return max(10.0 ** -(1 + self.count / 2), 1e-7)

    @property
    def reach(self) -> float:
        """The most that a rate of decay times the length of the first panel may be."""
        return 2.0 * self.count

    @property
    def ratio(self) -> float:
        """By what factor panels widen: within one, whatever was too fast for the panel before has decayed."""
        return max(0.75 * self.count, 2.0)


@dataclass(frozen=True)
class MonteCarlo:
    """``count`` uniform points: an unbiased estimate.

    In likelihoods there are fresh points in every piece, from ``generator`` or torch's own. A sampler draws points once
    per segment, by its seed, and uses them for all particles and for both p and q: a paired comparison, as in the
    paper (a ``generator`` makes them fresh in every piece there too).
    """

    count: int = 1
    generator: torch.Generator | None = None

    def nodes(self, shape: Sequence[int], like: Tensor, pieces: Pieces | None = None) -> tuple[Tensor, Tensor]:
        """Positions [*shape, Q]; weights [Q], or [*shape, Q] where a segment's points may lie outside a piece."""
        if pieces is not None and self.generator is None:
            number = pieces.number[:, None] * self.count + torch.arange(self.count, device=like.device)
            return pieces.points(self._spread(uniform(split(pieces.keys, _POINTS)[:, None], number)))
        draw_on = like.device if self.generator is None else self.generator.device
        points = torch.rand(*shape, self.count, dtype=like.dtype, device=draw_on, generator=self.generator)
        return self._spread(points.to(like.device)), like.new_full((self.count,), 1 / self.count)

    def _spread(self, points: Tensor) -> Tensor:
        """Where independent uniform points [..., Q] are put."""
        return points


@dataclass(frozen=True)
class Stratified(MonteCarlo):
    """A uniform point in each of ``count`` equal parts: an unbiased estimate with less noise.

    Training needs random points: a proposal knows where a piece will end, and could learn to be small at fixed nodes.
    """

    count: int = 4

    def _spread(self, points: Tensor) -> Tensor:
        return (torch.arange(self.count, dtype=points.dtype, device=points.device) + points) / self.count


@dataclass(frozen=True)
class Nodes:
    """What another rule chose, to be used again: positions [Q], or [B, ..., Q] for the pieces of B streams."""

    positions: Tensor
    weights: Tensor

    def nodes(self, shape: Sequence[int], like: Tensor, pieces: Pieces | None = None) -> tuple[Tensor, Tensor]:
        """These, which must be for pieces of this shape."""
        assert self.positions.dim() == 1 or self.positions.shape[:-1] == tuple(shape)
        return self.positions, self.weights

    def rows(self, which: slice) -> Nodes:
        """Those of some of the streams."""
        positions = self.positions if self.positions.dim() == 1 else self.positions[which]
        return Nodes(positions, self.weights if self.weights.dim() == 1 else self.weights[which])


def is_graded(integral: Integral) -> bool:
    """Whether it adapts to how fast intensities move; then closed forms take its place where there are any."""
    return isinstance(integral, GaussLegendre) and integral.graded


@torch.no_grad()
def count_panels(integral: Integral, speeds: Speeds | None, lengths: Tensor) -> Tensor | None:
    """How many panels pieces of these lengths [...] after an event need, [...]; None where one is enough for all.

    What decays too fast for the first panel is left out as long as all of it makes up less than the error aimed at.
    """
    if speeds is None or not is_graded(integral):
        return None
    assert isinstance(integral, GaussLegendre)
    counts, limit = torch.ones_like(lengths, dtype=torch.int64), integral.reach / lengths.clamp(min=1e-300)
    for _ in range(_MOST_PANELS - 1):
        beyond = torch.where(speeds.rates > limit[..., None], speeds.masses, 0.0).sum(-1)
        more = beyond > integral.error
        if not bool(more.any()):
            break
        counts, limit = counts + more, limit * integral.ratio
    return counts if bool((counts > 1).any()) else None


def panel_edges(integral: Integral, counts: Tensor) -> Tensor:
    """Where the panels of pieces with these counts [...] end, but for the last, as fractions [..., J] in order.

    Pieces with fewer panels than others have edges at their start, for panels without length.
    """
    assert isinstance(integral, GaussLegendre)
    powers = torch.arange(int(counts.max()) - 1, 0, -1, device=counts.device)  # none where there is one panel
    shares = integral.ratio ** -powers.double()
    return torch.where(powers < counts[..., None], shares, 0.0)


def grade(
    integral: Integral, speeds: Speeds | None, start: Tensor, stop: Tensor, breaks: Tensor | None
) -> Tensor | None:
    """The breaks [..., J] of pieces, and the edges of panels that widen from ``start`` [...] on towards ``stop`` [...].

    What moves fast before a later event has a ``stop`` before its ``start``.
    """
    counts = count_panels(integral, speeds, (stop - start).abs())
    if counts is None:
        return breaks
    edges = start[..., None] + (stop - start)[..., None] * panel_edges(integral, counts)
    return (edges if breaks is None else torch.cat([breaks, edges], -1)).sort(-1).values


def cut_at(nodes: tuple[Tensor, Tensor], start: Tensor, stop: Tensor, breaks: Tensor | None) -> tuple[Tensor, Tensor]:
    """A rule's nodes for pieces (start, stop] [...], used on each part of a piece between its ``breaks`` [..., J].

    Positions and weights [Q] become [..., (J+1) Q] each: no rule is accurate across a jump. Random points, [..., Q],
    need no cuts.
    """
    positions, weights = nodes
    if breaks is None or positions.dim() > 1:
        return nodes
    shares = ((breaks - start[..., None]) / (stop - start)[..., None].clamp(min=1e-300)).clamp(0, 1)
    first = torch.zeros_like(shares[..., :1])
    edges = torch.cat([first, shares, first + 1], -1)[..., None]
    left, length = edges[..., :-1, :], edges.diff(dim=-2)
    cut = (left + length * positions.double()).flatten(-2), (length * weights.double()).flatten(-2)
    return cut[0].to(positions.dtype), cut[1].to(weights.dtype)


def integrate_gaps(
    integral: Integral,
    speeds: Speeds | None,
    gaps: Tensor,
    nodes: tuple[Tensor, Tensor],
    areas: Callable[[Tensor | slice, Tensor, Tensor], Tensor],
) -> Tensor:
    """Integrals over N gaps [N] by a rule's ``nodes``: positions [Q] or [N, Q], and weights.

    Gaps that need as many panels are taken together: ``areas`` is given their rows, positions and weights.
    """
    counts = count_panels(integral, speeds, gaps)
    if counts is None:
        return areas(slice(None), *nodes)
    result, start = torch.zeros_like(gaps), gaps.new_zeros((), dtype=torch.float64)
    for count in counts.unique():
        rows, edges = (counts == count).nonzero()[:, 0], panel_edges(integral, count)
        cut = cut_at(nodes, start, start + 1, edges if count > 1 else None)
        result = result.index_put((rows,), areas(rows, *cut))
    return result


def place_nodes(integral: Integral, pieces: Pieces) -> tuple[Tensor, Tensor]:
    """Times [R, Q] and weights [R, Q] of the integrals over a sampler's pieces."""
    start, stop = pieces.start, pieces.stop
    positions, weights = cut_at(integral.nodes(start.shape, start, pieces), start, stop, pieces.breaks)
    length = (stop - start)[:, None]
    return start[:, None] + length * positions, length * weights
