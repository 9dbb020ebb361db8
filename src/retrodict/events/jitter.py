"""Times that were rounded to a lattice, spread at random within their cells: densities mean something again.

A model of continuous time gains without bound by learning that times are whole minutes, or that two events have the
same time. Compared on spread times, models gain nothing by that.
"""

from __future__ import annotations

import numpy as np

from retrodict.events.stream_set import StreamSet
from retrodict.events.suspicion import lattice_of
from retrodict.random import stream_keys


def spread(streams: StreamSet, step: float | None = None, seed: int = 0) -> StreamSet:
    """The streams with times moved by up to half a ``step`` either way, at random, in their order.

    Without a ``step`` it is the one that nearly all times are multiples of; streams without such a lattice stay as they
    are. A first event exactly at the start of its stream, and a last one at its end, stay. A stream's draws depend on
    its id alone.
    """
    if step is None:
        found = lattice_of(streams)
        step = 0.0 if found is None else found.step
    if not step or not streams.num_events:
        return streams
    keys = stream_keys(seed, streams.ids).numpy().astype(np.uint64)
    times, lengths, owner = streams.event_times.copy(), streams.lengths, streams.stream_of_event
    draws = np.concatenate([np.random.default_rng(int(key)).random(n) for key, n in zip(keys, lengths, strict=True)])
    low, high = streams.starts[owner], streams.ends[owner]
    some = lengths > 0
    first, last = streams.offsets[:-1][some], streams.offsets[1:][some] - 1
    stays = np.zeros(len(times), dtype=bool)
    stays[first] = times[first] == low[first]
    stays[last] |= times[last] == high[last]
    # Within the stream, and at most half of a cell: cells stay in their order.
    left, right = np.maximum(times - step / 2, low), np.minimum(times + step / 2, high)
    times = np.where(stays, times, left + (right - left) * draws)
    order = np.lexsort((times, owner))
    return streams.replace(event_times=times[order])  # types keep the order that events had
