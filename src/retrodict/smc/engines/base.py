"""The contract of an engine: something that runs Algorithm 1.

All engines sample the same posterior. The torch engine (``smc/sampler.py``) is the readable reference and takes every
model, mechanism, proposal and option; a faster one may refuse what it was not written for, in words.
"""

from __future__ import annotations

from typing import Protocol

from torch import Tensor

from retrodict.events.batch import Batch
from retrodict.proposals.base import Proposal
from retrodict.smc.options import Options
from retrodict.smc.result import Result


class Engine(Protocol):
    """Runs Algorithm 1 on B streams at a time."""

    name: str

    def unavailable(self) -> str | None:
        """Why this engine cannot be used on this machine; None where it can."""
        ...

    def refuses(self, proposal: Proposal, options: Options) -> str | None:
        """Why this engine cannot do this job; None where it can."""
        ...

    def rows_at_once(self, proposal: Proposal) -> int:
        """How many particles (of all streams together) it is best given in one call."""
        ...

    def run(self, observed: Batch, proposal: Proposal, keys: Tensor, options: Options) -> Result:
        """The weighted particles of B streams; ``keys`` [B] are the streams' random keys."""
        ...
