"""Binary search for the kernels: far quicker to compile than NumPy's, which also minds NaN and both sides."""

from __future__ import annotations

from typing import Any

from numba import njit


@njit
def first_at_least(values: Any, wanted: float, low: int, high: int) -> int:
    """The first place from ``low`` on in sorted ``values`` [n] that is not below ``wanted``, or ``high``."""
    while low < high:
        middle = (low + high) >> 1
        if values[middle] < wanted:
            low = middle + 1
        else:
            high = middle
    return low
