"""An event is observed only if its report has arrived by the time of observation: recent events are likely missing."""

from __future__ import annotations

import copy
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import torch
from torch import Tensor, nn

from retrodict.errors import ModelError
from retrodict.missingness.arguments import plain
from retrodict.missingness.base import Context, Missingness, between
from retrodict.missingness.delays import FAMILIES, Delays, by_type
from retrodict.missingness.schedule import check_unit, to_unit

Value = float | Mapping[str, float]


class ReportingDelay(Missingness):
    """ρ_k(t) = P(delay > end - t): streams end when they are observed, or ``wait`` before that.

    ``family`` and its parameters: "exponential" (``mean``), "gamma" (``mean``, ``shape``), "lognormal" (``median``, and
    ``spread``, the standard deviation of the logarithm) or "empirical" (``delays``, a list of some that were seen).
    Each parameter is one value for all types or a dict by type; types left out are reported at once. Times are in
    ``unit``, else in the streams' own.

    >>> delay = ReportingDelay("exponential", mean=2.0).bind(["case"])
    >>> ago = torch.tensor([8.0], dtype=torch.float64)
    >>> [round(rate, 3) for rate in delay.rates(ago, Context(0 * ago, ago.long(), end=ago + 2.0))[0].tolist()]
    [0.368]
    """

    kind = "reporting_delay"

    def __init__(
        self,
        family: str = "exponential",
        *,
        mean: Value | None = None,
        shape: Value | None = None,
        median: Value | None = None,
        spread: Value | None = None,
        delays: Sequence[float] | Mapping[str, Sequence[float]] | None = None,
        wait: float | str = 0.0,
        unit: str | None = None,
    ) -> None:
        if family not in FAMILIES:
            raise ModelError(f"unknown family of delays {family!r}. Choose one of {', '.join(FAMILIES)}.")
        given = {"mean": mean, "shape": shape, "median": median, "spread": spread, "delays": delays}
        self.given = {name: plain(value) for name, value in given.items() if value is not None}
        wanted = FAMILIES[family].names
        if set(self.given) != set(wanted):
            raise ModelError(
                f"{family} delays take {' and '.join(wanted)}, but got {', '.join(self.given) or 'nothing'}."
            )
        if to_unit(wait, None, "second", "wait") < 0:
            raise ModelError(f"wait must not be negative, but is {wait!r}.")
        self.family, self.wait, self.unit = family, wait, check_unit(unit, "a reporting delay")
        self.types: tuple[str, ...] = ()
        self.late = 0.0
        self.mask = torch.zeros(0, dtype=torch.float64)
        self.delays: Delays | None = None

    def config(self) -> dict[str, Any]:
        """The arguments; once bound, with the current parameters, in the streams' unit."""
        if self.delays is None or not self.delays.logs:
            return {"family": self.family, **self.given, "wait": self.wait, "unit": self.unit}
        some = [k for k in range(len(self.types)) if self.mask[k] > 0]
        now = {
            name: {self.types[k]: float(log.detach()[k].exp()) for k in some} for name, log in self.delays.logs.items()
        }
        return {"family": self.family, **now, "wait": self.late, "unit": self.unit}

    def bind(self, types: Sequence[str], unit: str | None = None) -> ReportingDelay:
        """Parameters by type, in the streams' unit; bound again to the same types and unit, it returns itself."""
        if self.delays is not None and self.types == tuple(types) and unit in (None, self.unit):
            return self
        current = copy.copy(self) if self.delays is None else ReportingDelay(**self.config())
        current.types = tuple(types)
        scale = to_unit(1.0, current.unit, unit, "a reporting delay")
        current.delays = FAMILIES[current.family](types, scale, current.given)
        current.late = to_unit(current.wait, current.unit, unit, "wait")
        current.mask = torch.zeros(len(types), dtype=torch.float64)
        current.mask[list(by_type(next(iter(current.given.values())), types))] = 1.0
        if current.delays.logs:
            current.unit = unit or current.unit
        return current

    @property
    def depends_on_time_alone(self) -> bool:
        """Always."""
        return True

    def parameters(self) -> Iterator[nn.Parameter]:
        """The parameters of the delays, on a log scale, [K] each."""
        return iter(()) if self.delays is None else self.delays.parameters()

    def rates(self, t: Tensor, context: Context | None = None) -> Tensor:
        """The probability that no report has come yet, [..., K]."""
        left = (self._observed(context) - t).clamp(min=0)
        delays = self._delays()
        mask = self.mask.to(t.device)
        return delays.survival(left[..., None].expand(*left.shape, len(mask))) * mask

    def bound(self, start: Tensor, stop: Tensor, context: Context | None = None) -> Tensor:
        """The rate at ``stop``, [..., K], as later events are more likely missing; slack covers rounding."""
        return (self.rates(stop, context) * (1 + 1e-6) + 1e-12 * self.mask.to(stop.device)).clamp(max=1.0)

    def breaks(self, start: Tensor, stop: Tensor, context: Context | None = None) -> Tensor | None:
        """The times where the rate changes fast: some quantiles of the delay before the observation."""
        cuts = self._delays().cuts().to(start.device)
        return between(self._observed(context)[..., None] - cuts, start, stop)

    def _delays(self) -> Delays:
        if self.delays is None:
            raise ModelError("delays need a vocabulary and a unit of time: call bind(types, unit) first.")
        return self.delays

    def _observed(self, context: Context | None) -> Tensor:
        if context is None or context.end is None:
            raise ModelError("a reporting delay needs to know when the stream ends: give a context with its end.")
        return context.end + self.late

    def __repr__(self) -> str:
        return f"ReportingDelay({self.family!r}, {', '.join(f'{name}={value}' for name, value in self.given.items())})"
