"""What is known in advance about times: holidays, prices, a forecast. Numbers that hold from one moment to the next.

A table has a column of dates and columns of numbers. A row holds from its date until that of the next one, the last
for ever; before the first row all are at their mean. Columns are centred, and divided by their spread.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from retrodict.errors import DataError
from retrodict.models.range_max import RangeMax

DAY = 86_400.0
MOST_STEPS, MOST_NAMES = 1_000_000, 100


class Covariates(nn.Module):
    """Columns ``names`` of steps: ``days`` [N] float64 since 1970, in UTC, and ``values`` [N, C] from each on."""

    days: Tensor
    values: Tensor

    def __init__(self, names: Sequence[str], days: Tensor, values: Tensor) -> None:
        super().__init__()
        self.names = tuple(names)
        self.register_buffer("days", days)
        self.register_buffer("values", values)

    @classmethod
    def from_table(cls, table: Any, zone: str | None) -> Covariates:
        """From a data frame whose first column of dates says when rows begin; dates without an offset are in a zone."""
        import pandas as pd

        frame = pd.DataFrame(table)
        dated = [name for name in frame.columns if pd.api.types.is_datetime64_any_dtype(frame[name])]
        if not dated:
            remedy = "give a data frame with a column of datetimes, and columns of numbers"
            raise DataError("the covariates have no column of dates", remedy=remedy)
        when = frame[dated[0]]
        if when.dt.tz is None:
            when = when.dt.tz_localize(zone or "UTC", ambiguous=True, nonexistent="shift_forward")
        days = when.dt.tz_convert("UTC").dt.tz_localize(None).to_numpy("datetime64[us]").astype(np.int64) / 1e6 / DAY
        names = [str(name) for name in frame.columns if name != dated[0]]
        values = frame[names].to_numpy(np.float64)
        if not (0 < len(days) <= MOST_STEPS and 0 < len(names) <= MOST_NAMES):
            what = f"{len(days):,} rows and {len(names):,} columns of covariates"
            raise DataError(what, remedy=f"give 1 to {MOST_STEPS:,} rows and 1 to {MOST_NAMES} columns")
        if not (np.isfinite(values).all() and np.isfinite(days).all()):
            raise DataError("some covariates are missing or infinite", remedy="fill them in")
        order = np.argsort(days, kind="stable")
        spread = values.std(0)
        values = (values[order] - values.mean(0)) / np.where(spread > 0, spread, 1.0)
        return cls(names, torch.as_tensor(days[order]), torch.as_tensor(values))

    @classmethod
    def empty(cls, names: Sequence[str], steps: int) -> Covariates:
        """Zeros of the right shapes, for numbers to be loaded into."""
        return cls(names, torch.zeros(steps, dtype=torch.float64), torch.zeros(steps, len(names), dtype=torch.float64))

    def at(self, day: Tensor) -> Tensor:
        """The numbers at times [...] in days since 1970, [..., C] float64."""
        return self.of_rows(self.row(day))

    def of_rows(self, rows: Tensor) -> Tensor:
        """The numbers after so many rows [...] have begun, [..., C] float64."""
        return torch.cat([torch.zeros_like(self.values[:1]), self.values]).double()[rows]

    def most(self, weights: Tensor, start: Tensor, stop: Tensor) -> Tensor:
        """The most of their sum with weights [K, C] over [start, stop] [...], [..., K]."""
        sums = torch.cat([torch.zeros_like(weights[:, :1]).t(), self.values.double() @ weights.t()])
        return RangeMax(sums).over(self.row(start), self.row(stop))

    def within(self, start: Tensor, stop: Tensor) -> Tensor | None:
        """When rows begin inside (start, stop) [...], [..., J], filled up with ``stop``; None where none do."""
        first, last = self.row(start), torch.searchsorted(self.days.double(), stop.contiguous())
        count = int((last - first).max()) if first.numel() else 0
        if count <= 0:
            return None
        place = first[..., None] + torch.arange(count, device=first.device)
        days = self.days.double()[place.clamp(max=len(self.days) - 1)]
        return torch.where(place < last[..., None], days, stop[..., None])

    def row(self, day: Tensor) -> Tensor:
        """How many rows have begun at times [...], in days since 1970."""
        return torch.searchsorted(self.days.double(), day.contiguous(), right=True)
