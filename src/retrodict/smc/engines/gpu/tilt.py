"""What the future adds to the drive: a table for each segment, and units in which past and future interact.

    u_k · h̄(t) + w_k · tanh(P h(t) + Q h̄(t) + b)

Sampling and weights use the same numbers for λ^q, so rounding in here makes q a slightly different proposal and leaves
weights exact: the products with P and w are of single half-precision numbers, and tanh is the hardware's.
"""

# mypy: allow-untyped-defs
from __future__ import annotations

import triton
import triton.language as tl

from retrodict.smc.engines.gpu.maths import quick_tanh

TABLE = tl.constexpr(8)  # cells of the table of each segment


@triton.jit
def place_of(ahead, whole):
    """Where in the table the nodes lie that have ``ahead`` to go to the right end, in [0, 8]."""
    return tl.sqrt(tl.minimum(tl.maximum(ahead * whole, 0.0), 1.0)) * TABLE


@triton.jit
def future(table, place, column, WIDTH: tl.constexpr):
    """Columns of the table between its nodes by cubic Hermite interpolation; ``place`` [R, N] in [0, 8]."""
    j = tl.minimum(place.to(tl.int32), TABLE - 1)
    f = (place - j.to(tl.float32))[:, :, None]
    at = table + (j * (2 * WIDTH))[:, :, None] + column[None, None, :]
    x0, m0, x1, m1 = tl.load(at), tl.load(at + WIDTH), tl.load(at + 2 * WIDTH), tl.load(at + 3 * WIDTH)
    rise = x1 - x0
    return x0 + f * (m0 + f * ((3.0 * rise - 2.0 * m0 - m1) + f * (m0 + m1 - 2.0 * rise)))


@triton.jit
def project(h, v, v_rest, drive, past, sums, UNITS: tl.constexpr):
    """drive + h v to single precision by three products of half-precision numbers, and sums + h P by one."""
    high = h.to(tl.float16)
    rest = (h - high.to(tl.float32)).to(tl.float16)
    drive = tl.dot(high, v, drive)
    drive = tl.dot(rest, v, drive)
    drive = tl.dot(high, v_rest, drive)
    if UNITS > 0:
        sums = tl.dot(high, past, sums)
    return drive, sums


@triton.jit
def mixed(sums, own, place, mix_out, BR: tl.constexpr, KP: tl.constexpr, UNITS: tl.constexpr):
    """w_k · tanh(P h + Q h̄ + b), [R, 4, K], from P h at four nodes of each row, [4 R, W]; ``place`` [R, 4 or 1]."""
    u, k = tl.arange(0, UNITS), tl.arange(0, KP)
    bent = quick_tanh(tl.reshape(sums, (BR, 4, UNITS)) + future(own + KP, place, u, KP + UNITS))
    out = tl.trans(tl.load(mix_out + k[:, None] * UNITS + u[None, :]))
    return tl.reshape(tl.dot(tl.reshape(bent, (BR * 4, UNITS)).to(tl.float16), out), (BR, 4, KP))
