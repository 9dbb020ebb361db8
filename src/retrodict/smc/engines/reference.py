"""The torch engine: Algorithm 1 as ``smc/sampler.py`` spells it out. It refuses nothing."""

from __future__ import annotations

from torch import Tensor

from retrodict.events.batch import Batch
from retrodict.proposals.base import Proposal
from retrodict.smc.options import Options
from retrodict.smc.result import Result
from retrodict.smc.sampler import SequentialMonteCarlo


class TorchEngine:
    """The reference, on any device."""

    name = "torch"

    def unavailable(self) -> str | None:
        """Torch is always there."""
        return None

    def refuses(self, proposal: Proposal, options: Options) -> str | None:
        """Everything can be done."""
        return None

    def rows_at_once(self, proposal: Proposal) -> int:
        """As many as keep the processor busy in few bytes."""
        return 12_800

    def run(self, observed: Batch, proposal: Proposal, keys: Tensor, options: Options) -> Result:
        """Algorithm 1."""
        return SequentialMonteCarlo(observed, proposal, keys, options).run()
