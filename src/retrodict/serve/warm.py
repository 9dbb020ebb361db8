"""A first run of every model, so that nothing is left to be compiled or packed when requests come."""

from __future__ import annotations

from contextlib import suppress

import torch

from retrodict.errors import RetrodictError
from retrodict.events.stream import EventStream
from retrodict.events.stream_set import StreamSet
from retrodict.serve.models import Models
from retrodict.serve.quiet import quiet
from retrodict.smc.diagnostics import complaints
from retrodict.smc.impute import impute


def warm_up(models: Models) -> None:
    """Impute, decode and ask, for every model, with few particles."""
    torch.set_num_threads(1)
    for served in models:
        length = 4.0 / max(float(served.rates.sum()), 1e-12)
        stream = EventStream([0.3 * length, 0.6 * length], [0, 0], end=length, id="warm")
        streams = StreamSet([stream], types=served.types)
        with suppress(RetrodictError), quiet():
            proposal = served.proposal("0.5", None, False, None)
            posterior = impute(streams, proposal, particles=20, max_events=1000)
            posterior.consensus(length / 4)
            posterior.probability(0, 0.0, length)
            posterior.intensity([0.0, length])
            posterior.suspicions()
            list(complaints(posterior))
