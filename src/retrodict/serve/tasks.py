"""What waits in the queue: streams to impute for a request, or other work that nothing is shared with."""

from __future__ import annotations

import time
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import Any

from retrodict.events.stream_set import StreamSet
from retrodict.proposals import Proposal
from retrodict.serve.limits import ServeLimits
from retrodict.smc.engines import choose
from retrodict.smc.options import Options
from retrodict.smc.posterior import Posterior

USUAL = Options.of(1, "systematic", 0.5, None, None, 1)  # as far as the choice of an engine hangs on them
_ALIKE = {"native"}  # engines that give a stream the same bits in any batch


@dataclass(eq=False, kw_only=True)
class Task:
    """What waits in the queue for a worker, and somebody for its answer."""

    future: Future[bytes] = field(default_factory=Future)
    arrived: float = field(default_factory=time.monotonic)
    is_started: bool = False
    is_abandoned: bool = False
    shares: bool = False

    def abandon(self) -> None:
        """Nobody waits for the answer: it is not run, or as little of it as is left to stop."""
        self.is_abandoned = True
        self.future.cancel()

    def begin(self) -> bool:
        """Whether it is still to be run."""
        self.is_started = self.future.set_running_or_notify_cancel()
        return self.is_started


@dataclass(eq=False)
class Call(Task):
    """Work that shares a run with nothing."""

    work: Callable[[], bytes]


@dataclass(eq=False)
class Job(Task):
    """The streams of a request, over the model's types, and how to answer from their posterior.

    It ``shares`` a run where its engine gives the same bits in any batch.
    """

    observed: StreamSet
    proposal: Proposal
    particles: int
    seed: int
    answer: Callable[[Posterior], bytes]
    max_events: int
    cut: bool = False

    @property
    def key(self) -> tuple[Any, ...]:
        """Jobs of the same key can share a run."""
        return id(self.proposal), self.particles, self.seed, self.max_events, self.cut, self.observed.axis


def make_job(
    observed: StreamSet,
    proposal: Proposal,
    particles: int | None,
    seed: int,
    answer: Callable[[Posterior], bytes],
    most: ServeLimits,
    cut: bool = False,
) -> Job:
    """A job with the particles that its engine affords, where a request leaves them open."""
    engine = choose("auto", proposal, USUAL)
    count = particles or min(engine.affords, most.particles)
    return Job(observed, proposal, count, seed, answer, most.missing, cut, shares=engine.name in _ALIKE)
