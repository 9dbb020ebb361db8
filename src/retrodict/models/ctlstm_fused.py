"""The continuous-time LSTM's elementwise arithmetic as single GPU kernels (Triton), for training.

Step by step the scan (``ctlstm_scan.py``) is a matrix product and some twenty small operations; here these are one
kernel forwards and one backwards. So is the projection of hidden states between events (``ctlstm_project.py``), which
keeps nothing for its backward pass but computes it again. Sums are in a fixed order, so that runs are reproducible.
"""

from __future__ import annotations

import torch
import triton
import triton.language as tl
from torch import Tensor

_BLOCK = 512
_PROGRAMS = 128  # how many partial sums the gradient of a readout is added up from


@triton.jit
def _sigmoid(x):
    return 1.0 / (1.0 + tl.exp(-x))


@triton.jit
def _tanh(x):
    return 2.0 / (1.0 + tl.exp(-2.0 * x)) - 1.0


@triton.jit
def _softplus(x):
    small = tl.exp(-tl.abs(x))
    return tl.maximum(x, 0.0) + tl.where(small < 1e-4, small - 0.5 * small * small, tl.log(1.0 + small))


@triton.jit
def _read(gates, cell, bar, gap, start, target, decay, fade, end, squashed, hidden, B, D, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    real = at < B * D
    b = at // D
    own = gates + b * 7 * D + at % D
    i = _sigmoid(tl.load(own, real, 0.0))
    f = _sigmoid(tl.load(own + D, real, 0.0))
    o = _sigmoid(tl.load(own + 2 * D, real, 0.0))
    i_bar = _sigmoid(tl.load(own + 3 * D, real, 0.0))
    f_bar = _sigmoid(tl.load(own + 4 * D, real, 0.0))
    s = _sigmoid(tl.load(own + 5 * D, real, 0.0))
    d = _softplus(tl.load(own + 6 * D, real, 0.0))
    z = 2.0 * s - 1.0
    c = f * tl.load(cell + at, real, 0.0) + i * z
    low = f_bar * tl.load(bar + at, real, 0.0) + i_bar * z
    e = tl.exp(-d * tl.load(gap + b, real, 0.0))
    last = low + (c - low) * e
    bent = _tanh(last)
    tl.store(own, i, real)
    tl.store(own + D, f, real)
    tl.store(own + 2 * D, o, real)
    tl.store(own + 3 * D, i_bar, real)
    tl.store(own + 4 * D, f_bar, real)
    tl.store(own + 5 * D, s, real)
    tl.store(start + at, c, real)
    tl.store(target + at, low, real)
    tl.store(decay + at, d, real)
    tl.store(fade + at, e, real)
    tl.store(end + at, last, real)
    tl.store(squashed + at, bent, real)
    tl.store(hidden + at, o * bent, real)


def read_step(
    gates: Tensor,
    cell: Tensor,
    bar: Tensor,
    gap: Tensor,
    out: tuple[Tensor, Tensor, Tensor, Tensor, Tensor, Tensor, Tensor],
) -> None:
    """One event of B streams: ``gates`` [B, 7D] become activated (the decay's stay), ``out`` [B, D] each is written.

    ``cell`` and ``bar`` [B, D] are c and c̲ before the event, ``gap`` [B] is the time after it; ``out`` is start,
    target, decay, fade, the cell at the end of the gap, its tanh, and the hidden state there.
    """
    B, D = cell.shape
    _read[(triton.cdiv(B * D, _BLOCK),)](gates, cell, bar, gap, *out, B, D, BLOCK=_BLOCK)


@triton.jit
def _unread(
    gates, cell, bar, gap, start, target, fade, squashed,
    g_start, g_target, g_decay, g_output, g_hidden, from_gates, from_cell, from_target, g_gates,
    B, D, BLOCK: tl.constexpr,
):  # fmt: skip
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    real = at < B * D
    b = at // D
    place = b * 7 * D + at % D
    own, out = gates + place, g_gates + place
    i = tl.load(own, real, 0.0)
    f = tl.load(own + D, real, 0.0)
    o = tl.load(own + 2 * D, real, 0.0)
    i_bar = tl.load(own + 3 * D, real, 0.0)
    f_bar = tl.load(own + 4 * D, real, 0.0)
    s = tl.load(own + 5 * D, real, 0.0)
    z = 2.0 * s - 1.0
    bent = tl.load(squashed + at, real, 0.0)
    c = tl.load(start + at, real, 0.0)
    low = tl.load(target + at, real, 0.0)
    dh = tl.load(g_hidden + at, real, 0.0) + tl.load(from_gates + at, real, 0.0)
    dcell = tl.load(from_cell + at, real, 0.0) + dh * o * (1.0 - bent * bent)
    dfaded = dcell * tl.load(fade + at, real, 0.0)
    dstart = tl.load(g_start + at, real, 0.0) + dfaded
    dtarget = tl.load(g_target + at, real, 0.0) + tl.load(from_target + at, real, 0.0) + dcell - dfaded
    ddecay = tl.load(g_decay + at, real, 0.0) + dfaded * tl.load(gap + b, real, 0.0) * (low - c)
    doutput = tl.load(g_output + at, real, 0.0) + dh * bent
    tl.store(out, dstart * z * i * (1.0 - i), real)
    tl.store(out + D, dstart * tl.load(cell + at, real, 0.0) * f * (1.0 - f), real)
    tl.store(out + 2 * D, doutput * o * (1.0 - o), real)
    tl.store(out + 3 * D, dtarget * z * i_bar * (1.0 - i_bar), real)
    tl.store(out + 4 * D, dtarget * tl.load(bar + at, real, 0.0) * f_bar * (1.0 - f_bar), real)
    tl.store(out + 5 * D, 2.0 * (dstart * i + dtarget * i_bar) * s * (1.0 - s), real)
    tl.store(out + 6 * D, ddecay * _sigmoid(tl.load(own + 6 * D, real, 0.0)), real)
    tl.store(from_cell + at, dstart * f, real)
    tl.store(from_target + at, dtarget * f_bar, real)


def unread_step(
    kept: tuple[Tensor, ...], grads: tuple[Tensor, ...], carried: tuple[Tensor, ...], g_gates: Tensor
) -> None:
    """The gradient of one step: ``g_gates`` [B, 7D] is written, and what reaches the step before in ``carried``.

    ``kept``: gates, cell, bar, gap, start, target, fade, squashed of the step; ``grads``: those of its start, target,
    decay, output and hidden state; ``carried``: from the gates (read only), the cell and the target of the step after.
    """
    B, D = kept[1].shape
    _unread[(triton.cdiv(B * D, _BLOCK),)](*kept, *grads, *carried, g_gates, B, D, BLOCK=_BLOCK)


@triton.jit
def _states(
    start, target, decay, output, elapsed, row, real, q, d, wide, Q, D,
    BR: tl.constexpr, QP: tl.constexpr, BD: tl.constexpr,
):  # fmt: skip
    """exp(-δ t) and tanh c(t), [BR, QP, BD], and o, c - c̲, δ [BR, BD] of a block of rows."""
    place = row[:, None] * D + d[None, :]
    both = real[:, None] & wide[None, :]
    low = tl.load(target + place, both, 0.0)
    span = tl.load(start + place, both, 0.0) - low
    rate = tl.load(decay + place, both, 0.0)
    o = tl.load(output + place, both, 0.0)
    t = tl.load(elapsed + row[:, None] * Q + q[None, :], real[:, None] & (q < Q)[None, :], 0.0)
    e = tl.exp(-rate[:, None, :] * t[:, :, None])
    return e, _tanh(low[:, None, :] + span[:, None, :] * e), o, span, t


@triton.jit
def _project(
    start, target, decay, output, elapsed, readout, result, N, Q, D, K,
    BR: tl.constexpr, QP: tl.constexpr, BD: tl.constexpr, KP: tl.constexpr, PRECISION: tl.constexpr,
):  # fmt: skip
    row = tl.program_id(0) * BR + tl.arange(0, BR)
    real = row < N
    q, k = tl.arange(0, QP), tl.arange(0, KP)
    total = tl.zeros((BR * QP, KP), readout.dtype.element_ty)
    for first in range(0, D, BD):
        d = first + tl.arange(0, BD)
        wide = d < D
        _, bent, o, _, _ = _states(start, target, decay, output, elapsed, row, real, q, d, wide, Q, D, BR, QP, BD)
        h = tl.reshape(o[:, None, :] * bent, (BR * QP, BD))
        v = tl.load(readout + k[None, :] * D + d[:, None], (k < K)[None, :] & wide[:, None], 0.0)
        total += tl.dot(h, v, input_precision=PRECISION, out_dtype=readout.dtype.element_ty)
    place = (row[:, None] * Q + q[None, :])[:, :, None] * K + k[None, None, :]
    inside = real[:, None, None] & (q < Q)[None, :, None] & (k < K)[None, None, :]
    tl.store(result + place, tl.reshape(total, (BR, QP, KP)), inside)


@triton.jit
def _unproject(
    start, target, decay, output, elapsed, readout, grad, g_start, g_target, g_decay, g_output, partial, N, Q, D, K,
    BR: tl.constexpr, QP: tl.constexpr, BD: tl.constexpr, KP: tl.constexpr, PRECISION: tl.constexpr,
):  # fmt: skip
    d = tl.program_id(1) * BD + tl.arange(0, BD)
    wide = d < D
    q, k = tl.arange(0, QP), tl.arange(0, KP)
    v = tl.load(readout + k[:, None] * D + d[None, :], (k < K)[:, None] & wide[None, :], 0.0)
    own = tl.zeros((KP, BD), readout.dtype.element_ty)
    for block in range(tl.program_id(0), tl.cdiv(N, BR), tl.num_programs(0)):
        row = block * BR + tl.arange(0, BR)
        real = row < N
        e, bent, o, span, t = _states(start, target, decay, output, elapsed, row, real, q, d, wide, Q, D, BR, QP, BD)
        place = (row[:, None] * Q + q[None, :])[:, :, None] * K + k[None, None, :]
        inside = real[:, None, None] & (q < Q)[None, :, None] & (k < K)[None, None, :]
        g = tl.reshape(tl.load(grad + place, inside, 0.0), (BR * QP, KP))
        h = tl.reshape(o[:, None, :] * bent, (BR * QP, BD))
        own += tl.dot(tl.trans(g), h, input_precision=PRECISION, out_dtype=readout.dtype.element_ty)
        dh = tl.dot(g, v, input_precision=PRECISION, out_dtype=readout.dtype.element_ty)
        dh = tl.reshape(dh, (BR, QP, BD))
        dcell = dh * (1.0 - bent * bent) * o[:, None, :]
        faded = dcell * e
        all_faded = tl.sum(faded, 1)
        both = real[:, None] & wide[None, :]
        out = row[:, None] * D + d[None, :]
        tl.store(g_output + out, tl.sum(dh * bent, 1), both)
        tl.store(g_start + out, all_faded, both)
        tl.store(g_target + out, tl.sum(dcell, 1) - all_faded, both)
        tl.store(g_decay + out, -tl.sum(faded * t[:, :, None], 1) * span, both)
    into = partial + tl.program_id(0) * K * D + k[:, None] * D + d[None, :]
    tl.store(into, own, (k < K)[:, None] & wide[None, :])


def _shape(Q: int, K: int, D: int) -> dict[str, int]:
    """Tile sizes: a matrix unit wants at least 16 in every direction."""
    width = max(1, triton.next_power_of_2(Q))
    return {"QP": width, "BR": max(1, 32 // width), "BD": min(64, max(16, triton.next_power_of_2(D))),
            "KP": max(16, triton.next_power_of_2(K))}  # fmt: skip


def _precision() -> str:
    return "ieee" if torch.get_float32_matmul_precision() == "highest" else "tf32"


def project_fused(cells: tuple[Tensor, ...], elapsed: Tensor, readout: Tensor) -> Tensor:
    """v_k · h(t): cells [N, D] each, elapsed [N, Q], readout [K, D] -> [N, Q, K]."""
    (N, Q), (K, D) = elapsed.shape, readout.shape
    result = readout.new_empty(N, Q, K)
    shape = _shape(Q, K, D)
    if result.numel():
        grid = (triton.cdiv(N, shape["BR"]),)
        _project[grid](*cells, elapsed, readout, result, N, Q, D, K, **shape, PRECISION=_precision())
    return result


def unproject_fused(
    cells: tuple[Tensor, ...], elapsed: Tensor, readout: Tensor, grad: Tensor
) -> tuple[tuple[Tensor, ...], Tensor]:
    """Gradients of ``project_fused``: those of the cells [N, D] each, and of the readout [K, D]."""
    (N, Q), (K, D) = elapsed.shape, readout.shape
    outs = tuple(torch.zeros_like(cells[0]) for _ in range(4))
    shape = _shape(Q, K, D)
    programs = max(1, min(_PROGRAMS, triton.cdiv(N, shape["BR"])))
    partial = readout.new_zeros(programs, K, D)
    if grad.numel():
        grid = (programs, triton.cdiv(D, shape["BD"]))
        arguments = (*cells, elapsed, readout, grad.contiguous(), *outs, partial, N, Q, D, K)
        _unproject[grid](*arguments, **shape, PRECISION=_precision())
    return outs, partial.sum(0)
