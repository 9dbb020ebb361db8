"""Streams that a model draws in place of given ones.

With nothing observed and everything missing, a filtering particle is a draw from the model. So whichever engine is
fastest draws the streams; where that is the reference, and on a GPU, ``simulate`` does, which keeps no weights.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from retrodict.events.stream_set import StreamSet
from retrodict.missingness import ByType
from retrodict.models.base import Model
from retrodict.models.simulate import simulate
from retrodict.proposals.filtering import Filtering
from retrodict.smc.engines import choose
from retrodict.smc.impute import impute
from retrodict.smc.options import Options


def draw_like(model: Model, streams: StreamSet, seed: int = 0) -> StreamSet:
    """A stream from the model in place of each of these: it starts and lasts as that one does, and has its id.

    One that runs far beyond the longest of these raises a RunawayError.
    """
    streams = model.matched(streams)
    most = 1000 + 100 * int(streams.lengths.max(initial=0))
    everything = Filtering(model, ByType(1.0))
    if model.device.type != "cpu" or choose("auto", everything, Options(1, None, max_events=most)).name == "torch":
        drawn = simulate(model, len(streams), streams.durations, seed, max_events=most)
        times = drawn.event_times + np.repeat(streams.starts, drawn.lengths)
        return _with_events(streams, times, drawn.event_types, drawn.offsets)
    none = np.zeros(0, dtype=np.int64)
    nothing = _with_events(streams, np.zeros(0), none, np.zeros(len(streams) + 1, dtype=np.int64))
    found = impute(nothing, everything, 1, seed, resample=None, max_events=most)
    return _with_events(streams, found.event_times, found.event_types, found.offsets)


def _with_events(
    streams: StreamSet, times: NDArray[np.float64], types: NDArray[np.int64], offsets: NDArray[np.int64]
) -> StreamSet:
    """The same streams with other events, none of which lies beyond the end by an error of rounding."""
    times = np.minimum(times, np.repeat(streams.ends, np.diff(offsets)))
    about = (streams.starts, streams.ends, streams.ids, streams.types)
    return StreamSet.trusted(times, types, offsets, *about, axis=streams.axis)
