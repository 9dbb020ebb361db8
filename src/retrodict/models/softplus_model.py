"""Models whose intensities are scaled softplus functions of drives, on a clock of their own (equation 2 of the paper).

    λ_k(t) = f_k(drive_k(t)),   f_k(x) = s_k log(1 + exp(x / s_k))

with a learned scale s_k for each type. Times are divided by the model's own ``time_scale``, chosen from the training
data, so nobody has to rescale by hand; intensities and likelihoods are in the user's units all the same. Integrals are
taken by quadrature.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from retrodict.errors import ModelError
from retrodict.events.batch import Batch
from retrodict.events.stream_set import StreamSet
from retrodict.models.base import Model, Terms, log_softplus
from retrodict.models.ctlstm import OwnClock
from retrodict.models.quadrature import GaussLegendre, Integral, cut_at, grade


class SoftplusModel(OwnClock, Model):
    """What such models share; one has a parameter ``log_scale`` [K] and defines ``drive``, ``drive_bound``, ``drives``.

    ``sizes`` are further arguments that must be positive whole numbers, by name.
    """

    log_scale: nn.Parameter

    def __init__(self, num_types: int, time_scale: float | None, **sizes: int) -> None:
        super().__init__()
        for name, value in {"num_types": num_types, **sizes}.items():
            if not (isinstance(value, int | np.integer) and value > 0):
                raise ModelError(f"{name} must be a positive whole number, but is {value!r}.")
        if time_scale is not None and not (math.isfinite(time_scale) and time_scale > 0):
            raise ModelError(f"time_scale must be a positive number, but is {time_scale!r}.")
        self.num_types = int(num_types)
        self._scale_is_chosen = time_scale is not None
        self.register_buffer("time_scale", torch.tensor(time_scale or 1.0, dtype=torch.float64))

    def activate(self, drive: Tensor) -> Tensor:
        """f_k(x) = s_k softplus(x / s_k), per unit of the user's time; the last dimension of x is K."""
        scale = self.log_scale.exp()
        return scale / self.time_scale.to(self.dtype) * F.softplus(drive / scale)

    def log_activate(self, drive: Tensor, types: Tensor | None = None) -> Tensor:
        """log f_k(x), [..., K]; or, with ``types`` [...], of one drive [...] for each type given."""
        log_scale = self.log_scale if types is None else self.log_scale[types]
        return log_scale + log_softplus(drive / log_scale.exp()) - self.time_scale.log().to(self.dtype)

    def intensity(self, state: Any, t: Tensor) -> Tensor:
        """λ_k(t) = f_k(drive_k(t)), [..., K] or [..., N, K]."""
        return self.activate(self.drive(state, t))

    def bound(self, state: Any, start: Tensor, stop: Tensor) -> Tensor:
        """f_k of the drive's bound, [..., K]."""
        return self.activate(self.drive_bound(state, start, stop)) * (1 + 8 * torch.finfo(self.dtype).eps)

    def compensator(self, state: Any, start: Tensor, stop: Tensor, integral: Integral | None = None) -> Tensor:
        """∫ λ_k by quadrature, [..., K]."""
        rule = integral or GaussLegendre()
        breaks = grade(rule, self.speeds(state), start, stop, None)
        positions, weights = cut_at(rule.nodes(start.shape, self.log_scale), start, stop, breaks)
        length = stop - start
        rates = self.intensity(state, start[..., None] + length[..., None] * positions)
        return (rates * weights[..., None]).sum(-2) * length.to(self.dtype)[..., None]

    def terms(self, batch: Batch, integral: Integral | None = None) -> Terms:
        """All intensities from one scan."""
        positions, weights = (integral or GaussLegendre()).nodes(batch.gaps.shape, batch.gaps)
        at_events, inside = self.drives(batch, positions)
        own = self.log_activate(at_events.gather(-1, batch.types[..., None])[..., 0], batch.types)
        areas = (self.activate(inside).sum(-1) @ weights) * batch.gaps
        return Terms(torch.where(batch.mask, own, 0.0), areas)

    def adapt(self, streams: StreamSet) -> None:
        """Also, once and unless a time scale was given, choose it (the mean gap) and start the rates right.

        With drives near zero each intensity starts at s_k log 2, so s_k is set to make that the mean rate;
        a rare type's softplus is kept from being too sharp to learn from.
        """
        super().adapt(streams)
        if not self._scale_is_chosen:
            self._choose_scales(streams)
            self._scale_is_chosen = True

    def _choose_scales(self, streams: StreamSet) -> None:
        total, gaps = float(streams.durations.sum()), streams.num_events + len(streams)
        self.time_scale.fill_(total / gaps if total > 0 else 1.0)
        per_gap = np.bincount(streams.event_types, minlength=self.num_types) / gaps
        with torch.no_grad():
            self.log_scale.copy_(torch.as_tensor(np.log(np.clip(per_gap / math.log(2), 0.05, 1.0))))

    def _given_scale(self) -> float | None:
        """The time scale as ``config`` says it."""
        return float(self.time_scale) if self._scale_is_chosen else None

    def _elapsed(self, state: Any, t: Tensor) -> Tensor:
        """Time since the last event by the model's clock; t is [...] or [..., N]."""
        last = state.time if t.dim() == state.time.dim() else state.time[..., None]
        return ((t - last) / self.time_scale).to(self.dtype)
