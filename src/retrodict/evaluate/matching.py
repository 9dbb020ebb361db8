"""One-to-one matching of events within a time tolerance."""

from __future__ import annotations

import numpy as np
from numba import njit

from retrodict.decode.kernels import Floats, Ints


@njit(cache=True)
def count_within(imputed: Floats, imputed_offsets: Ints, true: Floats, true_offsets: Ints, tolerance: float) -> Ints:
    """Size [G] of the largest matching in each group of events at most ``tolerance`` apart.

    Going through both in time order and matching whatever can be matched is optimal, since the events in
    reach of a later event never start earlier.
    """
    matched = np.zeros(len(imputed_offsets) - 1, np.int64)
    for group in range(len(matched)):
        i, j = imputed_offsets[group], true_offsets[group]
        while i < imputed_offsets[group + 1] and j < true_offsets[group + 1]:
            if abs(imputed[i] - true[j]) <= tolerance:
                matched[group] += 1
                i += 1
                j += 1
            elif imputed[i] < true[j]:
                i += 1
            else:
                j += 1
    return matched
