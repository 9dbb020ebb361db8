"""What all compiled kernels of this folder share: names of arrays, a binary search, threads, and code kept on disk.

Numba looks only at an entry point's own file to decide whether the machine code on disk is still good, although
kernels from other files are part of it; ``entry_point`` therefore stamps it with the sources of the whole folder.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, TypeAlias, TypeVar, cast

import numpy as np
from numba import njit
from numpy.typing import NDArray

Floats: TypeAlias = NDArray[np.float64]
Ints: TypeAlias = NDArray[np.int64]
Indices: TypeAlias = NDArray[np.uint32]  # without a sign, indexing need not look for negative ones
Shorts: TypeAlias = NDArray[np.int32]
Bytes: TypeAlias = NDArray[np.int8]
Bools: TypeAlias = NDArray[np.bool_]

_Function = TypeVar("_Function", bound=Callable[..., Any])
_Result = TypeVar("_Result")
_SOURCES = sorted(Path(__file__).parent.glob("*.py"))
_STAMP = hashlib.sha256(b"".join(path.read_bytes() for path in _SOURCES)).hexdigest()


def entry_point(function: _Function) -> _Function:
    """Compile on first use, keep the result on disk until a file of this folder changes, and let threads run it."""
    compiled: Any = njit(cache=True, nogil=True)(function)
    index = getattr(getattr(compiled, "_cache", None), "_cache_file", None)
    if index is not None:
        index._source_stamp = _STAMP
    return cast(_Function, compiled)


def in_threads(
    work: Callable[[int], _Result], count: int, threads: int | None, progress: Callable[[], None] | None = None
) -> list[_Result]:
    """What ``work`` gives for 0 to ``count`` - 1; entry points called in it run side by side (None: on all cores)."""
    if threads is None:
        threads = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    results = []
    with ThreadPoolExecutor(max(1, min(threads, count))) as pool:
        one_by_one = map(work, range(count)) if min(threads, count) <= 1 else pool.map(work, range(count))
        for result in one_by_one:
            results.append(result)
            if progress is not None:
                progress()
    return results


@njit
def first_at_least(values: Any, wanted: float, low: int, high: int) -> int:
    """The first place from ``low`` on in sorted ``values`` [n] that is not below ``wanted``, or ``high``.

    NumPy's own, which also minds NaN and both sides, takes far longer to compile.
    """
    while low < high:
        middle = (low + high) >> 1
        if values[middle] < wanted:
            low = middle + 1
        else:
            high = middle
    return low


@njit
def longest(offsets: Ints) -> int:
    """The largest number of events that any owner has: owner m has ``offsets[m]:offsets[m + 1]``."""
    size = 0
    for m in range(len(offsets) - 1):
        size = max(size, offsets[m + 1] - offsets[m])
    return size
