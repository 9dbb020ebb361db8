"""The continuous-time LSTM over whole streams, with its gradient written out.

The recurrence is sequential in the events, so what one step costs is what training costs. Autograd would
record some twenty small operations a step; here the forward pass keeps what the backward pass needs, and
the gradient with respect to the recurrent weights is one matrix product at the end instead of one a step.
On a GPU a step is one matrix product and one kernel (``ctlstm_fused.py``), and short scans are replayed as
CUDA graphs (``ctlstm_graphs.py``).
"""

from __future__ import annotations

from typing import Any, NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor


class Scanned(NamedTuple):
    """What a scan of N inputs of B streams computes, [N, B, D] each except for two.

    ``gates`` [N, B, 7D] are activated, except those of the decay; ``cells`` [N + 1, B, D] are c at the end of each gap,
    zero before the first; ``fade`` is exp(-δ gap), ``squashed`` tanh c and ``hidden`` h at the end of each gap.
    """

    gates: Tensor
    cells: Tensor
    start: Tensor
    target: Tensor
    decay: Tensor
    fade: Tensor
    squashed: Tensor
    hidden: Tensor


def run_scan(kernels: Any, table: Tensor, by_hidden: Tensor, types: Tensor, gaps: Tensor) -> tuple[Tensor, ...]:
    """Read inputs ``types`` [N, B] with ``gaps`` [N, B] after each, from the zero state.

    ``kernels`` are ``Plain`` or others like it, ``table`` [V, 7D] holds each input's share of the gates, and
    ``by_hidden`` [D, 7D] the recurrent weights.
    Returns start, target, decay, output and the hidden state at the end of each gap, [N, B, D] each.
    """
    return _Scan.apply(kernels, table, by_hidden, types.contiguous(), gaps.contiguous())


class _Scan(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, kernels: Any, table: Tensor, by_hidden: Tensor, types: Tensor, gaps: Tensor
    ) -> tuple[Tensor, ...]:
        D = by_hidden.shape[0]
        s = kernels.forward(table[types], by_hidden, gaps)
        kept = (s.gates, s.cells, s.start, s.target, s.fade, s.squashed, s.hidden)
        ctx.save_for_backward(by_hidden, types, gaps, *kept)
        ctx.kernels, ctx.num_inputs = kernels, table.shape[0]
        return s.start, s.target, s.decay, s.gates[..., 2 * D : 3 * D].contiguous(), s.hidden

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, ...]:
        by_hidden, types, gaps, gates, cells, start, target, fade, squashed, hidden = ctx.saved_tensors
        N, B, D = hidden.shape
        scanned = Scanned(gates, cells, start, target, start, fade, squashed, hidden)
        flat = ctx.kernels.backward(scanned, by_hidden, gaps, grads).view(N * B, 7 * D)
        g_by_hidden = hidden[:-1].reshape(-1, D).t() @ flat[B:]
        g_table = flat.new_zeros(ctx.num_inputs, 7 * D).index_add_(0, types.reshape(-1), flat)
        return None, g_table, g_by_hidden, None, None


class Plain:
    """The scan in torch operations, on any device."""

    @staticmethod
    def forward(gates: Tensor, by_hidden: Tensor, gaps: Tensor) -> Scanned:
        """``gates`` [N, B, 7D] are the inputs' shares at first, the activated gates in the end."""
        N, B, _ = gates.shape
        D = by_hidden.shape[0]
        cells = gates.new_zeros(N + 1, B, D)
        start, target, decay, fade, squashed, hidden = (gates.new_empty(N, B, D) for _ in range(6))
        h = cell = bar = cells[0]
        steps = (gates, (-gaps)[..., None], cells[1:], start, target, decay, fade, squashed, hidden)
        for g, minus_gap, end, c, new_bar, d, e, tanh, new_h in zip(*(x.unbind() for x in steps), strict=True):
            g.addmm_(h, by_hidden)
            i, f, o, i_bar, f_bar, z = g[:, : 6 * D].sigmoid_().split(D, 1)
            z = z * 2 - 1
            torch.mul(f, cell, out=c).addcmul_(i, z)
            bar = torch.mul(f_bar, bar, out=new_bar).addcmul_(i_bar, z)
            d.copy_(F.softplus(g[:, 6 * D :]))
            torch.mul(d, minus_gap, out=e).exp_()
            cell = torch.addcmul(bar, c - bar, e, out=end)
            # tanh c as the paper writes it, 2 sigmoid(2 c) - 1: several times faster than tanh on a CPU.
            torch.mul(cell, 2, out=tanh).sigmoid_().mul_(2).sub_(1)
            h = torch.mul(o, tanh, out=new_h)
        return Scanned(gates, cells, start, target, decay, fade, squashed, hidden)

    @staticmethod
    def backward(scanned: Scanned, by_hidden: Tensor, gaps: Tensor, grads: tuple[Tensor, ...]) -> Tensor:
        """Gradients of the gates before activation, [N, B, 7D]; ``grads`` are those of what ``run_scan`` returns."""
        gates, cells, start, target, _, fade, squashed, hidden = scanned
        g_start, g_target, g_decay, g_output, g_hidden = grads
        N, B, D = hidden.shape
        g_gates = torch.empty_like(gates)
        zero = hidden.new_zeros(B, D)
        # Gradients that reach the end of gap n from step n + 1: through the gates, the cell and the target.
        from_gates, from_cell, from_target = zero, zero, zero
        for n in range(N - 1, -1, -1):
            s = gates[n, :, : 6 * D]
            i, f, o, i_bar, f_bar, z = s.split(D, 1)
            z = z * 2 - 1
            dh = g_hidden[n] + from_gates
            dcell = torch.addcmul(from_cell, dh * o, 1 - squashed[n].square())
            dfaded = dcell * fade[n]
            dstart = g_start[n] + dfaded
            dtarget = g_target[n].add(from_target).add_(dcell).sub_(dfaded)
            ddecay = torch.addcmul(g_decay[n], dfaded * gaps[n, :, None], target[n] - start[n])
            g = g_gates[n]
            torch.mul(dstart, z, out=g[:, :D])
            torch.mul(dstart, cells[n], out=g[:, D : 2 * D])
            torch.addcmul(g_output[n], dh, squashed[n], out=g[:, 2 * D : 3 * D])
            torch.mul(dtarget, z, out=g[:, 3 * D : 4 * D])
            torch.mul(dtarget, target[n - 1] if n else zero, out=g[:, 4 * D : 5 * D])
            torch.mul(dstart, i, out=g[:, 5 * D : 6 * D]).addcmul_(dtarget, i_bar).mul_(2)
            g[:, : 6 * D].mul_(s).mul_(1 - s)
            torch.mul(ddecay, gates[n, :, 6 * D :].sigmoid(), out=g[:, 6 * D :])
            from_cell, from_target = dstart * f, dtarget * f_bar
            from_gates = g @ by_hidden.t()
        return g_gates
