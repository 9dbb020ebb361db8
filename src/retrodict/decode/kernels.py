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
_EVENTS, _STREAMS = 20_000, 256  # particle events and streams that a thread takes at a time
_STAMP = hashlib.sha256(b"".join(path.read_bytes() for path in _SOURCES)).hexdigest()


def entry_point(function: _Function) -> _Function:
    """Compile on first use, keep the result on disk until a file of this folder changes, and let threads run it."""
    compiled: Any = njit(cache=True, nogil=True)(function)
    index = getattr(getattr(compiled, "_cache", None), "_cache_file", None)
    if index is not None:
        index._source_stamp = _STAMP
    return cast(_Function, compiled)


def in_threads(
    work: Callable[[int, int], _Result],
    edges: Ints,
    threads: int | None,
    progress: Callable[[], None] | None = None,
) -> list[_Result]:
    """``work(first, stop)`` of each block of streams between ``edges``; entry points in it run side by side.

    ``threads`` None stands for all cores; ``progress`` is called once for each stream.
    """
    if threads is None:
        threads = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    results, blocks = [], (edges[:-1].tolist(), edges[1:].tolist())
    with ThreadPoolExecutor(max(1, min(threads, len(edges) - 1))) as pool:
        one_by_one = map(work, *blocks) if min(threads, len(edges) - 1) <= 1 else pool.map(work, *blocks)
        for result, first, stop in zip(one_by_one, *blocks, strict=True):
            results.append(result)
            if progress is not None:
                for _ in range(first, stop):
                    progress()
    return results


def blocks_of(offsets: Ints) -> Ints:
    """Edges of blocks of streams with about ``_EVENTS`` particle events each, or of one stream, [B + 1].

    Stream i owns events ``offsets[i]:offsets[i + 1]``.
    """
    streams = np.arange(len(offsets))
    begins = np.flatnonzero(np.diff(offsets[:-1] // _EVENTS + streams[:-1] // _STREAMS, prepend=-1))
    return np.append(begins, streams[-1])


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
