"""At which times intensities are integrated over a piece (between two events of a particle), with which weights.

Quadrature puts its nodes into each piece. The paper's scheme (appendix C.3) draws points once per segment and uses the
same ones for all particles and for both p and q: a paired comparison, unbiased in each integral but noisy.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import torch
from torch import Tensor

from retrodict.models.quadrature import GaussLegendre, split_at
from retrodict.random import split, uniform


class Rule(Protocol):
    """Chooses nodes for pieces."""

    def nodes(self, start: Tensor, stop: Tensor, segment: Segments) -> tuple[Tensor, Tensor]:
        """Times [R, Q] and weights [R, Q] for the integral over (start, stop], [R] each."""
        ...


@dataclass(frozen=True)
class Segments:
    """The segment each row is in: its number [R], its two ends [R], and its stream's key [R].

    ``breaks`` [R, J], where there are any, are times in each row's piece at which intensities jump or bend.
    """

    number: Tensor
    left: Tensor
    right: Tensor
    keys: Tensor
    breaks: Tensor | None = None


@dataclass(frozen=True)
class Quadrature:
    """Gauss-Legendre with ``count`` nodes a piece, or as many between any two of its breaks."""

    count: int = 8

    def nodes(self, start: Tensor, stop: Tensor, segment: Segments) -> tuple[Tensor, Tensor]:
        """The rule's nodes, moved into each piece."""
        positions, weights = GaussLegendre(self.count).nodes((), start)
        length = (stop - start)[:, None]
        if segment.breaks is not None:
            shares = (segment.breaks - start[:, None]) / length.clamp(min=1e-300)
            positions, weights = split_at(positions, weights, shares.clamp(0, 1))
        return start[:, None] + length * positions, length * weights


@dataclass(frozen=True)
class SharedPoints:
    """The paper's points: ``count`` uniform ones in each segment, shared by all particles of a stream."""

    count: int = 1

    def nodes(self, start: Tensor, stop: Tensor, segment: Segments) -> tuple[Tensor, Tensor]:
        """A segment's own points; those outside the piece weigh nothing."""
        number = segment.number[:, None] * self.count + torch.arange(self.count, device=start.device)
        u = uniform(split(segment.keys, _POINTS)[:, None], number)
        length = (segment.right - segment.left)[:, None]
        times = segment.left[:, None] + length * u
        inside = (times > start[:, None]) & (times <= stop[:, None])
        # Outside its piece a row's state says nothing: evaluate where it does.
        return torch.where(inside, times, stop[:, None]), torch.where(inside, length / self.count, 0.0)


_POINTS = 5  # a branch of each stream's random numbers
