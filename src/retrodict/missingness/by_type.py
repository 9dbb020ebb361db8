"""Each event goes missing on its own, with a probability that depends on its type alone (section 5.1)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from retrodict.errors import ModelError
from retrodict.events.stream_set import StreamSet, describe_types
from retrodict.missingness.arguments import check_probabilities, plain, spread
from retrodict.missingness.base import Context, Missingness

Rates = float | Sequence[float] | Mapping[str, float] | Mapping[int, float]


class ByType(Missingness):
    """Missing rates in [0, 1]: one for all types, a list by type index, or a dict by type name, pattern or index.

    Types that a dict leaves out never go missing. Rates 0 and 1 are deterministic: such types are always
    or never observed.

    >>> ByType({"pick-up": 0.5}).bind(["drop-off", "pick-up"])
    ByType({'drop-off': 0.0, 'pick-up': 0.5})
    """

    kind = "by_type"

    def __init__(self, rates: Rates) -> None:
        rates = plain(rates)
        given: Any = dict(enumerate(rates)) if isinstance(rates, list) else rates
        given = given if isinstance(given, Mapping) else {"every type": given}
        check_probabilities({k: rate for k, rate in given.items() if not isinstance(rate, bool)}, "the missing rate")
        self.given: Any = rates
        self.types: tuple[str, ...] | None = None
        self.vector = torch.tensor(rates, dtype=torch.float64) if isinstance(rates, list) else None

    def config(self) -> dict[str, Any]:
        """The rates as they were given; by index where the types have no names yet."""
        if isinstance(self.given, Mapping) and not all(isinstance(name, str) for name in self.given):
            raise ModelError("rates given by index can only be saved once they are bound to type names.")
        return {"rates": dict(self.given) if isinstance(self.given, Mapping) else self.given}

    @property
    def is_constant(self) -> bool:
        """Always."""
        return True

    def bind(self, types: Sequence[str], unit: str | None = None) -> ByType:
        """The same rates as a vector over these types."""
        bound = ByType(self.given)
        bound.types = tuple(types)
        if not isinstance(self.given, list):
            bound.vector = spread(self.given, types, what="to give a missing rate to")
        elif len(self.given) != len(types):
            raise ModelError(
                f"{len(self.given)} missing rates for {len(types)} types ({describe_types(types)}). Give one "
                "rate for each type, or a dict by type name."
            )
        return bound

    def meaning(self) -> Any:
        """The rate of each type."""
        return [self.kind, self.rates(torch.zeros(())).tolist()]

    def rates(self, t: Tensor, context: Context | None = None) -> Tensor:
        """ρ_k, whatever the time: [..., K]."""
        if self.vector is None:
            raise ModelError("rates given by name or as one number need a vocabulary: call bind(types) first.")
        return self.vector.to(t.device).expand(*t.shape, len(self.vector))

    def bound(self, start: Tensor, stop: Tensor, context: Context | None = None) -> Tensor:
        """The rates themselves, [..., K]."""
        return self.rates(start, context)

    def event_rates(self, streams: StreamSet) -> NDArray[np.float64]:
        """Looked up by type, [E]."""
        return self.rates(torch.zeros(())).numpy()[streams.event_types]

    def __repr__(self) -> str:
        if self.types is not None and self.vector is not None:
            return f"ByType({dict(zip(self.types, self.vector.tolist(), strict=True))})"
        return f"ByType({self.given})"
