"""Counter-based random numbers: every number is a pure function of (seed, stream, counter).

A stream's numbers therefore do not depend on the batch it is in, on the order of the streams, or on how
many workers there are. The generator is SplitMix64 (Steele, Lea and Flood, 2014) read as a hash: each
stream gets a 64-bit key from the seed and its id, and number ``n`` of the stream is the mix of
``key + n * odd constant``. It runs on any torch device with integer arithmetic alone, so a CPU and a GPU
give the same bits.
"""

from __future__ import annotations

import hashlib
from collections.abc import Hashable, Iterable

import numpy as np
import torch
from torch import Tensor


def _signed(value: int) -> int:
    """The 64-bit pattern ``value`` as torch's signed int64."""
    value &= 0xFFFFFFFFFFFFFFFF
    return value - (1 << 64) if value >= 1 << 63 else value


_STEP = _signed(0x9E3779B97F4A7C15)
_MIX1 = _signed(0xBF58476D1CE4E5B9)
_MIX2 = _signed(0x94D049BB133111EB)


def _shift(x: Tensor, bits: int) -> Tensor:
    """Logical right shift of int64 (torch's own shift keeps the sign)."""
    return (x >> bits) & ((1 << (64 - bits)) - 1)


def _mix(x: Tensor) -> Tensor:
    x = (x ^ _shift(x, 30)) * _MIX1
    x = (x ^ _shift(x, 27)) * _MIX2
    return x ^ _shift(x, 31)


def stream_keys(seed: int, ids: Iterable[Hashable]) -> Tensor:
    """One 64-bit key per stream, [N] int64, from the seed and the stream's id (not its position)."""
    salt = str(int(seed)).encode()
    digests = b"".join(hashlib.blake2b(str(i).encode(), digest_size=8, key=salt).digest() for i in ids)
    return torch.from_numpy(np.frombuffer(digests, "<i8").astype(np.int64))


def split(keys: Tensor, branch: int | Tensor) -> Tensor:
    """Keys of an independent sequence: one branch for each purpose or particle. Shapes broadcast."""
    return _mix(_mix(keys) + (torch.as_tensor(branch, device=keys.device) + 1) * _STEP)


def uniform(keys: Tensor, counter: Tensor) -> Tensor:
    """Uniform numbers in the open interval (0, 1), float64, one for each (key, counter). Shapes broadcast."""
    bits = _shift(_mix(keys + (counter + 1) * _STEP), 12)
    return (bits.to(torch.float64) + 0.5) * 2.0**-52
