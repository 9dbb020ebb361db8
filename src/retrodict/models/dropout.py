"""Dropout in training: parts of what a model has read are hidden from it, other parts in every step."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor


@dataclass(frozen=True)
class Dropout:
    """Shares of units hidden from a stream's intensities, of weights between units, and of events' types."""

    units: float = 0.0
    weights: float = 0.0
    inputs: float = 0.0


def keep(like: Tensor, shape: tuple[int, ...], rate: float) -> Tensor:
    """A mask of this shape: zero at a share ``rate``, and 1 / (1 - rate) elsewhere."""
    return (torch.rand(shape, dtype=like.dtype, device=like.device) >= rate).to(like.dtype) / (1 - rate)
