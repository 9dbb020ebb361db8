"""The right-to-left LSTM of a smoothing proposal (section 3.2), and what it adds to the drive in every segment.

Step j lets stream s read its j-th observed event from the right (EOS at first), which gives the cells of the segment
that ends there. u_k · h̄ and, for each unit in which past and future interact, its row of Q h̄ + b are kept with their
derivatives at nine nodes of each segment, s = 0 ... 8 with s² / 64 of the segment between node and right end: dense
where h̄ moves fastest. Sampling and weights use the same interpolant, so q is exact.
"""

# mypy: allow-untyped-defs
from __future__ import annotations

import triton
import triton.language as tl

from retrodict.smc.engines.gpu.maths import add_dot, cell_at, tanh
from retrodict.smc.engines.gpu.read import new_cells
from retrodict.smc.engines.gpu.tilt import TABLE


@triton.jit(do_not_specialize=["B", "S", "end"])
def step_back(
    cells, steps, edges, edge_kind, counts, clock, by_kind, inputs, recurrent, B, S, end,
    D: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, INPUTS: tl.constexpr, EXACT: tl.constexpr,
):  # fmt: skip
    """Columns ``BN`` of the cells of ``BM`` streams after one more event; cells [2, B, 4, D] take turns."""
    step = tl.load(steps)
    if (tl.program_id(0) == 0) & (tl.program_id(1) == 0):
        tl.store(steps + 1, step + 1)
    stream = (tl.program_id(1) * BM + tl.arange(0, BM)).to(tl.int64)
    count = tl.load(counts + stream, mask=stream < B, other=-1)
    segment = count - step
    on = segment >= 0
    if tl.max(segment, 0) >= 0:
        edge = stream * S + segment
        kind = end + tl.zeros((BM,), tl.int32)
        passed = tl.zeros((BM,), tl.float32)
        if step > 0:
            kind = tl.load(edge_kind + edge, mask=on, other=0)
            gap = tl.load(edges + edge + 1, mask=on, other=0.0) - tl.load(edges + edge, mask=on, other=0.0)
            passed = (gap * tl.load(clock + 2)).to(tl.float32)
        some = on & (segment < count)
        n, k = tl.arange(0, 8 * BN), tl.arange(0, BK)
        acc = tl.zeros((BM, 8 * BN), tl.float32)
        tile = recurrent + (tl.program_id(0) * (8 * BN) + n)[:, None] * D + k[None, :]
        before = cells + ((step + 1) % 2).to(tl.int64) * B * (4 * D) + stream[:, None] * (4 * D)
        for k0 in range(0, D, BK):
            at = before + k0 + k[None, :]
            start = tl.load(at, mask=some[:, None], other=0.0)
            target = tl.load(at + D, mask=some[:, None], other=0.0)
            decay = tl.load(at + 2 * D, mask=some[:, None], other=0.0)
            output = tl.load(at + 3 * D, mask=some[:, None], other=0.0)
            h = output * tanh(cell_at(start, target, decay, passed[:, None]))
            weights = tl.trans(tl.load(tile + k0))
            if EXACT:
                acc = add_dot(h, weights, tl.trans(tl.load(tile + k0 + 8 * D * D)), acc)
            else:
                acc = tl.dot(h.to(tl.float16), weights, acc)
        column = tl.program_id(0) * BN + tl.arange(0, BN)
        at = before + column[None, :]
        target = tl.load(at + D, mask=some[:, None], other=0.0)
        decay = tl.load(at + 2 * D, mask=some[:, None], other=0.0)
        cell = cell_at(tl.load(at, mask=some[:, None], other=0.0), target, decay, passed[:, None])
        shares = by_kind + kind[:, None] * (7 * D) + column[None, :]
        if INPUTS:
            shares = inputs + edge[:, None] * (7 * D) + column[None, :]
        where = on[:, None] & (column[None, :] < D)
        start, target, decay, output = new_cells(acc, shares, cell, target, where, D, BM, BN)
        at = cells + (step % 2).to(tl.int64) * B * (4 * D) + stream[:, None] * (4 * D) + column[None, :]
        tl.store(at, start, mask=where)
        tl.store(at + D, target, mask=where)
        tl.store(at + 2 * D, decay, mask=where)
        tl.store(at + 3 * D, output, mask=where)


@triton.jit(do_not_specialize=["B", "S"])
def tabulate(
    cells, steps, edges, counts, clock, readout, sizes, offsets, table, B, S,
    D: tl.constexpr, WIDTH: tl.constexpr, BB: tl.constexpr, BC: tl.constexpr, BD: tl.constexpr,
):  # fmt: skip
    """Columns ``BC`` of the nodes of the segments of ``BB`` streams that the step before has reached."""
    step = tl.load(steps + 1) - 1
    if (tl.program_id(0) == 0) & (tl.program_id(1) == 0):
        tl.store(steps, step + 1)
    stream = (tl.program_id(0) * BB + tl.arange(0, BB)).to(tl.int64)
    segment = tl.load(counts + stream, mask=stream < B, other=-1) - step
    on = segment >= 0
    if tl.max(segment, 0) >= 0:
        edge = stream * S + segment
        left = tl.load(edges + edge - 1, mask=on & (segment > 0), other=0.0)
        length = ((tl.load(edges + edge, mask=on, other=0.0) - left) * tl.load(clock + 2)).to(tl.float32)
        i, k = tl.arange(0, 16), tl.program_id(1) * BC + tl.arange(0, BC)
        there = k < WIDTH
        place = i.to(tl.float32) / TABLE
        passed = length[:, None] * (place * place)[None, :]
        value = tl.zeros((BB * 16, BC), tl.float32)
        slope = tl.zeros((BB * 16, BC), tl.float32)
        own = cells + (step % 2).to(tl.int64) * B * (4 * D) + stream[:, None] * (4 * D)
        for d0 in range(0, D, BD):
            d = d0 + tl.arange(0, BD)
            at = own + d[None, :]
            start = tl.load(at, mask=on[:, None], other=0.0)[:, None, :]
            target = tl.load(at + D, mask=on[:, None], other=0.0)[:, None, :]
            decay = tl.load(at + 2 * D, mask=on[:, None], other=0.0)[:, None, :]
            output = tl.load(at + 3 * D, mask=on[:, None], other=0.0)[:, None, :]
            cell = cell_at(start, target, decay, passed[:, :, None])
            bent = tanh(cell)
            moved = output * (1.0 - bent * bent) * decay * (target - cell)
            moved = tl.minimum(tl.maximum(moved, -6e4), 6e4)
            v_at = readout + k[:, None] * D + d[None, :]
            v = tl.trans(tl.load(v_at, mask=there[:, None], other=0.0))
            v_rest = tl.trans(tl.load(v_at + WIDTH * D, mask=there[:, None], other=0.0))
            value = add_dot(tl.reshape(output * bent, (BB * 16, BD)), v, v_rest, value)
            slope = add_dot(tl.reshape(moved, (BB * 16, BD)), v, v_rest, slope)
        # By the chain rule, per unit of s.
        stretch = length[:, None, None] * (2.0 * place / TABLE)[None, :, None]
        own = table + edge[:, None, None] * ((TABLE + 1) * 2 * WIDTH)
        at = own + (i * (2 * WIDTH))[None, :, None] + k[None, None, :]
        where = on[:, None, None] & (i <= TABLE)[None, :, None] & there[None, None, :]
        size = tl.load(sizes + k, mask=there, other=0.0)[None, :]
        offset = tl.load(offsets + k, mask=there, other=0.0)[None, :]
        tl.store(at, tl.reshape(value * size + offset, (BB, 16, BC)), mask=where)
        tl.store(at + WIDTH, tl.reshape(slope * size, (BB, 16, BC)) * stretch, mask=where)
