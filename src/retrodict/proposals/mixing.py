"""Units in which past and future interact, with their gradient written out.

Training evaluates them at several times of every gap. The units' values are kept for the backward pass and nothing
else; the frozen model's features ask for no gradient, so none is computed for them.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from retrodict.models.ctlstm_project import tanh_


def mix(both: Tensor, past: Tensor, weight: Tensor, bias: Tensor, readout: Tensor) -> Tensor:
    """a + w tanh(P h + b + c), [..., K].

    ``both`` [..., K + W] are a and c side by side, ``past`` [..., F] is h, ``weight`` [W, F] P, ``bias`` [W] b and
    ``readout`` [K, W] w.
    """
    rows = both.flatten(0, -2), past.flatten(0, -2)
    return _Mix.apply(*rows, weight, bias, readout).view(*both.shape[:-1], len(readout))


class _Mix(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, both: Tensor, past: Tensor, weight: Tensor, bias: Tensor, readout: Tensor) -> Tensor:
        alone, ahead = both.split(readout.shape, 1)
        units = tanh_(torch.addmm(bias, past, weight.t()).add_(ahead))
        ctx.save_for_backward(past, weight, readout, units)
        return torch.addmm(alone, units, readout.t())

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        past, weight, readout, units = ctx.saved_tensors
        inner = torch.addcmul(grad.new_ones(()), units, units, value=-1).mul_(grad @ readout)
        g_past = inner @ weight if ctx.needs_input_grad[1] else None
        return torch.cat([grad, inner], 1), g_past, inner.t() @ past, inner.sum(0), grad.t() @ units
