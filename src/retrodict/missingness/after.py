"""Events go missing soon after others: a mechanism that looks at the preceding events, with rates set by hand."""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import Tensor

from retrodict.errors import ModelError
from retrodict.missingness.arguments import check_probabilities, mask_of, names_in, plain, spread
from retrodict.missingness.base import Context, History, Missingness, between, history_of
from retrodict.missingness.schedule import check_time, check_unit, period


class After(Missingness):
    """``rates`` for the time ``within`` after an event of type ``trigger``, observed or missing; else ``otherwise``.

    Rates are one for all types or a dict by type; types that a dict leaves out never go missing.

    >>> After("crash", within=2.0, rates={"log": 0.9}).bind(["crash", "log"])
    After('crash', within=2.0, rates={'log': 0.9}, otherwise=0.0)
    """

    kind = "after"

    def __init__(
        self,
        trigger: str | Sequence[str],
        within: float | str,
        rates: float | Mapping[str, float] = 1.0,
        otherwise: float | Mapping[str, float] = 0.0,
        *,
        unit: str | None = None,
    ) -> None:
        for given in (rates, otherwise):
            check_probabilities(given, "the missing rate")
        self.trigger, self.unit = trigger, check_unit(unit, "a mechanism that looks back")
        self.given_rates, self.otherwise = rates, otherwise
        self.within = check_time(within, "within")
        period(within, None, "second", "within")
        self.reach = 0.0
        self.is_trigger: Tensor | None = None
        self.soon = self.late = torch.zeros(0, dtype=torch.float64)

    def config(self) -> dict[str, Any]:
        """As it was given."""
        given = {"trigger": self.trigger, "within": self.within, "rates": self.given_rates, "otherwise": self.otherwise}
        return plain(given | {"unit": self.unit})

    def bind(self, types: Sequence[str], unit: str | None = None) -> After:
        """Rates and triggers by type."""
        bound = copy.copy(self)
        bound.is_trigger = mask_of(names_in(self.trigger), types, "to go missing after").bool()
        bound.soon = spread(self.given_rates, types, 0.0, "to give a missing rate to")
        bound.late = spread(self.otherwise, types, 0.0, "to give a missing rate to")
        bound.reach = period(self.within, self.unit, unit, "within") or 0.0
        return bound

    def meaning(self) -> Any:
        """Triggers and rates by type, and for how long in the streams' unit."""
        triggers = self._triggers(torch.zeros(())).tolist()
        return [self.kind, triggers, self.reach, self.soon.tolist(), self.late.tolist()]

    def initial(self, shape: Sequence[int], device: torch.device | str = "cpu") -> History:
        """The time of the last trigger, [...]: -inf, as there was none."""
        return (torch.full(tuple(shape), -torch.inf, dtype=torch.float64, device=device),)

    def update(self, history: History, type: Tensor, time: Tensor) -> History:
        """The time of a trigger replaces that of the trigger before."""
        return (torch.where(self._triggers(type)[type], time, history[0]),)

    def rates(self, t: Tensor, context: Context | None = None) -> Tensor:
        """The rates soon after the last trigger, or those otherwise, [..., K]."""
        return self._either_way(t - history_of(context)[0] < self.reach)

    def bound(self, start: Tensor, stop: Tensor, context: Context | None = None) -> Tensor:
        """The larger of the rates that occur between, [..., K]."""
        last = history_of(context)[0]
        slack = 8 * torch.finfo(torch.float64).eps * (1 + stop.abs())
        soon, late = start - last < self.reach + slack, stop - last >= self.reach - slack
        both = torch.maximum(self.soon, self.late).to(start.device)
        return torch.where((soon & late)[..., None], both, self._either_way(soon))

    def breaks(self, start: Tensor, stop: Tensor, context: Context | None = None) -> Tensor | None:
        """The end of the time after the last trigger."""
        return between((history_of(context)[0] + self.reach)[..., None], start, stop)

    def _either_way(self, is_soon: Tensor) -> Tensor:
        return torch.where(is_soon[..., None], self.soon.to(is_soon.device), self.late.to(is_soon.device))

    def _triggers(self, like: Tensor) -> Tensor:
        if self.is_trigger is None:
            raise ModelError("types given by name need a vocabulary: call bind(types) first.")
        return self.is_trigger.to(like.device)

    def __repr__(self) -> str:
        rates = f"rates={self.given_rates}, otherwise={self.otherwise}"
        return f"After({self.trigger!r}, within={self.within}, {rates})"
