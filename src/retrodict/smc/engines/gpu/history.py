"""Particles read off at the end: every event is a node that knows the one before it, so resampling copies one index."""

# mypy: allow-untyped-defs
from __future__ import annotations

import triton
import triton.language as tl


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
