"""Hidden states at many times per gap, projected: x = h(t) Vᵀ, without keeping every h(t) for autograd.

A quadrature rule asks for h(t) at several points of every gap, [N, Q, D] numbers of which only the
projections [N, Q, K] are used. Rows are processed in blocks that stay in the processor's cache, and the
backward pass is written out.
"""

from __future__ import annotations

import importlib.util
from typing import Any

import torch
from torch import Tensor

from retrodict.models.ctlstm import Cells

_HAS_TRITON = importlib.util.find_spec("triton") is not None
_BLOCK_BYTES = {"cpu": 1 << 18, "cuda": 1 << 28}
_MOST_ROWS = 128  # of a readout at once in a GPU's kernel: all of them lie in its shared memory


def project(cells: Cells, elapsed: Tensor, readout: Tensor) -> Tensor:
    """v_k · h(t) at ``elapsed`` [N, Q] after each of N events; cells [N, D], readout [K, D] -> [N, Q, K].

    Gradients flow to the cells and the readout, not to the times.
    """
    if elapsed.is_cuda and _HAS_TRITON and elapsed.dtype == torch.float32:
        whole = *(field.contiguous() for field in cells), elapsed.contiguous()
        parts = [_Fused.apply(*whole, rows.contiguous()) for rows in readout.split(_MOST_ROWS)]
        return parts[0] if len(parts) == 1 else torch.cat(parts, -1)
    if torch.is_grad_enabled() or elapsed.is_cuda:
        return _Project.apply(*cells, elapsed, readout)
    result = cells.start.new_empty(*elapsed.shape, len(readout))
    across = readout.t().contiguous()
    for rows in _blocks(elapsed, cells.start.shape[1]):
        block = Cells(*(field[rows] for field in cells))
        torch.matmul(states(block, elapsed[rows]), across, out=result[rows])
    return result


def states(cells: Cells, elapsed: Tensor) -> Tensor:
    """h(t) at ``elapsed`` [N, Q] after each of N events, [N, Q, D], without gradients."""
    result = cells.start.new_empty(*elapsed.shape, cells.start.shape[1])
    for rows in _blocks(elapsed, cells.start.shape[1]):
        h, (start, target, decay, output) = result[rows], (field[rows, None] for field in cells)
        torch.mul(decay, -elapsed[rows, :, None], out=h).exp_()
        tanh_(torch.addcmul(target, start - target, h, out=h)).mul_(output)
    return result


def tanh_(x: Tensor) -> Tensor:
    """tanh in place; on a CPU by way of the logistic function, several times faster."""
    return x.tanh_() if x.is_cuda else x.mul_(2).sigmoid_().mul_(2).sub_(1)


def _blocks(elapsed: Tensor, width: int) -> list[slice]:
    row = elapsed.shape[1] * width * elapsed.element_size()
    size = max(1, _BLOCK_BYTES.get(elapsed.device.type, 1 << 28) // max(row, 1))
    return [slice(i, i + size) for i in range(0, len(elapsed), size)]


class _Fused(torch.autograd.Function):
    """On a GPU: one kernel each way, which keeps nothing in between."""

    @staticmethod
    def forward(ctx: Any, *inputs: Tensor) -> Tensor:
        from retrodict.models.ctlstm_fused import project_fused

        ctx.save_for_backward(*inputs)
        *cells, elapsed, readout = inputs
        return project_fused(tuple(cells), elapsed, readout)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        from retrodict.models.ctlstm_fused import unproject_fused

        *cells, elapsed, readout = ctx.saved_tensors
        g_cells, g_readout = unproject_fused(tuple(cells), elapsed, readout, grad)
        return *g_cells, None, g_readout


class _Project(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, start: Tensor, target: Tensor, decay: Tensor, output: Tensor, elapsed: Tensor, readout: Tensor
    ) -> Tensor:
        N, Q = elapsed.shape
        D = start.shape[1]
        fade, squashed = start.new_empty(N, Q, D), start.new_empty(N, Q, D)
        result = start.new_empty(N, Q, len(readout))
        across = readout.t().contiguous()
        for rows in _blocks(elapsed, D):
            e, s = fade[rows], squashed[rows]
            torch.mul(decay[rows, None], -elapsed[rows, :, None], out=e).exp_()
            low = target[rows, None]
            torch.addcmul(low, (start[rows] - target[rows])[:, None], e, out=s)
            torch.matmul(output[rows, None] * tanh_(s), across, out=result[rows])
        ctx.save_for_backward(start, target, output, elapsed, readout, fade, squashed)
        return result

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        start, target, output, elapsed, readout, fade, squashed = ctx.saved_tensors
        D = start.shape[1]
        g_start, g_target, g_decay, g_output = (torch.empty_like(start) for _ in range(4))
        g_readout = torch.zeros_like(readout)
        for rows in _blocks(elapsed, D):
            e, s, g, o = fade[rows], squashed[rows], grad[rows], output[rows]
            dh = g @ readout
            weighted = dh * s
            torch.sum(weighted, 1, out=g_output[rows])
            # d/dc of o·tanh(c), summed into its three sources: the faded start, the target, the decay.
            dcell = torch.addcmul(dh, weighted, s, value=-1).mul_(o[:, None])
            total = dcell.sum(1)
            faded = dcell.mul_(e)
            torch.sum(faded, 1, out=g_start[rows])
            torch.sub(total, g_start[rows], out=g_target[rows])
            moment = torch.bmm(elapsed[rows, None], faded)[:, 0]
            torch.mul(moment, target[rows] - start[rows], out=g_decay[rows])
            h = (s * o[:, None]).flatten(0, 1)
            g_readout.addmm_(g.flatten(0, 1).t(), h)
        return g_start, g_target, g_decay, g_output, None, g_readout
