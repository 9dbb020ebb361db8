"""Decays that the cells of a neural model start from: spread over the time scales on which the gaps of streams lie."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from retrodict.events.stream_set import StreamSet
from retrodict.models.hawkes_grid import gaps_within

_VARIANCE = math.pi**2 / 6  # of the logs of exponential gaps, whose mean lies Euler's constant below the log of theirs
_SPREAD = 2.0  # standard deviations


def first_decays(streams: StreamSet, count: int) -> NDArray[np.float64]:
    """``count`` decays, slowest first, per unit of time.

    Were gaps exponential with a mean that varies, the logs of these means would vary as much as the logs of the gaps do
    beyond an exponential's own variance. Decays lie evenly on a logarithmic axis within two standard deviations of the
    means, each log 2 over a mean. Gaps no more bursty than exponential ones have one mean, and decays are equal.
    """
    logs = np.log(gaps_within(streams))
    more = logs.var() - _VARIANCE if len(logs) else 0.0
    if more <= 0:
        total = float(streams.durations.sum())
        return np.full(count, math.log(2) * ((streams.num_events + len(streams)) / total if total > 0 else 1.0))
    middle, reach = math.log(math.log(2)) - logs.mean() - np.euler_gamma, _SPREAD * math.sqrt(more)
    return np.asarray(np.exp(middle + np.linspace(-reach, reach, count)))
