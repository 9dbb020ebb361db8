"""An atom at the start instant: the probability of an event exactly at the start of a stream.

In many data sets a stream begins with an event because that is how it was cut out (every taxi shift starts
with a pick-up at time 0). A density has nothing to integrate over at that instant and would grow for as
long as one trains; a categorical over "no event" and each type is the right description.
"""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor, nn

from retrodict.events.stream_set import StreamSet


class StartAtom(nn.Module):
    """Categorical over "no event" (index 0) and type k (index 1 + k) at the start instant."""

    log_probs: Tensor

    def __init__(self, log_probs: Tensor) -> None:
        super().__init__()
        self.register_buffer("log_probs", log_probs)

    @classmethod
    def from_streams(cls, streams: StreamSet, pseudo_count: float = 0.5) -> StartAtom | None:
        """Estimate from data, every outcome with ``pseudo_count`` extra; None where no stream starts so."""
        first = first_types(streams)
        if not (first >= 0).any():
            return None
        counts = np.bincount(first + 1, minlength=streams.num_types + 1) + pseudo_count
        return cls(torch.as_tensor(np.log(counts / counts.sum()), dtype=torch.float64))

    def log_none(self) -> Tensor:
        """log P(no event at the start)."""
        return self.log_probs[0]

    def log_type(self, types: Tensor) -> Tensor:
        """log P(an event of this type at the start), shape of ``types``."""
        return self.log_probs[1 + types]


def first_types(streams: StreamSet) -> np.ndarray:
    """The type of the event exactly at each stream's start, or -1 where there is none, [N]."""
    first = np.full(len(streams), -1, dtype=np.int64)
    some = streams.lengths > 0
    event = streams.offsets[:-1][some]
    at_start = streams.event_times[event] == streams.starts[some]
    first[some] = np.where(at_start, streams.event_types[event], -1)
    return first
