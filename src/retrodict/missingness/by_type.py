"""Each event goes missing on its own, with a probability that depends on its type alone (equation 10)."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from retrodict.errors import ModelError
from retrodict.events.stream_set import StreamSet, describe_types
from retrodict.missingness.base import Context, Missingness
from retrodict.missingness.vocabulary import positions

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
        rates = _plain(rates)
        if isinstance(rates, Mapping):
            given: dict[Any, Any] = dict(rates)
        elif isinstance(rates, int | float):
            given = {"every type": float(rates)}
        else:
            given = dict(enumerate(rates)) if isinstance(rates, list) else {"every type": rates}
        for name, rate in given.items():
            number = isinstance(rate, int | float) and math.isfinite(rate)
            if not (number and 0 <= rate <= 1):
                raise ModelError(
                    f"the missing rate of {name!r} is {rate!r}. A rate is a probability: give a number from "
                    "0 (never missing) to 1 (always missing)."
                )
        self.given: Any = rates
        self.types: tuple[str, ...] | None = None
        self.vector: Tensor | None = None
        if not isinstance(rates, Mapping | int | float):
            self.vector = torch.tensor(list(given.values()), dtype=torch.float64)

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
        if isinstance(self.given, Mapping):
            bound.vector = torch.zeros(len(types), dtype=torch.float64)
            for name, rate in self.given.items():
                bound.vector[positions(name, types)] = rate
        elif isinstance(self.given, int | float):
            bound.vector = torch.full((len(types),), float(self.given), dtype=torch.float64)
        elif len(self.given) != len(types):
            raise ModelError(
                f"{len(self.given)} missing rates for {len(types)} types ({describe_types(types)}). Give one "
                "rate for each type, or a dict by type name."
            )
        return bound

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


def _plain(rates: Any) -> Any:
    """Rates as Python numbers, from NumPy or torch ones too."""
    if isinstance(rates, Mapping):
        return {_plain(name): _plain(rate) for name, rate in rates.items()}
    if isinstance(rates, np.ndarray | np.generic | Tensor):
        return rates.tolist()
    if isinstance(rates, Sequence) and not isinstance(rates, str):
        return [_plain(rate) for rate in rates]
    return rates
