"""Observed streams into the engine's buffers."""

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
