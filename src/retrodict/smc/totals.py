"""How many events are missing, give or take: intervals for the count of one stream, and for a total over streams.

Given the model, streams are independent, so that the variance of a total is the sum of the streams' variances.
What may be wrong with the model itself, or with what is said to go missing, is in none of these intervals. The lagged
ensemble draws stretches of a stream apart, and does not know what their counts have in common.
"""

from __future__ import annotations

import math
from statistics import NormalDist
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from retrodict.errors import DataError

if TYPE_CHECKING:
    from retrodict.smc.guesses import Guesses

LEVEL = 0.9


class Total(NamedTuple):
    """The expected number of missing events, and from ``low`` to ``high``, whole numbers, with what probability."""

    expected: float
    low: int
    high: int
    level: float = LEVEL

    @property
    def interval(self) -> str:
        """The interval in words."""
        return f"{self.low:,} to {self.high:,}"

    def __str__(self) -> str:
        return f"{as_number(self.expected)} expected missing, {100 * self.level:.3g} %: {self.interval}"


def as_number(expected: float) -> str:
    """An expected number of events as a person reads it: a whole one from 10 on."""
    return f"{expected:,.0f}" if expected >= 10 else f"{expected:.1f}" if expected >= 1 else f"{expected:.2f}"


def check_level(level: float) -> float:
    """The probability of an interval, refused where it is none."""
    if not 0 < level < 1:
        raise DataError(f"level= is {level}", remedy="give a probability between 0 and 1, such as 0.9")
    return level


def intervals(counts: NDArray[np.int64], weights: NDArray[np.float64], level: float = LEVEL) -> NDArray[np.int64]:
    """The weighted quantiles of the counts [N, M] of each stream that leave out as much below as above, [N, 2]."""
    order, tail = counts.argsort(1), (1 - level) / 2
    cumulative = np.take_along_axis(weights, order, 1).cumsum(1)
    edges = [(cumulative < (each - 1e-9) * cumulative[:, -1:]).sum(1) for each in (tail, 1 - tail)]
    places = np.stack(edges, 1).clip(max=counts.shape[1] - 1)
    return np.take_along_axis(np.take_along_axis(counts, order, 1), places, 1)


def moments(counts: NDArray[np.int64], weights: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Mean and variance of the weighted counts [N, M] of each stream, [N] each."""
    mean = (weights * counts).sum(1)
    return mean, (weights * (counts - mean[:, None]) ** 2).sum(1)


def total_of(counts: NDArray[np.int64], weights: NDArray[np.float64], level: float = LEVEL) -> Total:
    """The total of the weighted counts [N, M] of N streams; the interval of one stream is that of its quantiles."""
    mean, variance = moments(counts, weights)
    if len(counts) == 1:
        low, high = intervals(counts, weights, level)[0].tolist()
        return Total(float(mean[0]), low, high, level)
    return total_by(float(mean.sum()), float(variance.sum()), level)


def total_by(expected: float, variance: float, level: float = LEVEL) -> Total:
    """The total with this mean and variance by the normal approximation, which is never below 0.

    A whole number n stands for the stretch from n - 1/2 to n + 1/2.
    """
    reach = NormalDist().inv_cdf((1 + level) / 2) * math.sqrt(max(variance, 0.0))
    low, high = math.ceil(expected - reach - 0.5), math.floor(expected + reach + 0.5)
    return Total(expected, max(low, 0), max(high, low, 0), level)


def totals_by_type(guesses: Guesses, which: NDArray[np.int64], types: int) -> list[Total]:
    """The total of each type over the streams of these numbers, and last that of all types together, [K + 1]."""
    whole = total_of(guesses.counts()[which], guesses.weights[which])
    if len(which) == 1:
        own = guesses.of_streams(which)
        return [*(total_of(own.counts(own.event_types == k), own.weights) for k in range(types)), whole]
    mean, variance = np.zeros(types), np.zeros(types)
    for i in which.tolist():
        of_stream, squares = _moments_by_type(guesses, i, types)
        mean += of_stream
        variance += squares - of_stream**2
    return [*(total_by(m, v) for m, v in zip(mean.tolist(), variance.tolist(), strict=True)), whole]


def _moments_by_type(guesses: Guesses, i: int, types: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """The mean number of events of stream i, and that of its square, by type, [K] each."""
    M = guesses.weights.shape[1]
    offsets = guesses.offsets[i * M : (i + 1) * M + 1]
    guess = np.repeat(np.arange(M), np.diff(offsets))
    pairs, counts = np.unique(guess * types + guesses.event_types[offsets[0] : offsets[-1]], return_counts=True)
    own, weights = pairs % types, guesses.weights[i][pairs // types]
    mean = np.bincount(own, weights * counts, minlength=types).astype(np.float64)
    return mean, np.bincount(own, weights * counts**2, minlength=types).astype(np.float64)
