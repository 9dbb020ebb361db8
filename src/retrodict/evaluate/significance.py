"""A paired permutation test: is one method better than another on the same streams?"""

from __future__ import annotations

from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from retrodict.errors import DataError

Alternative = Literal["two-sided", "less", "greater"]


class PermutationTest(NamedTuple):
    """Mean of a - b, the p-value of "a and b are exchangeable", and how many sign flips it rests on."""

    difference: float
    p_value: float
    permutations: int
    exact: bool


def paired_permutation_test(
    a: ArrayLike, b: ArrayLike, *, alternative: Alternative = "two-sided", permutations: int = 20_000, seed: int = 0
) -> PermutationTest:
    """Compare paired scores ``a`` [N] and ``b`` [N] by flipping the signs of their differences.

    All 2^N flips are tried where that is at most ``permutations``; otherwise that many random ones, and the
    observed one counts among them, so that the p-value is never below 1 / (permutations + 1). ``less`` asks
    whether a is below b (a better distance).
    """
    x, y = np.asarray(a, dtype=np.float64), np.asarray(b, dtype=np.float64)
    if x.shape != y.shape or x.ndim != 1 or not len(x):
        remedy = "pass two flat lists of one score for each stream, in the same order"
        raise DataError(f"scores of shapes {x.shape} and {y.shape} are not paired", remedy=remedy)
    if not (np.isfinite(x).all() and np.isfinite(y).all()):
        raise DataError("a score is not finite", remedy="leave out streams that could not be scored")
    if alternative not in ("two-sided", "less", "greater"):
        raise DataError(f"unknown alternative {alternative!r}", remedy='pass "two-sided", "less" or "greater"')
    if permutations < 1:
        raise DataError(f"permutations is {permutations}", remedy="pass at least 1")
    difference = x - y
    if 2 ** len(difference) <= permutations:
        sums = _every_flip(difference)
        extreme = _as_extreme(sums, difference, alternative)
        return PermutationTest(float(difference.mean()), extreme / len(sums), len(sums), True)
    rng = np.random.default_rng(seed)
    extreme = 0
    rows = max(1, 4_000_000 // len(difference))
    for first in range(0, permutations, rows):
        shape = (min(rows, permutations - first), len(difference))
        flips = rng.integers(0, 2, size=shape, dtype=np.int8)
        sums = (2.0 * flips - 1.0) @ difference
        extreme += _as_extreme(sums, difference, alternative)
    p_value = (extreme + 1) / (permutations + 1)
    return PermutationTest(float(difference.mean()), p_value, permutations, False)


def _every_flip(difference: NDArray[np.float64]) -> NDArray[np.float64]:
    """The sum of the differences under each of the 2^N choices of signs."""
    sums = np.zeros(1)
    for value in difference:
        sums = np.concatenate([sums - value, sums + value])
    return sums


def _as_extreme(sums: NDArray[np.float64], difference: NDArray[np.float64], alternative: str) -> int:
    """How many sums are at least as extreme as the observed one, ties by rounding included."""
    observed, slack = difference.sum(), 1e-12 * np.abs(difference).sum()
    if alternative == "less":
        return int((sums <= observed + slack).sum())
    if alternative == "greater":
        return int((sums >= observed - slack).sum())
    return int((np.abs(sums) >= abs(observed) - slack).sum())
