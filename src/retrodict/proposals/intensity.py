"""The intensities from which a proposal draws missing events, left to right: the contract of a proposal.

    λ^q_k(t | history, future) for each type, always with the factor ρ_k(t) (appendix C.6)

``prepare`` reads the observed streams once. ``ahead`` gathers, for each row, what is known of the future in one
segment (the stretch between two observed events); the sampler then asks for intensities and bounds given the
model's state and that. What the future adds may depend on the past: a proposal with ``reads_past`` is given the model's
features too.
"""

from __future__ import annotations

import copy
from abc import ABC, abstractmethod
from typing import Any, NamedTuple, Self

import torch
from torch import Tensor, nn

from retrodict.errors import ModelError
from retrodict.events.batch import Batch
from retrodict.events.stream_set import StreamSet
from retrodict.missingness.base import Context, Missingness, between
from retrodict.models.base import Model
from retrodict.models.quadrature import Speeds


class Rates(NamedTuple):
    """λ^p and λ^q at the same times, [..., K] each, and ρ."""

    model: Tensor
    proposal: Tensor
    missing: Tensor


class Intensity(nn.Module, ABC):
    """λ^q for a frozen model and a mechanism.

    A proposal defines ``prepare`` and ``ahead``, and, where the future adds something, ``future_drive`` with its bound
    ``future_drive_bound``, which thinning relies on.
    """

    def __init__(self, model: Model, missingness: Missingness) -> None:
        super().__init__()
        own = type(self)
        if own.future_drive is not Intensity.future_drive and own.future_drive_bound is Intensity.future_drive_bound:
            raise ModelError(
                f"{own.__name__} defines future_drive without future_drive_bound: events would be drawn from another "
                "proposal than the one they are weighed by. Define the bound too."
            )
        self.model = model
        self._take(missingness)

    def _take(self, missingness: Missingness) -> None:
        if not isinstance(missingness, Missingness):
            raise ModelError(
                f"{missingness!r} does not say how events go missing. Give a mechanism, such as rd.ByType(0.5)."
            )
        self.given_missingness = missingness
        names = self.model.types or tuple(str(k) for k in range(self.model.num_types))
        self.missingness = missingness.bind(names, self.model.time_unit)

    def given(self, missingness: Missingness) -> Self:
        """The same proposal for another mechanism; both share their weights."""
        other = copy.copy(self)
        other._take(missingness)
        return other

    def on(self, streams: StreamSet) -> Self:
        """The same proposal with dates of its mechanism in the zone of streams, where they have none of their own."""
        there = self.missingness.in_zone(streams.axis.timezone)
        return self if there is self.missingness else self.given(there)

    def endless(self) -> Self:
        """The same proposal for streams that are still going on: its model says nothing of their ends."""
        if self.model.end_atom is None:
            return self
        other = copy.copy(self)
        other._modules = {**self._modules, "model": self.model.endless()}
        return other

    @abstractmethod
    def prepare(self, observed: Batch) -> Any:
        """What q needs to know of B whole observed streams."""

    @abstractmethod
    def ahead(self, prepared: Any, stream: Tensor, segment: Tensor) -> Any:
        """The same for R rows, each in one segment of one stream: a NamedTuple with leading dimension R."""

    @property
    def reads_past(self) -> bool:
        """Whether what the future adds depends on the model's features, which are then computed for it."""
        return False

    @property
    def is_thinned_model(self) -> bool:
        """Whether λ^q_k is λ^p_k times a constant ρ_k, so that the integral of one gives that of the other."""
        return False

    def future_drive(self, ahead: Any, t: Tensor, past: Tensor | None) -> Tensor | None:
        """What the future adds to the model's drive at t [R] or [R, N]: [R(, N), K]; None where nothing.

        ``past`` [R(, N), F] are the model's features at t; None unless ``reads_past``.
        """
        return None

    def future_speeds(self, ahead: Any) -> Speeds | None:
        """How fast what the future adds moves, back from the right end of the segment, [R, S] each; as in models."""
        return None

    def future_drive_bound(
        self, ahead: Any, start: Tensor, stop: Tensor, past: tuple[Tensor, Tensor] | None
    ) -> Tensor | None:
        """A guaranteed upper bound of it over [start, stop], [R, K], with features within ``past``, [R, F] each."""
        return None

    def start_tilt(self, ahead: Any) -> Tensor | None:
        """What the future adds to the log probabilities of the start instant, [R, K+1]; None where nothing."""
        return None

    def rates(self, state: Any, ahead: Any, t: Tensor, context: Context | None = None) -> Rates:
        """λ^p_k and λ^q_k = ρ_k f_k(drive + what the future adds), at t [R] or [R, N]."""
        drive = self.model.drive(state, t)
        extra = self.future_drive(ahead, t, self.model.features(state, t) if self.reads_past else None)
        rho = self.missingness.rates(t, None if context is None else context.over(t)).to(drive.dtype)
        model = self.model.activate(drive)
        own = model if extra is None else self.model.activate(drive + extra)
        if self.model.calendar is not None:
            assert context is not None
            season = self.model.calendar.factor(t, context.over(t).start).to(drive.dtype)
            model, own = season * model, season * own
        return Rates(model, rho * own, rho)

    def bound(self, state: Any, ahead: Any, start: Tensor, stop: Tensor, context: Context | None = None) -> Tensor:
        """A guaranteed upper bound of λ^q_k over [start, stop] [R] if nothing happens there, [R, K]."""
        rho = self.missingness.bound(start, stop, context)
        if self.model.calendar is not None:
            assert context is not None
            rho = rho * self.model.calendar.bound(start, stop, context.start)
        past = self.model.feature_range(state, start, stop) if self.reads_past else None
        extra = self.future_drive_bound(ahead, start, stop, past)
        if extra is None:
            return rho.to(self.model.dtype) * self.model.bound(state, start, stop)
        reach = self.model.drive_bound(state, start, stop) + extra
        slack = 16 * torch.finfo(self.model.dtype).eps
        return rho.to(reach.dtype) * self.model.activate(reach + slack * (1 + reach.abs().clamp(max=1e6))) * (1 + slack)

    @property
    def is_timeless(self) -> bool:
        """Whether nothing but the past changes λ^q: no missing rate, and no calendar."""
        return self.missingness.is_constant and self.model.calendar is None

    def breaks(self, start: Tensor, stop: Tensor, context: Context) -> Tensor | None:
        """Times inside (start, stop) [...] where missing rates jump or bend, or a calendar moves on, [..., J]."""
        breaks, calendar = self.missingness.breaks(start, stop, context), self.model.calendar
        if calendar is None:
            return breaks
        further = calendar.breaks(start, stop, context.over(start).start)
        some = [times for times in (breaks, further) if times is not None]
        return between(torch.cat(some, -1), start, stop) if some else None

    def floor(self, state: Any, t: Tensor, start: Tensor, stop: Tensor, context: Context) -> Tensor:
        """λ^p_k at t [R, N] times the bound of ρ_k over [start, stop] [R, N]: zero where nothing can go missing."""
        rho = self.missingness.bound(start, stop, context.over(start))
        if self.model.calendar is not None:
            rho = rho * self.model.calendar.factor(t, context.over(t).start)
        return self.model.intensity(state, t) * rho.to(self.model.dtype)

    def start_log_probs(self, ahead: Any, context: Context) -> Tensor:
        """log q of no event (index 0) or a missing one of type k (1 + k) at the start instant, [R, K+1].

        Asked only of streams whose model has a start atom and that have no observed event there.
        """
        assert self.model.start_atom is not None
        rates = self.missingness.rates(torch.zeros_like(context.start), context).to(self.model.dtype)
        joint = self.model.start_atom.log_probs + torch.cat([torch.zeros_like(rates[:, :1]), rates.log()], 1)
        tilt = self.start_tilt(ahead)
        return torch.log_softmax(joint if tilt is None else joint + tilt, -1)
