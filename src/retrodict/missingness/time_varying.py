"""The missing rate follows a table of times: by time of day, or over the life of a stream."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from typing import Any, Self

import torch
from torch import Tensor

from retrodict.errors import ModelError
from retrodict.missingness.arguments import check_probability, positions
from retrodict.missingness.base import Context
from retrodict.missingness.schedule import Scheduled, check_time


class TimeVarying(Scheduled):
    """Rates at given times, interpolated linearly; with ``steps`` each rate holds until the next.

    ``rates`` has one number for each time, or is a dict of such lists by type; types left out never go missing.
    With ``every`` ("day") the table recurs; without it the first and last rates hold beyond their ends. A time given
    twice is a jump. ``clock`` and ``unit`` are as for ``Windows``.

    >>> table = TimeVarying([0, 12], [0.0, 0.6], every=24, clock="stream").bind(["a"])
    >>> table.rates(torch.tensor([3.0, 18.0], dtype=torch.float64))[:, 0].tolist()
    [0.15, 0.3]
    """

    kind = "time_varying"

    def __init__(
        self,
        times: Sequence[Any],
        rates: Sequence[float] | Mapping[str, Sequence[float]],
        *,
        every: float | str | None = None,
        steps: bool = False,
        clock: str | None = None,
        unit: str | None = None,
        zone: str | None = None,
    ) -> None:
        if isinstance(times, str) or not isinstance(times, Sequence):
            raise ModelError(f"the times of the table are {times!r}. Give a list of times.")
        self.times = [check_time(time, "a time of the table") for time in times]
        by_type = dict(rates) if isinstance(rates, Mapping) else {"every type": list(rates)}
        for name, column in by_type.items():
            if isinstance(column, str) or not isinstance(column, Sequence) or len(column) != len(self.times):
                raise ModelError(
                    f"the rates of {name!r} are {column!r}. Give {len(self.times)} rates, one for each time."
                )
            by_type[name] = [check_probability(rate, f"the missing rate of {name!r}") for rate in column]
        if not self.times:
            raise ModelError("the table has no times. Give at least one, with a rate.")
        self.given = by_type if isinstance(rates, Mapping) else by_type["every type"]
        super().__init__(self.times, every, clock, unit, zone, "a table of rates")
        self.steps = bool(steps)
        self.knots = torch.zeros(0, dtype=torch.float64)
        self.values: Tensor | None = None

    def config(self) -> dict[str, Any]:
        """As it was given."""
        return {"times": self.times, "rates": self.given, "steps": self.steps} | super().config()

    def bind(self, types: Sequence[str], unit: str | None = None) -> Self:
        """The table in the streams' unit, with a column for each type; what recurs ends as it begins."""
        bound = super().bind(types, unit)
        times = [self.in_unit(time, unit, "a time of the table") for time in self.times]
        if any(a > b for a, b in itertools.pairwise(times)):
            raise ModelError(f"the times of the table, {self.times}, are not in order.")
        table = torch.zeros(len(times), len(types), dtype=torch.float64)
        given = self.given if isinstance(self.given, dict) else dict.fromkeys(range(len(types)), self.given)
        for name, column in given.items():
            table[:, positions(name, types)] = torch.tensor(column, dtype=torch.float64)[:, None]
        if bound.period is not None:
            if times[-1] - times[0] > bound.period:
                raise ModelError(f"the times of the table, {self.times}, do not fit into every {self.every}.")
            times, table = [*times, times[0] + bound.period], torch.cat([table, table[:1]])
        bound.knots, bound.values = torch.tensor(times, dtype=torch.float64), table
        return bound

    def meaning(self) -> Any:
        """The table in the streams' unit, and how it is read."""
        knots, values = self._table(torch.zeros(()))
        return [self.kind, knots.tolist(), values.tolist(), self.steps, self.clock, self.period, self.hours_of]

    def rates(self, t: Tensor, context: Context | None = None) -> Tensor:
        """The rates in the table, [..., K]."""
        knots, values = self._table(t)
        now = self.now(t, context, knots[0])
        cell = (torch.searchsorted(knots, now.contiguous(), right=True) - 1).clamp(0, len(knots) - 1)
        after = (cell + 1).clamp(max=len(knots) - 1)
        if self.steps:
            return values[cell]
        share = ((now - knots[cell]) / (knots[after] - knots[cell]).clamp(min=1e-300)).clamp(0, 1)
        return values[cell] + (values[after] - values[cell]) * share[..., None]

    def bound(self, start: Tensor, stop: Tensor, context: Context | None = None) -> Tensor:
        """The largest of the rates at both ends and in the table between them, [..., K]."""
        knots, values = self._table(start)
        a, b, slack = self.stretch(start, stop, context, knots[0])
        ends = torch.maximum(self.rates(start, context), self.rates(stop, context))
        if self.period is not None:
            knots, values = torch.cat([knots, knots + self.period]), torch.cat([values, values])
        between = (knots >= a - slack) & (knots <= b + slack)
        between = between | self.changes_clocks(start, stop, context)[..., None]
        return torch.maximum(ends, (between[..., None] * values).amax(-2)) * (1 + 1e-12)

    def breaks(self, start: Tensor, stop: Tensor, context: Context | None = None) -> Tensor | None:
        """The times of the table."""
        knots, _ = self._table(start)
        times = knots if self.period is None else torch.remainder(knots[:-1], self.period)
        return self.recurring(times, start, stop, context)

    def _table(self, like: Tensor) -> tuple[Tensor, Tensor]:
        if self.values is None:
            raise ModelError("a table of rates needs a vocabulary and a unit of time: call bind(types, unit) first.")
        return self.knots.to(like.device), self.values.to(like.device)

    def __repr__(self) -> str:
        return f"TimeVarying({len(self.times)} times, every={self.every})"
