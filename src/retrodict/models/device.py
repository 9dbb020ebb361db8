"""Where a model is: on the CPU or on a GPU."""

from __future__ import annotations

import torch

from retrodict.errors import ModelError


def find_device(name: str) -> str:
    """cuda or cpu; "auto" takes a GPU where there is one."""
    if name not in ("auto", "cpu", "cuda"):
        raise ModelError(f"unknown device {name!r}. Choose auto, cpu or cuda.")
    if name == "cuda" and not torch.cuda.is_available():
        raise ModelError("there is no CUDA device here. Choose device auto or cpu.")
    return name if name != "auto" else "cuda" if torch.cuda.is_available() else "cpu"
