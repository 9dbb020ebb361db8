"""Where a model is: on the CPU or on a GPU."""

from __future__ import annotations

import torch

from retrodict.errors import ModelError


def find_device(name: str, count: int = 1) -> str:
    """cuda or cpu, so many of them; "auto" takes a GPU where there is one."""
    if name not in ("auto", "cpu", "cuda"):
        raise ModelError(f"unknown device {name!r}. Choose auto, cpu or cuda.")
    if name == "cuda" and not torch.cuda.is_available():
        raise ModelError("there is no CUDA device here. Choose device auto or cpu.")
    found = name if name != "auto" else "cuda" if torch.cuda.is_available() else "cpu"
    if found == "cuda" and torch.cuda.device_count() < count:
        raise ModelError(f"there are {torch.cuda.device_count()} CUDA devices here, and not {count}: ask for fewer.")
    return found
