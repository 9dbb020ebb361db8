"""Particle filtering: propose from the model itself, ignorant of the future (section 3.1)."""

from __future__ import annotations

from typing import Any, NamedTuple

from torch import Tensor

from retrodict.events.batch import Batch
from retrodict.proposals.base import Proposal


class Nothing(NamedTuple):
    """A proposal that knows nothing of the future keeps nothing of it."""

    rows: Tensor


class Filtering(Proposal):
    """λ^q_k = ρ_k λ^p_k (appendix C.6)."""

    kind = "filtering"

    def config(self) -> dict[str, Any]:
        """Nothing beyond model and mechanism."""
        return {}

    @property
    def is_thinned_model(self) -> bool:
        """Where missing rates never change."""
        return self.missingness.is_constant

    def prepare(self, observed: Batch) -> None:
        """Nothing to read."""

    def ahead(self, prepared: None, stream: Tensor, segment: Tensor) -> Nothing:
        """Nothing to know."""
        return Nothing(stream)
