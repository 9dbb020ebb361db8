"""Work on many streams in threads: compiled kernels let go of Python while they run."""

from __future__ import annotations

import functools
import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import torch

_LITTLE = 50_000  # numbers that are read in about the time that it takes to hand them to a thread


def share_out(work: Callable[[int, int], Any], streams: int, size: int) -> None:
    """``work(first, stop)`` on streams first to stop, in as many threads as torch uses where ``size`` is much."""
    threads = torch.get_num_threads()
    pieces = min(4 * threads, streams, size // _LITTLE)
    if threads <= 1 or pieces <= 1:
        work(0, streams)
        return
    edges = np.linspace(0, streams, pieces + 1).astype(np.int64).tolist()
    list(_pool(threads).map(work, edges[:-1], edges[1:]))


@functools.cache
def _pool(threads: int) -> ThreadPoolExecutor:
    """Threads that wait for more work: to start them takes as long as a batch."""
    return ThreadPoolExecutor(threads, "retrodict")


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_pool.cache_clear)  # a child has none of its parent's threads
