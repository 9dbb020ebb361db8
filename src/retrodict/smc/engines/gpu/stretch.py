"""Missing rates that change in time: a row's stretch ends where its piece does, or the time after its last trigger.

Within a piece rates are cubics, given by control points (``missingness/pieces.py``). What depends on the time since
the last trigger is constant within a stretch and changes the control points alone: 1 - (1 - ρ)(1 - r) is linear in ρ.
"""

# mypy: allow-untyped-defs
from __future__ import annotations

import triton
import triton.language as tl


@triton.jit
def stretch(row, stream, now, right, clock, piece, breaks, triggers, reach, R, P, AFTER: tl.constexpr):
    """Which piece each row stands in, where its stretch ends, where in the piece it begins, and what share of the piece
    a unit of the model's time is, [R] each."""
    p = tl.load(piece + row)
    at = breaks + stream * (P + 1)
    p += ((tl.load(at + p + 1) <= now) & (p < P - 1)).to(tl.int32)
    left, stop = tl.load(at + p), tl.load(at + p + 1)
    width = tl.maximum(stop - left, 1e-300)
    begin = tl.minimum(tl.maximum((now - left) / width, 0.0), 1.0).to(tl.float32)
    pace = tl.minimum(1.0 / tl.maximum(width * tl.load(clock), 1e-30), 1e30).to(tl.float32)
    stop = tl.where(p == P - 1, right, tl.minimum(tl.maximum(stop, now), right))
    for a in tl.static_range(AFTER):
        ends = tl.load(triggers + a * R.to(tl.int64) + row) + tl.load(reach + a)
        stop = tl.where(now < ends, tl.minimum(stop, ends), stop)
    return p, stop, begin, pace


@triton.jit
def control_points(
    row, stream, p, now, controls, triggers, reach, recent, R, P, KP: tl.constexpr, AFTER: tl.constexpr
):  # fmt: skip
    """The four control points of ρ in a row's stretch, [R, K] each."""
    k = tl.arange(0, KP)
    own = controls + (stream * P + p)[:, None] * (4 * KP) + k[None, :]
    c0, c1, c2, c3 = tl.load(own), tl.load(own + KP), tl.load(own + 2 * KP), tl.load(own + 3 * KP)
    for a in tl.static_range(AFTER):
        soon = now < tl.load(triggers + a * R.to(tl.int64) + row) + tl.load(reach + a)
        more = tl.load(recent + a * (2 * KP) + tl.where(soon, 0, KP)[:, None] + k[None, :]).to(tl.float32)
        c0, c1 = c0 + more * (1.0 - c0), c1 + more * (1.0 - c1)
        c2, c3 = c2 + more * (1.0 - c2), c3 + more * (1.0 - c3)
    return c0, c1, c2, c3


@triton.jit
def cubic(c0, c1, c2, c3, share):
    """ρ at ``share`` [R, N] of a piece from its control points [R, K]: [R, N, K]."""
    s = tl.minimum(tl.maximum(share, 0.0), 1.0)[:, :, None]
    r = 1.0 - s
    low = r * c0[:, None, :] + (3.0 * s) * c1[:, None, :]
    return (r * r) * low + (s * s) * ((3.0 * r) * c2[:, None, :] + s * c3[:, None, :])


@triton.jit
def seen_after(row, time, kind, triggers, reach, recent, R, KP: tl.constexpr, AFTER: tl.constexpr):
    """Σ log(1 - r) of the parts that look at last triggers, for events of ``kind`` that are observed at ``time``."""
    total = time * 0.0
    for a in tl.static_range(AFTER):
        soon = time - tl.load(triggers + a * R.to(tl.int64) + row) < tl.load(reach + a)
        total += tl.log(1.0 - tl.load(recent + a * (2 * KP) + tl.where(soon, 0, KP) + kind))
    return total


@triton.jit
def remember(row, time, kind, read, triggers, is_trigger, R, KP: tl.constexpr, AFTER: tl.constexpr):
    """The time of a trigger replaces that of the trigger before, where an event of ``kind`` is ``read`` at ``time``."""
    for a in tl.static_range(AFTER):
        starts = tl.load(is_trigger + a * KP + kind) != 0
        tl.store(triggers + a * R.to(tl.int64) + row, time, mask=read & starts)
