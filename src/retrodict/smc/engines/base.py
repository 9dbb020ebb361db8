"""The contract of an engine, something that runs Algorithm 1, and the reference that fulfils it.

All engines sample the same posterior. The torch engine (``smc/sampler.py``) is the readable reference and takes every
model, mechanism, proposal and option; a faster one may refuse what it was not written for, in words.
"""

from __future__ import annotations

from typing import NamedTuple, Protocol

from torch import Tensor

from retrodict.events.batch import Batch
from retrodict.proposals.base import Proposal
from retrodict.smc.options import Options
from retrodict.smc.particles import Particles, Result
from retrodict.smc.sampler import Begun, SequentialMonteCarlo


class Engine(Protocol):
    """Runs Algorithm 1 on B streams at a time."""

    name: str
    affords: int  # particles a stream that it runs by default

    def unavailable(self) -> str | None:
        """Why this engine cannot be used on this machine; None where it can."""

    def refuses(self, proposal: Proposal, options: Options) -> str | None:
        """Why this engine cannot do this job; None where it can."""

    def rows_at_once(self, proposal: Proposal) -> int:
        """How many particles (of all streams together) one call should be given."""

    def run(self, observed: Batch, proposal: Proposal, keys: Tensor, options: Options) -> Result:
        """The weighted particles of B streams; ``keys`` [B] are the streams' random keys."""


class Went(NamedTuple):
    """What became of particles that were gone on with."""

    particles: Particles
    result: Result | None  # what was drawn; None where they do not go to the end


class TorchEngine:
    """The reference, on any device; it refuses nothing."""

    name = "torch"
    affords = 200

    def unavailable(self) -> str | None:
        """Torch is always there."""
        return None

    def refuses(self, proposal: Proposal, options: Options) -> str | None:
        """Everything can be done."""
        return None

    def rows_at_once(self, proposal: Proposal) -> int:
        """Enough to keep the processor busy."""
        return 12_800

    def run(self, observed: Batch, proposal: Proposal, keys: Tensor, options: Options) -> Result:
        """Algorithm 1."""
        return SequentialMonteCarlo(observed, proposal, keys, options).run()

    def go_on(
        self, observed: Batch, proposal: Proposal, keys: Tensor, options: Options, begun: Begun, ends: bool
    ) -> Went:
        """Algorithm 1 from where particles stand, which are changed: to the end, or through the segments to be closed.

        In the latter case it is forgotten which events were drawn: model and mechanism remember what matters.
        """
        smc = SequentialMonteCarlo(observed, proposal, keys, options, begun)
        if ends:
            result = smc.run()
            return Went(smc.particles, result)
        smc.draw_start()
        for i in range(int(begun.counts.max())):
            smc.step(i, (smc.counts > i).nonzero()[:, 0])
            smc.particles.forget()
        return Went(smc.particles, None)
