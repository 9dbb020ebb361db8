"""Step through Algorithm 1 by hand, from one observed event to the next."""

from __future__ import annotations

from collections.abc import Iterator

from retrodict.events.batch import make_batch
from retrodict.events.stream import EventStream
from retrodict.events.stream_set import StreamSet
from retrodict.models.quadrature import Integral
from retrodict.proposals.base import Proposal
from retrodict.random import stream_keys
from retrodict.smc.impute import matched
from retrodict.smc.options import Options
from retrodict.smc.propose import Sampler
from retrodict.smc.sampler import SequentialMonteCarlo, Step


def sweep(
    observed: StreamSet | EventStream,
    proposal: Proposal,
    particles: int = 50,
    seed: int = 0,
    resample: str | None = "systematic",
    ess_threshold: float = 0.5,
    *,
    sampler: str | Sampler | None = None,
    integral: Integral | None = None,
    max_events: int = 100_000,
) -> Iterator[Step]:
    """What ``rd.impute`` with the torch engine does, one observed event at a time; options are as there.

    Step i has drawn the missing events up to observed event i of every stream, weighed and perhaps resampled the
    particles, and read the event; a stream's last step takes it to its end. ``step.particles`` is what is carried on
    and ``step.info`` what is only looked at (``smc/particles.py``, ``smc/sampler.py``).

    >>> import retrodict as rd
    >>> filtering = rd.Filtering(rd.Hawkes([0.2, 0.1], [[0.0, 0.9], [0.0, 0.0]], 2.0), rd.ByType([1.0, 0.0]))
    >>> stream = rd.EventStream([3.0, 7.0], [1, 1], end=10.0)
    >>> for step in rd.sweep(stream, filtering, particles=1000):
    ...     missing, weights = step.particles.counts, step.particles.log_weights.softmax(0)
    ...     print(f"event {step.number}: {float(weights @ missing.double()):.2f} missing so far")
    event 0: 0.77 missing so far
    event 1: 1.59 missing so far
    event 2: 1.68 missing so far
    """
    options = Options.of(particles, resample, ess_threshold, sampler, integral, max_events)
    model = proposal.model
    streams = matched(observed, model)
    batch = make_batch(streams, dtype=model.dtype, device=model.device)
    return SequentialMonteCarlo(batch, proposal, stream_keys(seed, streams.ids).to(model.device), options).steps()
