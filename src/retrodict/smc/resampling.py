"""Resampling schemes: which particles live on, and how often.

Each maps normalised weights [B, M] and uniform numbers [B, M] to the indices [B, M] of the parents, so that
particle m has M w_m children on average; that keeps the evidence unbiased.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import torch
from torch import Tensor

from retrodict.errors import ModelError

Scheme = Callable[[Tensor, Tensor], Tensor]


def _invert(weights: Tensor, points: Tensor) -> Tensor:
    """The particle on whose stretch of the unit interval each point falls, [B, M]."""
    edges = weights.to(torch.float64).cumsum(-1)
    edges = edges / edges[:, -1:]
    highest = weights.shape[-1] - 1 - (weights > 0).to(torch.int8).flip(-1).argmax(-1, keepdim=True)
    return torch.minimum(torch.searchsorted(edges, points.contiguous(), right=True), highest)


def multinomial(weights: Tensor, u: Tensor) -> Tensor:
    """M independent draws, as in the paper."""
    return _invert(weights, u)


def stratified(weights: Tensor, u: Tensor) -> Tensor:
    """One draw in each of M equal strata of the unit interval."""
    M = weights.shape[-1]
    return _invert(weights, (torch.arange(M, device=u.device) + u) / M)


def systematic(weights: Tensor, u: Tensor) -> Tensor:
    """One draw in each of M equal strata, all at the same place."""
    return stratified(weights, u[:, :1])


def residual(weights: Tensor, u: Tensor) -> Tensor:
    """floor(M w) children for certain, the rest drawn from what is left."""
    M = weights.shape[-1]
    shares = weights.to(torch.float64) / weights.sum(-1, keepdim=True) * M
    # A share that is whole but for rounding counts as whole.
    certain = (shares + 1e-9).floor().clamp(max=M)
    left = (shares - certain).clamp(min=0)
    given = certain.sum(-1, keepdim=True)
    left = torch.where(left.sum(-1, keepdim=True) > 0, left, shares)
    slots = torch.arange(M, device=u.device).expand_as(shares)
    sure = torch.searchsorted(certain.cumsum(-1), slots.to(torch.float64).contiguous(), right=True)
    return torch.where(slots < given, sure.clamp(max=M - 1), _invert(left, u))


SCHEMES: dict[str, Scheme] = {f.__name__: f for f in (multinomial, stratified, systematic, residual)}


def find_scheme(name: str | None) -> Scheme | None:
    """A scheme by name; None or "none" for no resampling."""
    if name is None or name == "none":
        return None
    if name not in SCHEMES:
        raise ModelError(f"unknown resampling scheme {name!r}. Choose one of {', '.join(SCHEMES)}, or none.")
    return SCHEMES[name]


def effective_size(log_weights: Tensor) -> Tensor:
    """ESS = (Σ w)² / Σ w² of log weights [B, M], [B]; zero where all weights are."""
    top = log_weights.amax(-1, keepdim=True)
    w = torch.where(torch.isfinite(top), (log_weights - top).exp(), 0.0)
    return torch.where(w.sum(-1) > 0, w.sum(-1) ** 2 / w.square().sum(-1), 0.0)


def log_mean(log_weights: Tensor) -> Tensor:
    """log of the mean weight, [B]."""
    return torch.logsumexp(log_weights, -1) - math.log(log_weights.shape[-1])
