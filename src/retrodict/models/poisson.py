"""Homogeneous Poisson processes, one per type: the model of streams without memory."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from retrodict.errors import DataError, ModelError
from retrodict.events.stream_set import StreamSet
from retrodict.models.base import Model
from retrodict.models.start import first_types


class PoissonState(NamedTuple):
    """Nothing but the time of the last event."""

    time: Tensor


class Poisson(Model):
    """λ_k(t) = rate_k.

    >>> Poisson([0.5, 2.0]).num_types
    2
    """

    kind = "poisson"
    learning_rate = 0.05
    exact_integrals = True

    def __init__(self, rates: Sequence[float] | Tensor) -> None:
        super().__init__()
        self.log_rates = nn.Parameter(log_of(rates, "rates", (None,)))
        self.num_types = len(self.log_rates)

    @property
    def rates(self) -> Tensor:
        """[K], events per unit of time."""
        return self.log_rates.exp()

    def initial(self, shape: Sequence[int]) -> PoissonState:
        """State of an empty history."""
        return PoissonState(torch.zeros(*shape, dtype=torch.float64, device=self.device))

    def update(self, state: PoissonState, type: Tensor, time: Tensor) -> PoissonState:
        """Nothing is remembered but the time."""
        return PoissonState(time)

    def intensity(self, state: PoissonState, t: Tensor) -> Tensor:
        """The rates, [..., K]."""
        return self.rates.expand(*t.shape, self.num_types)

    def bound(self, state: PoissonState, start: Tensor, stop: Tensor) -> Tensor:
        """The rates themselves, [..., K]."""
        return self.rates.expand(*start.shape, self.num_types)

    def feature_range(self, state: PoissonState, start: Tensor, stop: Tensor) -> tuple[Tensor, Tensor]:
        """They never change, [..., K] each."""
        features = self.features(state, start)
        return features, features

    def compensator(self, state: PoissonState, start: Tensor, stop: Tensor) -> Tensor:
        """rate_k (stop - start), [..., K]."""
        return (stop - start).to(self.dtype)[..., None] * self.rates

    def adapt(self, streams: StreamSet) -> None:
        """Also set the rates to their maximum-likelihood values: counts over total time."""
        super().adapt(streams)
        events = torch.bincount(torch.from_numpy(streams.event_types.copy()), minlength=self.num_types)
        if self.start_atom is not None:
            first = torch.from_numpy(first_types(streams))
            events = events - torch.bincount(first[first >= 0], minlength=self.num_types)
        total = float(streams.durations.sum())
        if total <= 0:
            raise DataError(
                "all streams have length zero: no rate can be learned",
                remedy="say when streams start and until when they were watched (start and end)",
            )
        # Half an event for types never seen keeps dev streams that have one from being impossible.
        rates = events.clamp(min=0.5) / total
        with torch.no_grad():
            self.log_rates.copy_(rates.log())

    def solve(self, train: StreamSet, dev: StreamSet) -> dict[str, Any] | None:
        """With a calendar: the weights of greatest likelihood, whose first says how many events there are in all."""
        if self.calendar is None:
            return None
        from retrodict.models.calendar_fit import improve_calendar

        improve_calendar(self, train, dev)
        return {"ended": "converged"}

    @classmethod
    def from_streams(cls, streams: StreamSet) -> Poisson:
        """The maximum-likelihood Poisson process of complete streams."""
        model = cls(torch.ones(streams.num_types, dtype=torch.float64))
        model.adapt(streams)
        return model

    def config(self) -> dict[str, Any]:
        """Constructor arguments."""
        return {"rates": self.rates.tolist()}


def log_of(values: Any, name: str, shape: tuple[int | None, ...]) -> Tensor:
    """log of non-negative parameters of the given shape (None: any size); zero becomes -inf and stays so."""
    # Numbers are taken in double precision, so that nothing of what the user wrote is lost; tensors as they are.
    floating = isinstance(values, Tensor) and values.is_floating_point()
    tensor = values if floating else torch.as_tensor(values, dtype=torch.float64)
    fits = tensor.dim() == len(shape) and all(w in (None, n) for w, n in zip(shape, tensor.shape, strict=True))
    if not fits:
        wanted = " x ".join("any" if w is None else str(w) for w in shape) or "a single number"
        raise ModelError(f"{name} must have shape {wanted}, but have shape {tuple(tensor.shape)}.")
    if not bool((torch.isfinite(tensor) & (tensor >= 0)).all()):
        raise ModelError(f"{name} must be finite and not negative, but are {tensor.tolist()}.")
    return tensor.detach().clone().log()
