"""Dropout: in every step of training other units are hidden from a stream's intensities and from the units above."""

from __future__ import annotations

import torch
from torch import Tensor


class Dropout:
    """Hides a share ``rate`` of units, as random numbers of a seed say; the rest count for more."""

    def __init__(self, rate: float, seed: int, device: torch.device) -> None:
        self.rate = rate
        self.generator = torch.Generator(device).manual_seed(seed)

    def mask(self, *shape: int, dtype: torch.dtype) -> Tensor:
        """Zero where something is hidden, and 1 / (1 - rate) elsewhere."""
        drawn = torch.rand(shape, dtype=dtype, device=self.generator.device, generator=self.generator)
        return (drawn >= self.rate).to(dtype) / (1 - self.rate)
