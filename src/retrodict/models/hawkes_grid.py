"""Decays for kernels that are sums of exponentials: a grid over all the time scales that streams can tell of."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from retrodict.errors import DataError, ModelError
from retrodict.events.stream_set import StreamSet

_STEP, _MOST = 4.0, 12  # neighbouring decays differ by a factor of 4, or by more where that took over 12 decays
_SHORT = 0.01  # the share of gaps that are shorter than the shortest scale


def decay_grid(streams: StreamSet, scales: Literal["auto"] | int | Sequence[float]) -> NDArray[np.float64]:
    """Decays, fastest first, [R]: ``scales`` is "auto", how many there shall be, or the decays themselves.

    They lie evenly on a logarithmic axis, from 1 / the gap that one in a hundred positive gaps falls short of, to
    1 / the longest stream's duration.
    """
    if not isinstance(scales, str | int):
        return _given(scales)
    if scales != "auto" and (isinstance(scales, str | bool) or scales < 1):
        raise ModelError(f'scales must be "auto", a number of at least 1, or a list of decays, but is {scales!r}.')
    longest = float(streams.durations.max(initial=0.0))
    if longest <= 0:
        raise DataError(
            "all streams have length zero: no time scale can be learned",
            remedy="say when streams start and until when they were watched (start and end)",
        )
    gaps = gaps_within(streams)
    shortest = min(float(np.quantile(gaps, _SHORT)), longest) if len(gaps) else longest
    steps = math.ceil(math.log(longest / shortest) / math.log(_STEP) - 1e-9)
    count = min(steps + 1, _MOST) if scales == "auto" else int(scales)
    return np.geomspace(1 / shortest, 1 / longest, count)


def gaps_within(streams: StreamSet) -> NDArray[np.float64]:
    """All positive gaps between two events of a stream."""
    gaps = np.diff(streams.event_times)
    within = np.ones(len(gaps), dtype=bool)
    edges = streams.offsets[1:-1] - 1
    within[edges[(edges >= 0) & (edges < len(gaps))]] = False
    return np.asarray(gaps[within & (gaps > 0)])


def _given(scales: Sequence[float]) -> NDArray[np.float64]:
    decays = np.asarray(scales, dtype=np.float64)
    if decays.ndim != 1 or not len(decays) or not (np.isfinite(decays) & (decays > 0)).all():
        raise ModelError(f"scales must be a list of positive decays, but are {scales!r}.")
    return decays
