"""Units of a smoothing proposal in which past and future interact.

A sum of what h(t) and h̄(t) say cannot express that an event which the future speaks for has happened already. A layer
of tanh units that read both can.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from retrodict.models.ctlstm import linear_bound


class Mixing(nn.Module):
    """``units`` that see the model's features h(t) and h̄(t) at once: w_k · tanh(P h + Q h̄ + b)."""

    def __init__(self, num_features: int, hidden_size: int, units: int, num_types: int) -> None:
        super().__init__()
        self.past = nn.Linear(num_features, units)  # P and b
        self.future = nn.Linear(hidden_size, units, bias=False)  # Q
        self.readout = nn.Linear(units, num_types, bias=False)  # w
        with torch.no_grad():
            self.readout.weight.mul_(0.1)  # training starts near filtering

    def forward(self, past: Tensor, ahead: Tensor) -> Tensor:
        """From h(t) [..., F] and Q h̄(t) [..., W], [..., K]."""
        return self.readout(torch.tanh(self.past(past) + ahead))

    def bound(self, past: tuple[Tensor, Tensor], future: tuple[Tensor, Tensor]) -> Tensor:
        """An upper bound for h and h̄ that lie within these ranges, [..., F] and [..., D'] each; slack covers rounding.

        Each sum before tanh then lies within an interval, and tanh is increasing.
        """
        eps = torch.finfo(past[0].dtype).eps
        least, most = (a + b for a, b in zip(_within(self.past, past), _within(self.future, future), strict=True))
        size = 1 + sum(_reach(layer, ends) for layer, ends in ((self.past, past), (self.future, future)))
        return linear_bound(self.readout.weight, torch.tanh(least - 8 * eps * size), torch.tanh(most + 8 * eps * size))


def _within(layer: nn.Linear, ends: tuple[Tensor, Tensor]) -> tuple[Tensor, Tensor]:
    """The least and the most that a layer makes of inputs between both ``ends``, [..., W] each."""
    low, high = ends
    up, down = layer.weight.clamp(min=0).t(), layer.weight.clamp(max=0).t()
    bias = 0.0 if layer.bias is None else layer.bias
    return low @ up + high @ down + bias, high @ up + low @ down + bias


def _reach(layer: nn.Linear, ends: tuple[Tensor, Tensor]) -> Tensor:
    """How large its terms are, added up by size, [..., W]."""
    reach = torch.maximum(ends[0].abs(), ends[1].abs()).clamp(min=1) @ layer.weight.abs().t()
    return reach if layer.bias is None else reach + layer.bias.abs()
