"""The end atom on the device (``models/end.py``): each event that is read is weighed by whether it was the last."""

# mypy: allow-untyped-defs
from __future__ import annotations

import triton
import triton.language as tl

from retrodict.smc.engines.gpu.draw import MISSING, SEEN, UPDATES
from retrodict.smc.engines.gpu.maths import tanh


@triton.jit(do_not_specialize=["M", "N"])
def weigh_ends(
    state, kind, last, events, log_weights, ended, updates, counters, slot_stream, slot_segment, counts, ending,
    end_counts, end_types, end_features, clock, M, N,
    D: tl.constexpr, BE: tl.constexpr, BD: tl.constexpr,
):  # fmt: skip
    """log π or log(1 - π) of the events that BE listed rows have just read, with the states that they leave behind."""
    count = tl.load(counters + UPDATES)
    first = tl.program_id(0) * BE
    if first < count:
        lane = first + tl.arange(0, BE)
        on = lane < count
        row = tl.load(updates + lane, mask=on, other=0)
        slot = row // M
        stream = tl.maximum(tl.load(slot_stream + slot), 0)
        observed = tl.load(slot_segment + slot)
        row = row.to(tl.int64)
        odds = tl.zeros((BE,), tl.float32)
        for d0 in range(0, D, BD):
            d = d0 + tl.arange(0, BD)
            at = state + row[:, None] * (4 * D) + d[None, :]
            h = tl.load(at + 3 * D) * tanh(tl.load(at))
            odds += tl.sum(h * tl.load(end_features + d)[None, :], 1)
        place = tl.minimum(observed + tl.load(events + row), N) - 1
        known = tl.load(end_counts + place) + tl.load(end_types + tl.load(kind + row))
        known += tl.load(clock + 4) * tl.load(last + row)
        how = tl.load(ending + stream)
        is_last = (how == SEEN) & (observed == tl.load(counts + stream))
        is_last = is_last | ((how == MISSING) & (tl.load(ended + row) != 0))
        x = odds.to(tl.float64) + known
        x = tl.where(is_last, -x, x)
        gain = -(tl.maximum(x, 0.0) + tl.log(1.0 + tl.exp(-tl.abs(x))))
        tl.store(log_weights + row, tl.load(log_weights + row) + gain, mask=on)
