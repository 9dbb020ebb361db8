"""The same mechanism with other odds of going missing, to see how much hangs on the rates."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from retrodict.missingness.arguments import check_positive
from retrodict.missingness.base import Context, History, Missingness
from retrodict.missingness.by_type import ByType


def with_odds(mechanism: Missingness, factor: float) -> Missingness:
    """The bound ``mechanism`` with ρ / (1 - ρ) times ``factor`` for every event; rates of 0 and 1 stay.

    >>> with_odds(ByType({"pick-up": 0.5}).bind(["pick-up"]), 3.0)
    ByType({'pick-up': 0.75})
    """
    check_positive(factor, "the factor of the odds")
    if factor == 1:
        return mechanism
    if isinstance(mechanism, ByType):
        assert mechanism.types is not None
        rates = _scaled(mechanism.rates(torch.zeros(())), factor)
        return ByType(dict(zip(mechanism.types, rates.tolist(), strict=True))).bind(mechanism.types)
    return _WithOdds(mechanism, factor)


def _scaled(rates: Tensor, factor: float) -> Tensor:
    return factor * rates / (1 - rates + factor * rates)


class _WithOdds(Missingness):
    """Any other mechanism: what it says, with other odds."""

    def __init__(self, mechanism: Missingness, factor: float) -> None:
        self.mechanism, self.factor = mechanism, factor

    def bind(self, types: Sequence[str], unit: str | None = None) -> Missingness:
        """The mechanism bound."""
        return _WithOdds(self.mechanism.bind(types, unit), self.factor)

    def in_zone(self, zone: str | None) -> Missingness:
        """The mechanism in the zone."""
        there = self.mechanism.in_zone(zone)
        return self if there is self.mechanism else _WithOdds(there, self.factor)

    @property
    def is_constant(self) -> bool:
        """Whether the mechanism is."""
        return self.mechanism.is_constant

    @property
    def depends_on_time_alone(self) -> bool:
        """Whether the mechanism does."""
        return self.mechanism.depends_on_time_alone

    def rates(self, t: Tensor, context: Context | None = None) -> Tensor:
        """With other odds, [..., K]."""
        return _scaled(self.mechanism.rates(t, context), self.factor)

    def bound(self, start: Tensor, stop: Tensor, context: Context | None = None) -> Tensor:
        """The bound with other odds, [..., K], as these rise with the rate; slack covers rounding."""
        bound = _scaled(self.mechanism.bound(start, stop, context).clamp(max=1.0), self.factor)
        return bound * (1 + 1e-12)

    def breaks(self, start: Tensor, stop: Tensor, context: Context | None = None) -> Tensor | None:
        """Those of the mechanism."""
        return self.mechanism.breaks(start, stop, context)

    def initial(self, shape: Sequence[int], device: torch.device | str = "cpu") -> History:
        """That of the mechanism."""
        return self.mechanism.initial(shape, device)

    def update(self, history: History, type: Tensor, time: Tensor) -> History:
        """That of the mechanism."""
        return self.mechanism.update(history, type, time)

    def __repr__(self) -> str:
        return f"{self.mechanism!r} with {self.factor:g} times the odds"
