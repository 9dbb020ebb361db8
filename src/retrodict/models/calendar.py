"""Hours of the day and days of the week: what multiplies the intensities of dated streams.

    λ_k(t) = f_k(past) exp(c_k(t)),      c_k(t) = w_k · φ(t)

φ(t) holds 1, cos and sin of the first few harmonics of a day and of a week by the clocks of the streams' zone (summer
time included), and numbers that the user knows in advance (``models/covariates.py``). Any model may have a calendar:
its own methods speak of f_k, the part that depends on the past; likelihood, simulation and imputation multiply.

c_k is bounded over any interval: by its largest value on a grid of a quarter of an hour plus h² / 8 times a bound of
its second derivative, the error of linear interpolation.
"""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor, nn

from retrodict.errors import ModelError
from retrodict.events.time_axis import SECONDS
from retrodict.missingness.base import between
from retrodict.missingness.zones import Offsets, offsets_of
from retrodict.models.covariates import DAY, Covariates
from retrodict.models.range_max import RangeMax

WEEK = 7 * DAY
MOST_HARMONICS = 24
MOST_LOG = 50.0  # the most that a log factor may be in size
_CELL = 900.0  # seconds of a cell of the table of bounds
_CELLS = int(WEEK / _CELL)


class Calendar(nn.Module):
    """exp(c_k(t)) for K types, from ``day`` harmonics of a day and ``week`` harmonics of a week.

    Times are in ``unit`` and count from 1970; ``zone`` says what clocks show then (None: what the times say).
    ``penalty`` is that of the squares of weights [K, J] in fitting.

    >>> calendar = Calendar(num_types=2, day=2, week=1, unit="hour", zone="America/New_York")
    >>> calendar.factor(torch.zeros(5, dtype=torch.float64), torch.zeros(5, dtype=torch.float64)).shape
    torch.Size([5, 2])
    """

    def __init__(
        self,
        num_types: int,
        day: int = 3,
        week: int = 3,
        *,
        unit: str,
        zone: str | None = None,
        covariates: Covariates | None = None,
        penalty: float = 1.0,
    ) -> None:
        super().__init__()
        for name, count in (("day", day), ("week", week)):
            if not (isinstance(count, int) and not isinstance(count, bool) and 0 <= count <= MOST_HARMONICS):
                raise ModelError(f"{name} must be a number of harmonics, 0 to {MOST_HARMONICS}, but is {count!r}.")
        if unit not in SECONDS:
            raise ModelError(f"a calendar needs times in one of {', '.join(SECONDS)}, not in {unit!r}.")
        if not (isinstance(penalty, int | float) and 0 < penalty < math.inf):
            raise ModelError(f"penalty must be a positive number, but is {penalty!r}.")
        self.day, self.week, self.unit, self.zone, self.penalty = day, week, unit, zone, float(penalty)
        offsets = offsets_of(zone, 1.0)
        self.offsets: Offsets | None = offsets if bool(offsets.ahead.any()) else None
        self.covariates = covariates
        self.num_waves = 1 + 2 * (day + week)
        further = 0 if covariates is None else len(covariates.names)
        self.weights = nn.Parameter(torch.zeros(num_types, self.num_waves + further))
        self._known: tuple[Tensor, RangeMax] | None = None

    def config(self) -> dict[str, Any]:
        """What a folder says of it beside its weights."""
        own = {"day": self.day, "week": self.week, "unit": self.unit, "zone": self.zone, "penalty": self.penalty}
        names, steps = ((), 0) if self.covariates is None else (self.covariates.names, len(self.covariates.days))
        return {**own, "covariates": list(names), "steps": steps}

    @classmethod
    def from_config(
        cls, num_types: int, *, covariates: list[str], steps: int, day: int, week: int, **further: Any
    ) -> Calendar:
        """An empty one, for weights to be loaded into."""
        known = Covariates.empty(covariates, steps) if covariates else None
        return cls(num_types, day, week, covariates=known, **further)

    def in_words(self) -> str:
        """What it looks at, for people."""
        waves = [(self.day, "hours of the day", "day"), (self.week, "days of the week", "week")]
        names = () if self.covariates is None else self.covariates.names
        known = " and ".join([*(what for n, what, _ in waves if n), *names])
        parts = [f"{n} harmonics of a {of}" for n, _, of in waves if n]
        return f"{known}: {', '.join([*parts, *names])} ({self.zone or 'no time zone'})"

    def check_weights(self) -> None:
        """Refuse log factors that cannot be worked with."""
        most = float(self.weights.detach().abs().sum(1).max()) if len(self.weights) else 0.0
        if not most <= MOST_LOG:
            raise ModelError(
                f"the calendar's weights add up to {most:.3g}, and at most {MOST_LOG:g} can be. Fit again."
            )

    def held_back(self) -> Tensor:
        """What the penalty takes off the log-likelihood of all training streams."""
        return 0.5 * self.penalty * self.weights[:, 1:].square().sum()

    @property
    def scale(self) -> float:
        """Seconds in a unit of time."""
        return SECONDS[self.unit]

    @property
    def speeds(self) -> Tensor:
        """The angular frequency of each wave, [waves], per second; 0 of the constant."""
        days, weeks = torch.arange(1, self.day + 1) / DAY, torch.arange(1, self.week + 1) / WEEK
        return 2 * math.pi * torch.cat([torch.zeros(1), days.repeat(2), weeks.repeat(2)]).double()

    @property
    def stretch(self) -> float:
        """Over which length of time, in units, the nodes of one panel follow c: half of the fastest period."""
        fastest = max(self.day / DAY, self.week / WEEK)
        return math.inf if not fastest else 0.5 / fastest / self.scale

    def features(self, t: Tensor, start: Tensor) -> Tensor:
        """φ at t [...] since ``start`` [...], which counts from 1970: [..., J] float64."""
        second = (start + t) * self.scale
        waves = self._waves(self._local(second))
        if self.covariates is None:
            return waves
        return torch.cat([waves, self.covariates.at(second / DAY)], -1)

    def cells(self, t: Tensor, start: Tensor, count: int) -> Tensor:
        """In which of ``count`` cells of the week times [...] lie, and beyond these after which covariates: [...]."""
        second = (start + t) * self.scale
        cell = torch.floor(torch.remainder(self._local(second), WEEK) * (count / WEEK)).long().clamp(max=count - 1)
        return cell if self.covariates is None else cell + count * self.covariates.row(second / DAY)

    def cell_features(self, cells: Tensor, count: int) -> Tensor:
        """φ in the middle of such cells [C], [C, J] float64."""
        waves = self._waves((cells % count + 0.5) * (WEEK / count))
        if self.covariates is None:
            return waves
        return torch.cat([waves, self.covariates.of_rows(cells // count)], -1)

    def log_factor(self, t: Tensor, start: Tensor) -> Tensor:
        """c_k(t), [..., K] float64."""
        return self.features(t, start) @ self.weights.double().t()

    def factor(self, t: Tensor, start: Tensor) -> Tensor:
        """exp(c_k(t)), [..., K] float64."""
        return self.log_factor(t, start).exp()

    @torch.no_grad()
    def bound(self, start: Tensor, stop: Tensor, origin: Tensor) -> Tensor:
        """An upper bound of exp(c_k) over [start, stop] since ``origin``, [...] each, [..., K] float64."""
        first, last = (origin + start) * self.scale, (origin + stop) * self.scale
        low, high = self._local(first), self._local(last)
        change = (high - low - (last - first)).abs()  # clocks were changed in between: what they showed is near
        slack = 1e-3 + change
        cell = torch.floor((low - slack) / _CELL)
        count = (torch.floor((high + slack) / _CELL) - cell).clamp(0, _CELLS - 1).long()
        begin = torch.remainder(cell, _CELLS).long()
        most = self._table().over(begin, begin + count)
        if self.covariates is not None:
            own = self.weights.double()[:, self.num_waves :]
            most = most + self.covariates.most(own, (first - 1e-3) / DAY, (last + 1e-3) / DAY)
        return most.exp() * (1 + 1e-6)

    def breaks(self, start: Tensor, stop: Tensor, origin: Tensor) -> Tensor | None:
        """Times inside (start, stop) [...] between which nodes follow c, in order, [..., J]; None where none are."""
        parts = self.parts(start, stop)
        most = int(parts.max()) if parts.numel() else 1
        found = []
        if most > 1:
            number = torch.arange(1, most, device=start.device)
            share = (number / parts[..., None]).clamp(max=1.0)
            found.append(start[..., None] + (stop - start)[..., None] * share)
        found += self.jumps(start, stop, origin)
        return between(torch.cat(found, -1), start, stop) if found else None

    def parts(self, start: Tensor, stop: Tensor) -> Tensor:
        """Into how many equal parts intervals are cut for nodes to follow c, [...]."""
        return torch.ceil((stop - start) / self.stretch - 1e-9).clamp(min=1).long()

    def jumps(self, start: Tensor, stop: Tensor, origin: Tensor) -> list[Tensor]:
        """Times in [start, stop] where clocks are changed or a covariate is, in lists of [..., J]."""
        found = []
        if self.offsets is not None and start.numel():
            changes = self.offsets.changes.to(start.device) / self.scale
            low, high = (origin + start).min(), (origin + stop).max()
            some = changes[(changes > low) & (changes < high)]
            if len(some):
                found.append(some - origin[..., None])
        if self.covariates is not None:
            ends = ((origin + edge) * self.scale / DAY for edge in (start, stop))
            days = self.covariates.within(*ends)
            if days is not None:
                found.append(days * DAY / self.scale - origin[..., None])
        return found

    def _local(self, second: Tensor) -> Tensor:
        """What clocks show, in seconds since 1970 as if that were UTC."""
        return second if self.offsets is None else second + self.offsets.at(second)

    def _waves(self, local: Tensor) -> Tensor:
        """1, then cosines and sines of a day, then of a week, [..., waves]."""
        parts = [torch.ones_like(local)[..., None]]
        for count, period in ((self.day, DAY), (self.week, WEEK)):
            if count:
                angle = torch.remainder(local, period) * (2 * math.pi / period)
                first = torch.complex(angle.cos(), angle.sin())
                powers = [first]
                while len(powers) < count:
                    powers.append(powers[-1] * first)  # of e^{i angle}: one cosine and one sine for all harmonics
                whole = torch.stack(powers, -1)
                parts += [whole.real, whole.imag]
        return torch.cat(parts, -1)

    def _table(self) -> RangeMax:
        """Bounds of the waves' sum in each cell of two weeks, kept until the weights change."""
        if self._known is None or not torch.equal(self._known[0], self.weights):
            own = self.weights.detach().double()[:, : self.num_waves]
            edges = torch.arange(_CELLS + 1, device=own.device, dtype=torch.float64) * _CELL
            values = self._waves(edges) @ own.t()
            bend = own.abs() @ self.speeds.to(own.device).square() * _CELL**2 / 8
            cells = torch.maximum(values[:-1], values[1:]) + bend + 1e-9
            self._known = self.weights.detach().clone(), RangeMax(cells.repeat(2, 1))
        return self._known[1]
