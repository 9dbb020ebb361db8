"""The continuous-time LSTM over whole streams, with its gradient written out.

The recurrence is sequential in the events, so what one step costs is what training costs. Autograd would
record some twenty small operations a step; here the forward pass keeps what the backward pass needs, and
the gradient with respect to the recurrent weights is one matrix product at the end instead of one a step.
On a GPU a step is one matrix product and one kernel (``ctlstm_fused.py``), and short scans are replayed as
CUDA graphs (``ctlstm_graphs.py``).
"""

from __future__ import annotations

from collections.abc import Sequence
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


def run_scan(kernels: Any, table: Tensor, by_hidden: Tensor, types: Tensor | None, gaps: Tensor) -> tuple[Tensor, ...]:
    """Read inputs ``types`` [N, B] with ``gaps`` [N, B] after each, from the zero state.

    ``kernels`` are a ``Plain`` or others like it, ``table`` [V, 7D] holds each input's share of the gates, and
    ``by_hidden`` [D, 7D] the recurrent weights. Without ``types`` the table holds the shares one by one, [N, B, 7D].
    Returns start, target, decay, output and the hidden state at the end of each gap, [N, B, D] each.
    """
    return _Scan.apply(kernels, table, by_hidden, None if types is None else types.contiguous(), gaps.contiguous())


class _Scan(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, kernels: Any, table: Tensor, by_hidden: Tensor, types: Tensor | None, gaps: Tensor
    ) -> tuple[Tensor, ...]:
        D = by_hidden.shape[0]
        shares = table.clone(memory_format=torch.contiguous_format) if types is None else table[types]
        s = kernels.forward(shares, by_hidden, gaps)
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
        if types is None:
            return None, flat.view(N, B, 7 * D), g_by_hidden, None, None
        g_table = flat.new_zeros(ctx.num_inputs, 7 * D).index_add_(0, types.reshape(-1), flat)
        return None, g_table, g_by_hidden, None, None


class Plain:
    """The scan in torch operations, on any device.

    With ``lengths`` [B], the inputs of each stream, a step reads the streams up to the last that goes on: streams in
    order of length, longest first, cost no padding. What would follow a stream's last input is undefined.
    """

    def __init__(self, lengths: Tensor | None = None) -> None:
        self.rows: list[int] | None = None  # how many streams each step reads
        if lengths is not None:
            goes_on = torch.arange(int(lengths.max()) if len(lengths) else 0)[:, None] < lengths
            self.rows = [int(row.nonzero()[-1]) + 1 for row in goes_on]

    def forward(self, gates: Tensor, by_hidden: Tensor, gaps: Tensor) -> Scanned:
        """``gates`` [N, B, 7D] are the inputs' shares at first, the activated gates in the end."""
        N, B, _ = gates.shape
        D = by_hidden.shape[0]
        cells, hidden = gates.new_zeros(N + 1, B, D), gates.new_zeros(N, B, D)
        start, target, decay, fade, squashed = (gates.new_empty(N, B, D) for _ in range(5))
        h = cell = bar = cells[0]
        steps = self._steps(gates, (-gaps)[..., None], cells[1:], start, target, decay, fade, squashed, hidden)
        for g, minus_gap, end, c, new_bar, d, e, tanh, new_h in steps:
            rows = len(g)
            g.addmm_(h[:rows], by_hidden)
            i, f, o, i_bar, f_bar, z = g[:, : 6 * D].sigmoid_().split(D, 1)
            z = z * 2 - 1
            torch.mul(f, cell[:rows], out=c).addcmul_(i, z)
            bar = torch.mul(f_bar, bar[:rows], out=new_bar).addcmul_(i_bar, z)
            d.copy_(F.softplus(g[:, 6 * D :]))
            torch.mul(d, minus_gap, out=e).exp_()
            cell = torch.addcmul(bar, c - bar, e, out=end)
            # tanh c as the paper writes it, 2 sigmoid(2 c) - 1: several times faster than tanh on a CPU.
            torch.mul(cell, 2, out=tanh).sigmoid_().mul_(2).sub_(1)
            h = torch.mul(o, tanh, out=new_h)
        return Scanned(gates, cells, start, target, decay, fade, squashed, hidden)

    def backward(self, scanned: Scanned, by_hidden: Tensor, gaps: Tensor, grads: tuple[Tensor, ...]) -> Tensor:
        """Gradients of the gates before activation, [N, B, 7D]; ``grads`` are those of what ``run_scan`` returns."""
        gates, cells, start, target, _, fade, squashed, hidden = scanned
        D = hidden.shape[-1]
        g_gates = torch.empty_like(gates) if self.rows is None else torch.zeros_like(gates)
        # Gradients that reach the end of a gap from the next step: through the gates, the cell and the target.
        from_gates = from_cell = from_target = hidden.new_zeros(0, D)
        steps = self._steps(gates, cells[:-1], start, target, fade, squashed, gaps[..., None], g_gates, *grads)
        before = [torch.zeros_like(start[0]), *target[:-1].unbind()]
        for old_bar, step in reversed(list(zip(before, steps, strict=False))):
            own, cell, begun, bar, e, tanh, gap, g, g_start, g_target, g_decay, g_output, g_hidden = step
            s = own[:, : 6 * D]
            i, f, o, i_bar, f_bar, z = s.split(D, 1)
            z = z * 2 - 1
            dh = _plus(g_hidden, from_gates)
            dcell = _plus((dh * o).mul_(1 - tanh.square()), from_cell)
            dfaded = dcell * e
            dstart = g_start + dfaded
            dtarget = _plus(g_target, from_target).add_(dcell).sub_(dfaded)
            ddecay = torch.addcmul(g_decay, dfaded * gap, bar - begun)
            torch.mul(dstart, z, out=g[:, :D])
            torch.mul(dstart, cell, out=g[:, D : 2 * D])
            torch.addcmul(g_output, dh, tanh, out=g[:, 2 * D : 3 * D])
            torch.mul(dtarget, z, out=g[:, 3 * D : 4 * D])
            torch.mul(dtarget, old_bar[: len(g)], out=g[:, 4 * D : 5 * D])
            torch.mul(dstart, i, out=g[:, 5 * D : 6 * D]).addcmul_(dtarget, i_bar).mul_(2)
            g[:, : 6 * D].mul_(s).mul_(1 - s)
            torch.mul(ddecay, own[:, 6 * D :].sigmoid(), out=g[:, 6 * D :])
            from_cell, from_target = dstart * f, dtarget * f_bar
            from_gates = g @ by_hidden.t()
        return g_gates

    def _steps(self, *tensors: Tensor) -> list[tuple[Tensor, ...]]:
        """Step by step, what is read of ``tensors`` [N, B, ...]; no step where all streams have ended."""
        parts: list[Sequence[Tensor]] = [x.unbind() for x in tensors]
        if self.rows is not None:
            parts = [[x[:rows] for x, rows in zip(own, self.rows, strict=False)] for own in parts]
        return list(zip(*parts, strict=True))


def _plus(own: Tensor, carried: Tensor) -> Tensor:
    """The sum, where the first streams alone have something carried over from the next step."""
    if len(own) == len(carried):
        return own + carried
    total = own.clone()
    total[: len(carried)] += carried
    return total
