"""Linear recurrences over whole streams, in a number of steps that grows with the log of their length.

    x_i = fade_i x_{i-1} + jump_i

Two neighbouring steps make one of the same form,

    x_{i+1} = (fade_{i+1} fade_i) x_{i-1} + (fade_{i+1} jump_i + jump_{i+1})

so every other x follows from a recurrence of half the length, and the rest from those. The gradient is a recurrence of
the same kind that runs backwards.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor


def linear_scan(fade: Tensor, jump: Tensor) -> Tensor:
    """All x_i of x_i = fade_i x_{i-1} + jump_i with nothing before the first, [N, ...] each."""
    return _Scan.apply(fade, jump)


class _Scan(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, fade: Tensor, jump: Tensor) -> Tensor:
        x = _scan(fade, jump)
        ctx.save_for_backward(fade, x)
        return x

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, Tensor]:
        fade, x = ctx.saved_tensors
        g_jump = _scan_back(fade.roll(-1, 0), grad)
        g_fade = torch.zeros_like(x)
        torch.mul(g_jump[1:], x[:-1], out=g_fade[1:])
        return g_fade, g_jump


def _scan(fade: Tensor, jump: Tensor) -> Tensor:
    N = len(jump)
    if N < 2:
        return jump.clone()
    first, second = slice(0, N - 1, 2), slice(1, N, 2)
    known = _scan(fade[first] * fade[second], torch.addcmul(jump[second], fade[second], jump[first]))
    x = torch.empty_like(jump)
    x[0], x[second] = jump[0], known
    torch.addcmul(jump[2::2], fade[2::2], known[: (N - 1) // 2], out=x[2::2])
    return x


def _scan_back(fade: Tensor, jump: Tensor) -> Tensor:
    """The same from the end: x_i = fade_i x_{i+1} + jump_i, where the last fade means nothing."""
    N, odd = len(jump), len(jump) % 2
    if N < 2:
        return jump.clone()
    first, second, rest = slice(1 + odd, N, 2), slice(odd, N - 1, 2), slice(1 - odd, N - 2, 2)
    known = _scan_back(fade[first] * fade[second], torch.addcmul(jump[second], fade[second], jump[first]))
    x = torch.empty_like(jump)
    x[-1], x[second] = jump[-1], known
    torch.addcmul(jump[rest], fade[rest], known[1 - odd :], out=x[rest])
    return x
