"""Small functions of the kernels: the counted random numbers of ``retrodict.random``, and the cell's arithmetic."""

# mypy: allow-untyped-defs
from __future__ import annotations

import os

import triton
import triton.language as tl

_STEP = tl.constexpr(-7046029254386353131)  # 0x9E3779B97F4A7C15 as int64
_MIX1 = tl.constexpr(-4658895280553007687)  # 0xBF58476D1CE4E5B9
_MIX2 = tl.constexpr(-7723592293110705685)  # 0x94D049BB133111EB
_LOG2E = tl.constexpr(1.4426950408889634)
_LN2 = tl.constexpr(0.6931471805599453)


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


if os.environ.get("TRITON_INTERPRET") == "1":

    @triton.jit
    def exp2(x):
        """2^x."""
        return tl.exp2(x)

    @triton.jit
    def log2(x):
        """The logarithm to base 2."""
        return tl.log2(x)

    @triton.jit
    def inverse(x):
        """1 / x."""
        return 1.0 / x

    @triton.jit
    def quick_tanh(x):
        """tanh to three digits."""
        return 1.0 - 2.0 / (tl.exp2(tl.minimum(x * (2.0 * _LOG2E), 60.0)) + 1.0)

else:
    # One instruction each: Triton's own take care of subnormal numbers, which do not matter here, with several more.

    @triton.jit
    def exp2(x):
        """2^x."""
        return tl.inline_asm_elementwise(
            "ex2.approx.ftz.f32 $0, $1;", "=f,f", [x], dtype=tl.float32, is_pure=True, pack=1
        )

    @triton.jit
    def log2(x):
        """The logarithm to base 2."""
        return tl.inline_asm_elementwise(
            "lg2.approx.ftz.f32 $0, $1;", "=f,f", [x], dtype=tl.float32, is_pure=True, pack=1
        )

    @triton.jit
    def inverse(x):
        """1 / x."""
        return tl.inline_asm_elementwise(
            "rcp.approx.ftz.f32 $0, $1;", "=f,f", [x], dtype=tl.float32, is_pure=True, pack=1
        )

    @triton.jit
    def quick_tanh(x):
        """tanh to three digits."""
        return tl.inline_asm_elementwise("tanh.approx.f32 $0, $1;", "=f,f", [x], dtype=tl.float32, is_pure=True, pack=1)


@triton.jit
def tanh(x):
    """By one exponential, with an error near 1e-7 whatever x is."""
    return 1.0 - 2.0 * inverse(exp2(tl.minimum(x * (2.0 * _LOG2E), 60.0)) + 1.0)


@triton.jit
def sigmoid(x):
    """1 / (1 + exp(-x))."""
    return inverse(1.0 + exp2(tl.minimum(-x * _LOG2E, 60.0)))


@triton.jit
def softplus2(x):
    """log2(1 + 2^x), with an absolute error near 1e-7."""
    return tl.maximum(x, 0.0) + log2(1.0 + exp2(-tl.abs(x)))


@triton.jit
def softplus(x):
    """log(1 + exp(x)), with an absolute error near 1e-7."""
    return softplus2(x * _LOG2E) * _LN2


@triton.jit
def log_softplus(x):
    """log log(1 + exp(x)) with a relative error near 1e-7, also far below zero."""
    y = tl.exp(-tl.abs(x))
    # log(1 + y) = 2 artanh(y / (2 + y)) loses nothing where y is small.
    z = y / (2.0 + y)
    w = z * z
    series = 1.0 / 9.0 + w * (1.0 / 11.0 + w * (1.0 / 13.0))
    series = 1.0 + w * (1.0 / 3.0 + w * (0.2 + w * (1.0 / 7.0 + w * series)))
    value = tl.maximum(x, 0.0) + 2.0 * z * series
    return tl.where(x < -15.0, x - 0.5 * y, tl.log(tl.maximum(value, 1e-30)))


@triton.jit
def cell_at(start, target, decay, elapsed):
    """c(t) of the continuous-time LSTM."""
    return target + (start - target) * exp2(-decay * elapsed * _LOG2E)


@triton.jit
def add_dot(a, b, b_rest, acc):
    """acc + a (b + b_rest) to single precision by three products of half-precision numbers; |a| stays below 6e4."""
    high = a.to(tl.float16)
    rest = (a - high.to(tl.float32)).to(tl.float16)
    acc = tl.dot(high, b, acc)
    acc = tl.dot(rest, b, acc)
    return tl.dot(high, b_rest, acc)
