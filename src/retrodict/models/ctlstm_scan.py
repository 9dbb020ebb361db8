"""The continuous-time LSTM over whole streams, with its gradient written out.

The recurrence is sequential in the events, so what one step costs is what training costs. Autograd would
record some twenty small operations a step; here the forward pass keeps what the backward pass needs, and
the gradient with respect to the recurrent weights is one matrix product at the end instead of one a step.
"""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor


def run_scan(table: Tensor, by_hidden: Tensor, types: Tensor, gaps: Tensor) -> tuple[Tensor, ...]:
    """Read inputs ``types`` [N, B] with ``gaps`` [N, B] after each, from the zero state.

    ``table`` [V, 7D] holds each input's share of the gates, ``by_hidden`` [D, 7D] the recurrent weights.
    Returns start, target, decay, output and the hidden state at the end of each gap, [N, B, D] each.
    """
    return _Scan.apply(table, by_hidden, types, gaps)


class _Scan(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, table: Tensor, by_hidden: Tensor, types: Tensor, gaps: Tensor) -> tuple[Tensor, ...]:
        N, B = types.shape
        D = by_hidden.shape[0]
        new = lambda width: table.new_empty(N, B, width)  # noqa: E731
        sigmoids, decay, start, target = new(6 * D), new(D), new(D), new(D)
        fade, squashed, hidden, output = new(D), new(D), new(D), new(D)
        cell = h = table.new_zeros(B, D)
        bar = cell
        gates = table.new_empty(B, 7 * D)
        for n in range(N):
            torch.addmm(table.index_select(0, types[n]), h, by_hidden, out=gates)
            s = torch.sigmoid(gates[:, : 6 * D], out=sigmoids[n])
            i, f, o, i_bar, f_bar, z = s.split(D, 1)
            z = 2 * z - 1
            torch.mul(f, cell, out=start[n]).addcmul_(i, z)
            bar = torch.mul(f_bar, bar, out=target[n]).addcmul_(i_bar, z)
            decay[n] = F.softplus(gates[:, 6 * D :])
            torch.exp(decay[n] * -gaps[n, :, None], out=fade[n])
            cell = torch.addcmul(bar, start[n] - bar, fade[n])
            torch.tanh(cell, out=squashed[n])
            output[n] = o
            h = torch.mul(o, squashed[n], out=hidden[n])
        ctx.save_for_backward(by_hidden, types, gaps, sigmoids, decay, start, target, fade, squashed, hidden)
        ctx.num_inputs = table.shape[0]
        return start, target, decay, output, hidden

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, ...]:
        by_hidden, types, gaps, sigmoids, decay, start, target, fade, squashed, hidden = ctx.saved_tensors
        g_start, g_target, g_decay, g_output, g_hidden = grads
        N, B, D = hidden.shape
        g_gates = hidden.new_empty(N, B, 7 * D)
        weights_t = by_hidden.t().contiguous()
        zero = hidden.new_zeros(B, D)
        # Gradients that reach the end of gap n from step n + 1: through the gates, the cell and the target.
        from_gates, from_cell, from_target = zero, zero, zero
        for n in range(N - 1, -1, -1):
            i, f, o, i_bar, f_bar, z = sigmoids[n].split(D, 1)
            z = 2 * z - 1
            dh = g_hidden[n] + from_gates
            do = torch.addcmul(g_output[n], dh, squashed[n])
            dcell = torch.addcmul(from_cell, dh * o, 1 - squashed[n].square())
            dfaded = dcell * fade[n]
            dstart = g_start[n] + dfaded
            dtarget = g_target[n] + from_target + dcell - dfaded
            ddecay = g_decay[n] - dfaded * (start[n] - target[n]) * gaps[n, :, None]
            if n:
                before = target[n - 1] + (start[n - 1] - target[n - 1]) * fade[n - 1]
                bar_before = target[n - 1]
            else:
                before = bar_before = zero
            g = g_gates[n]
            torch.mul(dstart, z, out=g[:, :D])
            torch.mul(dstart, before, out=g[:, D : 2 * D])
            g[:, 2 * D : 3 * D] = do
            torch.mul(dtarget, z, out=g[:, 3 * D : 4 * D])
            torch.mul(dtarget, bar_before, out=g[:, 4 * D : 5 * D])
            torch.mul(dstart, i, out=g[:, 5 * D : 6 * D]).addcmul_(dtarget, i_bar).mul_(2)
            s = sigmoids[n]
            g[:, : 6 * D].mul_(s).mul_(1 - s)
            torch.mul(ddecay, -torch.expm1(-decay[n]), out=g[:, 6 * D :])
            from_cell, from_target = dstart * f, dtarget * f_bar
            from_gates = g @ weights_t
        flat = g_gates.view(N * B, 7 * D)
        g_by_hidden = hidden[:-1].reshape(-1, D).t() @ flat[B:]
        g_table = flat.new_zeros(ctx.num_inputs, 7 * D).index_add_(0, types.reshape(-1), flat)
        return g_table, g_by_hidden, None, None
