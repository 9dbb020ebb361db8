"""Families of reporting delays, with their parameters by type.

Each gives the probability S(x) that a delay is longer than x, and a few lengths between which S is smooth on its own
scale, where integrals are cut.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, ClassVar

import numpy as np
import torch
from torch import Tensor, nn

from retrodict.errors import ModelError
from retrodict.missingness.arguments import check_positive, positions

_KNOTS = 32


class Delays(ABC):
    """Positive parameters, each one number for all types or a dict by type; learned on a log scale, [K] each."""

    family: ClassVar[str]
    names: ClassVar[tuple[str, ...]]

    def __init__(self, types: Sequence[str], scale: float, given: Mapping[str, Any]) -> None:
        self.logs = {name: nn.Parameter(self._values(name, types, scale, given[name]).log()) for name in self.names}

    def _values(self, name: str, types: Sequence[str], scale: float, given: Any) -> Tensor:
        """One parameter for each type; ``scale`` converts lengths of time."""
        factor = scale if name in ("mean", "median") else 1.0
        values = torch.ones(len(types), dtype=torch.float64)
        for type, value in by_type(given, types).items():
            values[type] = check_positive(value, f"the {name} of delays") * factor
        return values

    def value(self, name: str, like: Tensor) -> Tensor:
        """A parameter, [K]."""
        return self.logs[name].to(like.device).exp()

    def parameters(self) -> Iterator[nn.Parameter]:
        """The parameters that can be learned, on a log scale."""
        return iter(self.logs.values())

    @abstractmethod
    def survival(self, x: Tensor) -> Tensor:
        """S(x) of lengths x [..., K] that are not negative."""

    @abstractmethod
    def cuts(self) -> Tensor:
        """Lengths of delay to cut integrals at, [J]."""

    def _now(self, name: str) -> Tensor:
        return self.logs[name].detach().cpu().exp()


class Exponential(Delays):
    """S(x) = exp(-x / mean)."""

    family, names = "exponential", ("mean",)

    def survival(self, x: Tensor) -> Tensor:
        """[..., K]."""
        return torch.exp(-x / self.value("mean", x))

    def cuts(self) -> Tensor:
        """Multiples of the mean."""
        return _merged(self._now("mean") * torch.tensor([2.0, 5.0, 10.0, 20.0])[:, None])


class Gamma(Delays):
    """Gamma delays of a mean and a shape."""

    family, names = "gamma", ("mean", "shape")

    def survival(self, x: Tensor) -> Tensor:
        """[..., K]."""
        shape = self.value("shape", x)
        return _UpperGamma.apply(shape.expand_as(x), x * shape / self.value("mean", x))

    def cuts(self) -> Tensor:
        """Quantiles above the mean (by Wilson and Hilferty's rule), ever smaller shares of the mean below it."""
        mean, shape = self._now("mean"), self._now("shape")
        normal = torch.tensor([0.0, 1.5, 3.0, 5.0], dtype=torch.float64)[:, None]
        above = mean * (1 - 1 / (9 * shape) + normal / (3 * shape.sqrt())).clamp(min=0.1).pow(3)
        below = mean * 0.25 ** torch.arange(5, dtype=torch.float64)[:, None]
        return _merged(torch.cat([above, below]))


class LogNormal(Delays):
    """Delays with a normal logarithm: its mean is the log of the median, its standard deviation is ``spread``."""

    family, names = "lognormal", ("median", "spread")

    def survival(self, x: Tensor) -> Tensor:
        """[..., K]."""
        above = (x.clamp(min=1e-300).log() - self.logs["median"].to(x.device)) / self.value("spread", x)
        return 0.5 * torch.erfc(above / math.sqrt(2))

    def cuts(self) -> Tensor:
        """Quantiles."""
        normal = torch.tensor([-3.5, -2.0, -1.0, 0.0, 1.0, 2.0, 3.5, 5.0], dtype=torch.float64)[:, None]
        return _merged(self._now("median") * torch.exp(normal * self._now("spread")))


class Empirical(Delays):
    """Observed delays: their distribution function, interpolated linearly between at most 33 of their quantiles."""

    family, names = "empirical", ("delays",)

    def __init__(self, types: Sequence[str], scale: float, given: Mapping[str, Any]) -> None:
        self.logs = {}
        seen = by_type(given["delays"], types)
        for values in seen.values():
            if not len(values) or not all(isinstance(v, int | float) and 0 <= v < math.inf for v in values):
                raise ModelError(f"the delays are {values!r}. Give a list of numbers that are not negative.")
        levels = np.linspace(0, 1, 1 + min(_KNOTS, max((len(v) - 1 for v in seen.values()), default=1) or 1))
        self.knots = torch.zeros(len(types), len(levels), dtype=torch.float64)
        for k, values in seen.items():
            self.knots[k] = torch.as_tensor(np.quantile(np.asarray(values, dtype=np.float64), levels) * scale)

    def survival(self, x: Tensor) -> Tensor:
        """[..., K]: each stretch between two quantiles has its share of the delays, evenly."""
        left, right = self.knots[:, :-1].to(x.device), self.knots[:, 1:].to(x.device)
        passed = ((x[..., None] - left) / (right - left).clamp(min=1e-300)).clamp(0, 1)
        return 1 - torch.where(right > left, passed, (x[..., None] >= left).to(x.dtype)).mean(-1)

    def cuts(self) -> Tensor:
        """The quantiles."""
        return self.knots.flatten().unique()


FAMILIES: dict[str, type[Delays]] = {f.family: f for f in (Exponential, Gamma, LogNormal, Empirical)}


def by_type(given: Any, types: Sequence[str]) -> dict[int, Any]:
    """The given value for each type's position; a single value holds for all types."""
    if not isinstance(given, Mapping):
        return dict.fromkeys(range(len(types)), given)
    return {k: value for name, value in given.items() for k in positions(name, types, "to give a delay to")}


def _merged(cuts: Tensor) -> Tensor:
    """The lengths with near duplicates merged: types with similar delays share their cuts."""
    return torch.exp((4 * cuts.log()).round() / 4).unique()


class _UpperGamma(torch.autograd.Function):
    """Q(a, x), the upper regularised incomplete gamma function, with a derivative in both."""

    @staticmethod
    def forward(ctx: Any, shape: Tensor, x: Tensor) -> Tensor:
        ctx.save_for_backward(shape, x)
        return torch.special.gammaincc(shape, x)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor, Tensor]:
        shape, x = ctx.saved_tensors
        step = 1e-5 * shape
        by_shape = torch.special.gammaincc(shape + step, x) - torch.special.gammaincc(shape - step, x)
        density = torch.exp((shape - 1) * x.clamp(min=1e-300).log() - x - torch.lgamma(shape))
        return grads[0] * by_shape / (2 * step), -grads[0] * density
