"""Small functions of the kernels: the counted random numbers of ``retrodict.random``, and the cell's arithmetic."""

# mypy: allow-untyped-defs
from __future__ import annotations

import triton
import triton.language as tl

_STEP = tl.constexpr(-7046029254386353131)  # 0x9E3779B97F4A7C15 as int64
_MIX1 = tl.constexpr(-4658895280553007687)  # 0xBF58476D1CE4E5B9
_MIX2 = tl.constexpr(-7723592293110705685)  # 0x94D049BB133111EB
_LOG2E = tl.constexpr(1.4426950408889634)


@triton.jit
def _mix(x):
    """SplitMix64's mix of int64 numbers."""
    x = (x ^ ((x >> 30) & 0x3FFFFFFFF)) * _MIX1
    x = (x ^ ((x >> 27) & 0x1FFFFFFFFF)) * _MIX2
    return x ^ ((x >> 31) & 0x1FFFFFFFF)


@triton.jit
def split(keys, branch):
    """``retrodict.random.split``: keys of an independent sequence."""
    # A branch known when compiling becomes a tensor first: Python's integers do not wrap around.
    return _mix(_mix(keys) + (keys * 0 + (branch + 1)) * _STEP)


@triton.jit
def uniform(keys, counter):
    """``retrodict.random.uniform``: float64 in (0, 1), number ``counter`` of each key."""
    bits = (_mix(keys + (counter + 1) * _STEP) >> 12) & 0xFFFFFFFFFFFFF
    return (bits.to(tl.float64) + 0.5) * 2.220446049250313e-16


@triton.jit
def tanh(x):
    """By one exponential, with an error near 1e-7 whatever x is."""
    return 1.0 - 2.0 / (tl.exp2(x * (2.0 * _LOG2E)) + 1.0)


@triton.jit
def sigmoid(x):
    """1 / (1 + exp(-x))."""
    return 1.0 / (1.0 + tl.exp2(-x * _LOG2E))


@triton.jit
def softplus(x):
    """log(1 + exp(x)), with an absolute error near 1e-7."""
    return tl.maximum(x, 0.0) + tl.log(1.0 + tl.exp(-tl.abs(x)))


@triton.jit
def log_softplus(x):
    """log log(1 + exp(x)) of float64 numbers, also far below zero."""
    low = tl.minimum(x, -15.0)
    plain = tl.maximum(x, 0.0) + tl.log(1.0 + tl.exp(-tl.abs(x)))
    return tl.where(x < -15.0, low - 0.5 * tl.exp(low), tl.log(tl.maximum(plain, 1e-9)))


@triton.jit
def cell_at(start, target, decay, elapsed):
    """c(t) of the continuous-time LSTM."""
    return target + (start - target) * tl.exp2(-decay * elapsed * _LOG2E)
