"""The LSTM reads the events of a round, drawn or observed, in one matrix product (line 44); copies follow.

Weights lie with the reduced dimension last, [D / BN, 8, BN, D]: so a program's tiles of all gates are one tile, and
the matrix units take it as it lies. Products are of half-precision numbers, which have as many significant bits as tf32
(and here all the range needed); where EXACT, of two for each number, exact to 22 bits. A row's numbers do not depend on
which others are in its tile.
"""

# mypy: allow-untyped-defs
from __future__ import annotations

import triton
import triton.language as tl

from retrodict.smc.engines.gpu.draw import COPIES, UPDATES
from retrodict.smc.engines.gpu.maths import cell_at, sigmoid, softplus, tanh


@triton.jit
def new_cells(acc, shares, cell, target, on, D: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr):
    """The cells after an event from the gates' sums [BM, 8 BN], in the order i, f, o, ī, f̄, z, δ (appendix B.1).

    The eighth is not used: it fills the matrix units' tile.
    """
    parts = tl.permute(tl.reshape(acc, (BM, 2, 2, 2, BN)), (0, 4, 1, 2, 3))
    even, odd = tl.split(parts)
    from0, from2 = tl.split(even)
    from1, from3 = tl.split(odd)
    a0, a4 = tl.split(from0)
    a1, a5 = tl.split(from1)
    a2, a6 = tl.split(from2)
    a3, _ = tl.split(from3)
    i = sigmoid(a0 + tl.load(shares, mask=on, other=0.0))
    f = sigmoid(a1 + tl.load(shares + D, mask=on, other=0.0))
    o = sigmoid(a2 + tl.load(shares + 2 * D, mask=on, other=0.0))
    i_bar = sigmoid(a3 + tl.load(shares + 3 * D, mask=on, other=0.0))
    f_bar = sigmoid(a4 + tl.load(shares + 4 * D, mask=on, other=0.0))
    z = tanh(0.5 * (a5 + tl.load(shares + 5 * D, mask=on, other=0.0)))
    decay = softplus(a6 + tl.load(shares + 6 * D, mask=on, other=0.0))
    return f * cell + i * z, f_bar * target + i_bar * z, decay, o


@triton.jit(do_not_specialize=["R"])
def read(
    state, hidden, elapsed, kind, updates, counters, by_kind, recurrent, R,
    D: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, EXACT: tl.constexpr,
):  # fmt: skip
    """Columns ``BN`` of the new states of ``BM`` listed rows; ``hidden`` is h just before each row's event."""
    count = tl.load(counters + UPDATES)
    first = tl.program_id(1) * BM
    if first < count:
        lane = first + tl.arange(0, BM)
        on = lane < count
        row = tl.load(updates + lane, mask=on, other=0).to(tl.int64)
        n, k = tl.arange(0, 8 * BN), tl.arange(0, BK)
        acc = tl.zeros((BM, 8 * BN), tl.float32)
        tile = recurrent + (tl.program_id(0) * (8 * BN) + n)[:, None] * D + k[None, :]
        source = hidden + row[:, None] * D + k[None, :]
        for k0 in range(0, D, BK):
            h = tl.load(source + k0, mask=on[:, None], other=0.0)
            weights = tl.trans(tl.load(tile + k0))
            acc = tl.dot(h, weights, acc)
            if EXACT:
                acc = tl.dot(h, tl.trans(tl.load(tile + k0 + 8 * D * D)), acc)
                h = tl.load(source + k0 + R.to(tl.int64) * D, mask=on[:, None], other=0.0)
                acc = tl.dot(h, weights, acc)
        column = tl.program_id(0) * BN + tl.arange(0, BN)
        where = on[:, None] & (column[None, :] < D)
        at = state + row[:, None] * (4 * D) + column[None, :]
        target = tl.load(at + D, mask=where, other=0.0)
        decay = tl.load(at + 2 * D, mask=where, other=0.0)
        passed = tl.load(elapsed + row, mask=on, other=0.0)
        cell = cell_at(tl.load(at, mask=where, other=0.0), target, decay, passed[:, None])
        shares = by_kind + tl.load(kind + row, mask=on, other=0)[:, None] * (7 * D) + column[None, :]
        start, target, decay, output = new_cells(acc, shares, cell, target, where, D, BM, BN)
        tl.store(at, start, mask=where)
        tl.store(at + D, target, mask=where)
        tl.store(at + 2 * D, decay, mask=where)
        tl.store(at + 3 * D, output, mask=where)


@triton.jit(do_not_specialize=["R", "parity"])
def copy(
    state, log_weights, copies, counters, R, parity, WIDTH: tl.constexpr, BLOCK: tl.constexpr, ENDS: tl.constexpr
):  # fmt: skip
    """Listed rows become copies of others; then the lists of this round are empty.

    Where what was read is weighed by whether it was the last event, copies of particles have that in their weights too.
    """
    count = tl.load(counters + COPIES)
    for i in range(tl.program_id(0), count, tl.num_programs(0)):
        to = tl.load(copies + i).to(tl.int64) * WIDTH
        source = tl.load(copies + R + i).to(tl.int64) * WIDTH
        if ENDS:
            parent = tl.load(copies + R + i)
            if parent < R:
                tl.store(log_weights + tl.load(copies + i), tl.load(log_weights + parent))
        for j in range(0, WIDTH, BLOCK):
            at = j + tl.arange(0, BLOCK)
            tl.store(state + to + at, tl.load(state + source + at))
    if tl.program_id(0) == 0:
        tl.store(counters + UPDATES, 0)
        tl.store(counters + parity, 0)
