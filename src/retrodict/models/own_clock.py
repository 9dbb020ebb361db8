"""A module that divides times by a scale of its own, which stays exact whatever precision the module is cast to."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn


class OwnClock(nn.Module):
    """Mix in before the base class, and register a float64 buffer ``time_scale``."""

    time_scale: Tensor

    def _apply(self, fn: Any, recurse: bool = True) -> Any:
        """Casting to another precision must not round the clock; moving to another device moves it too."""
        value = float(self.time_scale)
        super()._apply(fn, recurse)
        self.time_scale = torch.tensor(value, dtype=torch.float64, device=self.time_scale.device)
        return self
