"""What the benchmarks share: a stopwatch that waits for the GPU."""

from __future__ import annotations

import time
from collections.abc import Callable

import torch


def timed(run: Callable[[], object], device: str) -> float:
    """Seconds that ``run`` takes on the device."""
    if device == "cuda":
        torch.cuda.synchronize()
    begin = time.perf_counter()
    run()
    if device == "cuda":
        torch.cuda.synchronize()
    return time.perf_counter() - begin
