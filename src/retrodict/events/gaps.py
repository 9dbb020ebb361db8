"""The cost of decoding that is taken where none is given."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from retrodict.events.stream_set import StreamSet


def half_a_gap(streams: StreamSet, events: float) -> float:
    """Half of the mean gap between this many events in all of these streams: the cost that is used by default."""
    return half_of(streams.durations, events)


def half_of(durations: NDArray[np.float64], events: float) -> float:
    """Half of the mean gap between this many events in streams that last so long, [N]."""
    return 0.5 * float(np.sum(durations)) / max(events + len(durations), 1.0) or 1.0
