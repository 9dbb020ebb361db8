"""How integrals of intensities over an interval are taken: at which points, with which weights.

Gauss-Legendre is the default: intensities are smooth between events, so a few nodes per inter-event piece
give the integral almost exactly. The Monte Carlo rule is the paper's (appendix C.3), unbiased but noisy; stratified
points are unbiased too, and less noisy.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Protocol

import numpy as np
import torch
from torch import Tensor


class Integral(Protocol):
    """A rule for integrals over the unit interval, applied to every piece after scaling."""

    def nodes(self, shape: Sequence[int], like: Tensor) -> tuple[Tensor, Tensor]:
        """Positions in (0, 1), shape [*shape, Q] or [Q], and weights [Q], or of each piece, that add up to 1."""
        ...


@lru_cache
def _legendre(count: int) -> tuple[np.ndarray, np.ndarray]:
    points, weights = np.polynomial.legendre.leggauss(count)
    return (points + 1) / 2, weights / 2


@dataclass(frozen=True)
class GaussLegendre:
    """Exact for polynomials of degree below twice ``count``."""

    count: int = 16

    def nodes(self, shape: Sequence[int], like: Tensor) -> tuple[Tensor, Tensor]:
        """The same nodes for every piece: positions [Q], weights [Q]."""
        points, weights = _legendre(self.count)
        return (
            torch.as_tensor(points, dtype=like.dtype, device=like.device),
            torch.as_tensor(weights, dtype=like.dtype, device=like.device),
        )


def split_at(positions: Tensor, weights: Tensor, breaks: Tensor) -> tuple[Tensor, Tensor]:
    """A rule on the unit interval, used on each part of it between ``breaks`` [..., J] in [0, 1], in order.

    Positions and weights [Q] become [..., (J+1) Q] each. No rule is accurate across a jump.
    """
    first = torch.zeros_like(breaks[..., :1])
    edges = torch.cat([first, breaks, first + 1], -1)[..., None]
    left, length = edges[..., :-1, :], edges.diff(dim=-2)
    return (left + length * positions).flatten(-2), (length * weights).flatten(-2)


@dataclass(frozen=True)
class Nodes:
    """What another rule chose, to be used again: positions [Q], or [B, ..., Q] for the pieces of B streams."""

    positions: Tensor
    weights: Tensor

    def nodes(self, shape: Sequence[int], like: Tensor) -> tuple[Tensor, Tensor]:
        """These, which must be of so many pieces."""
        assert self.positions.dim() == 1 or self.positions.shape[:-1] == tuple(shape)
        return self.positions, self.weights

    def rows(self, which: slice) -> Nodes:
        """Those of some of the streams."""
        positions = self.positions if self.positions.dim() == 1 else self.positions[which]
        return Nodes(positions, self.weights if self.weights.dim() == 1 else self.weights[which])


@dataclass(frozen=True)
class MonteCarlo:
    """``count`` uniform points in every piece: an unbiased estimate. Draws from ``generator`` (or torch's)."""

    count: int = 1
    generator: torch.Generator | None = None

    def nodes(self, shape: Sequence[int], like: Tensor) -> tuple[Tensor, Tensor]:
        """Fresh points for every piece: positions [*shape, Q], weights [Q]."""
        draw_on = like.device if self.generator is None else self.generator.device
        points = torch.rand(*shape, self.count, dtype=like.dtype, device=draw_on, generator=self.generator)
        return points.to(like.device), like.new_full((self.count,), 1 / self.count)


@dataclass(frozen=True)
class Stratified:
    """A uniform point in each of ``count`` equal parts of every piece: an unbiased estimate with less noise.

    For training what knows where a piece will end: it could learn to hide from nodes that are always the same.
    """

    count: int = 4
    generator: torch.Generator | None = None

    def nodes(self, shape: Sequence[int], like: Tensor) -> tuple[Tensor, Tensor]:
        """Fresh points for every piece: positions [*shape, Q], weights [Q]."""
        points, weights = MonteCarlo(self.count, self.generator).nodes(shape, like)
        return (torch.arange(self.count, dtype=like.dtype, device=like.device) + points) / self.count, weights
