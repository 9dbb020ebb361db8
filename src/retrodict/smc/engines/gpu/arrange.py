"""Into and out of the engine's buffers: observed streams at first, particles in the end.

Every event is a node that knows the one before it, so resampling copies one index.
"""

# mypy: allow-untyped-defs
from __future__ import annotations

import triton
import triton.language as tl


@triton.jit(do_not_specialize=["B", "L", "K", "M", "S"])
def arrange(
    times, types, mask, durations, stream_keys, scores, keys, counts, order, edges, edge_kind, edge_score, edge_log,
    ess, parents, resampled, B, L, K, M, S,
    ATOM: tl.constexpr, BL: tl.constexpr, MB: tl.constexpr,
):  # fmt: skip
    """One stream: the right ends of its segments, what is observed there and what that adds to the log weights."""
    stream = tl.program_id(0).to(tl.int64)
    if stream < B:
        count = 0
        duration = tl.load(durations + stream)
        tl.store(keys + stream, tl.load(stream_keys + stream))
        for i0 in range(0, L + 1, BL):
            i = i0 + tl.arange(0, BL)
            seen = tl.load(mask + stream * L + i, mask=i < L, other=0) != 0
            time = tl.load(times + stream * L + i, mask=i < L, other=0.0)
            time = tl.where(i < L, time, duration)
            kind = tl.load(types + stream * L + i, mask=seen, other=0)
            by_atom = seen & (i == 0) & (time == 0.0) & ATOM
            added = tl.load(scores + tl.where(by_atom, K, 0) + kind, mask=seen, other=0.0)
            at = stream * S + i
            tl.store(edges + at, time, mask=i <= L)
            tl.store(edge_kind + at, kind.to(tl.int32), mask=i <= L)
            tl.store(edge_score + at, tl.where(seen & ~by_atom, kind, -1).to(tl.int32), mask=i <= L)
            tl.store(edge_log + at, added, mask=i <= L)
            tl.store(ess + at, time * 0.0 + float("nan"), mask=i <= L)
            tl.store(resampled + at, (kind * 0).to(tl.int8), mask=i <= L)
            count += tl.sum(seen.to(tl.int32), 0)
        tl.store(counts + stream, count)
        tl.store(order + stream, stream.to(tl.int32))
        for i in range(L + 1):
            for m0 in range(0, M, MB):
                m = m0 + tl.arange(0, MB)
                tl.store(parents + (stream * S + i) * M + m, m, mask=m < M)
    else:
        tl.store(counts + stream, -1)


@triton.jit(do_not_specialize=["rows", "C"])
def unroll(head, events, node_time, node_kind, node_parent, times, types, rows, C, BLOCK: tl.constexpr):
    """Each particle's events in order of time into ``times`` and ``types`` [rows, C]."""
    row = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    on = row < rows
    node = tl.load(head + row, mask=on, other=-1)
    left = tl.load(events + row, mask=on, other=0)
    for _ in range(tl.max(left, 0)):
        more = left > 0
        at = row.to(tl.int64) * C + left - 1
        tl.store(times + at, tl.load(node_time + node, mask=more, other=0.0), mask=more)
        tl.store(types + at, tl.load(node_kind + node, mask=more, other=0).to(tl.int64), mask=more)
        node = tl.load(node_parent + node, mask=more, other=-1)
        left -= 1
