"""How kernels are launched and recorded."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch


def launch(kernel: Any, groups: tuple[int, ...], values: Any, cut: dict[str, Any], warps: int, stages: int = 2) -> None:
    """Launch a kernel with the buffers its parameters name."""
    wanted = {name: values[name] for name in kernel.arg_names if name in values}
    kernel[groups](**wanted, **cut, num_warps=warps, num_stages=stages)


def recorded(work: Callable[[], None]) -> torch.cuda.CUDAGraph:
    """Launches as a CUDA graph; they must have been run once before."""
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph, capture_error_mode="thread_local"):
        work()
    return graph
