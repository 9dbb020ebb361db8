"""Hawkes processes in which events may also make others rarer (nonlinear Hawkes processes, Brémaud and Massoulié).

    λ_k(t) = f_k(x_k(t)),   f_k(x) = s_k log(1 + exp(x / s_k))
    x_k(t) = base_k + Σ_{(k', t') before t} Σ_r influence[r][k'][k] · decay_r · exp(-decay_r (t - t'))

s_k is the ``softness``. Where x_k is well above s_k, λ_k is close to x_k, and
``influence`` is the mean number of type-k events that an event of type k' causes directly at scale r, or, where it is
negative, prevents. Far below zero λ_k vanishes but is never zero. Integrals are taken by quadrature.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Literal

import torch
from torch import Tensor, nn

from retrodict import _limits
from retrodict.errors import ModelError
from retrodict.events.batch import Batch
from retrodict.events.stream_set import StreamSet
from retrodict.models.base import Terms
from retrodict.models.hawkes import HawkesState
from retrodict.models.hawkes_grid import decay_grid
from retrodict.models.linear_scan import linear_scan
from retrodict.models.poisson import Poisson, log_of
from retrodict.models.quadrature import GaussLegendre, Integral, Speeds, integrate_gaps
from retrodict.models.softplus_model import SoftplusModel


class NonlinearHawkes(SoftplusModel):
    """A Hawkes process of R scales whose ``influence`` [R, K, K], or [K, K] of one scale, may be negative.

    ``base`` [K] may be negative too; ``decay`` [R] and ``softness`` (one number, or one per type) are positive.
    ``time_scale`` is the unit of the model's own clock, on which its parameters are learned.

    >>> model = NonlinearHawkes(base=[0.5, 0.2], influence=[[-0.9, 0.6], [0.3, -0.5]], decay=2.0, softness=0.1)
    >>> model.intensity(model.initial((1,)), torch.zeros(1, dtype=torch.float64)).shape
    torch.Size([1, 2])
    """

    kind = "nonlinear_hawkes"
    learning_rate = 0.01

    def __init__(
        self,
        base: Sequence[float] | Tensor,
        influence: Sequence[Sequence[float]] | Sequence[Sequence[Sequence[float]]] | Tensor,
        decay: float | Sequence[float] | Tensor,
        softness: float | Sequence[float] | Tensor,
        time_scale: float = 1.0,
    ) -> None:
        first = _numbers(base, "base")
        K = len(first) if first.dim() == 1 else 0
        super().__init__(K, time_scale)
        caused = _numbers(influence, "influence")
        caused = caused[None] if caused.dim() == 2 else caused
        self.num_scales = len(caused)
        if caused.shape != (self.num_scales, K, K) or not self.num_scales:
            raise ModelError(f"influence must be {K} x {K}, or a list of such, but its shape is {tuple(caused.shape)}.")
        need = f"a Hawkes process of {K:,} types, each of which may influence each"
        _limits.ask_memory(16.0 * caused.numel(), need, "merge rare types, or use rd.NeuralHawkes")
        decays, soft = _numbers(decay, "decay").reshape(-1), _numbers(softness, "softness")
        for name, values in (("decay", decays), ("softness", soft)):
            if not bool((values > 0).all()):
                raise ModelError(f"{name} must be positive, but is {values.tolist()}.")
        self.base = nn.Parameter((first * time_scale).float())
        self.influence = nn.Parameter(caused.float())
        self.log_decay = nn.Parameter((log_of(decays, "decay", (self.num_scales,)) + math.log(time_scale)).float())
        self.log_scale = nn.Parameter((log_of(soft.expand(K), "softness", (K,)) + math.log(time_scale)).float().clone())

    @property
    def decays(self) -> Tensor:
        """By the model's clock, [R]."""
        return self.log_decay.exp()

    def initial(self, shape: Sequence[int]) -> HawkesState:
        """State of an empty history."""
        return HawkesState(
            torch.zeros(*shape, self.num_scales, self.num_types, dtype=self.dtype, device=self.device),
            torch.zeros(*shape, dtype=torch.float64, device=self.device),
        )

    def update(self, state: HawkesState, type: Tensor, time: Tensor) -> HawkesState:
        """What is left of the past at ``time``, and the event's own influence."""
        left = state.excited * self._fade(self._elapsed(state, time))[..., None]
        return HawkesState(left + self._jumps()[type], time)

    def drive(self, state: HawkesState, t: Tensor) -> Tensor:
        """x_k(t) by the model's clock, [..., K] or [..., N, K]."""
        fade = self._fade(self._elapsed(state, t))
        if t.dim() > state.time.dim():
            return self.base + fade @ state.excited
        return self.base + (fade[..., None, :] @ state.excited)[..., 0, :]

    def drive_bound(self, state: HawkesState, start: Tensor, stop: Tensor) -> Tensor:
        """The most, where what excites has faded until ``start`` and what inhibits until ``stop``, [..., K]."""
        return self._range(state, start, stop)[1]

    def feature_range(self, state: HawkesState, start: Tensor, stop: Tensor) -> tuple[Tensor, Tensor]:
        """Features are drives, as far as they are not below -30, [..., K] each."""
        low, high = self._range(state, start, stop)
        return low.clamp(min=-30), high.clamp(min=-30)

    def _range(self, state: HawkesState, start: Tensor, stop: Tensor) -> tuple[Tensor, Tensor]:
        """The least and the most of each drive: every influence fades towards zero; slack covers rounding."""
        first, last = (self._fade(self._elapsed(state, t))[..., None] for t in (start, stop))
        up, down = state.excited.clamp(min=0), state.excited.clamp(max=0)
        slack = 8 * torch.finfo(self.dtype).eps * (self.base.abs() + (state.excited.abs() * first).sum(-2))
        low, high = ((up * a + down * b).sum(-2) for a, b in ((last, first), (first, last)))
        return self.base + low - slack, self.base + high + slack

    def speeds(self, state: HawkesState) -> Speeds:
        """The decays, and how many events each scale can still add or take away: softplus has a slope of at most 1."""
        masses = state.excited.abs().sum(-1) / self.decays
        return Speeds((self.decays / self.time_scale.to(self.dtype)).expand_as(masses), masses)

    def batch_speeds(self, batch: Batch) -> Speeds:
        """From one scan, [B, L+1, R]."""
        found = self.speeds(self.gap_states(batch))
        return Speeds(*(part.unflatten(0, batch.gaps.shape) for part in found))

    def gap_states(self, batch: Batch) -> HawkesState:
        """From one scan, [B (L+1), ...]."""
        gaps = (batch.gaps / self.time_scale.to(self.dtype)).t()
        jumps = self._jumps()[batch.types.t()] * batch.mask.t()[..., None, None]
        jumps = torch.cat([torch.zeros_like(self.influence[:, 0]).expand(1, len(batch.types), -1, -1), jumps])
        after = linear_scan(self._fade(torch.cat([gaps[:1] * 0, gaps[:-1]]))[..., None].expand_as(jumps), jumps)
        times = torch.cat([batch.begins[:, None], batch.times], 1)
        return HawkesState(after.transpose(0, 1).flatten(0, 1), times.flatten())

    def drives(self, batch: Batch, positions: Tensor) -> tuple[Tensor, Tensor]:
        """All drives from one scan."""
        states, shape = self.gap_states(batch), batch.gaps.shape
        ends = torch.cat([positions, torch.ones_like(positions[..., :1])], -1).expand(*shape, -1)
        drives = self._within(states.excited, batch.gaps.flatten(), ends.flatten(0, 1)).unflatten(0, shape)
        return drives[:, :-1, -1], drives[:, :, :-1]

    def terms(self, batch: Batch, integral: Integral | None = None) -> Terms:
        """All intensities from one scan; gaps that need as many panels are integrated together."""
        rule, states, gaps = integral or GaussLegendre(), self.gap_states(batch), batch.gaps.flatten()
        at_events = self._within(states.excited, gaps, torch.ones_like(gaps[:, None]))[:, 0]
        at_events = at_events.unflatten(0, batch.gaps.shape)[:, :-1]
        own = self.log_activate(at_events.gather(-1, batch.types[..., None])[..., 0], batch.types)
        positions, weights = rule.nodes(batch.gaps.shape, batch.gaps)
        nodes = positions if positions.dim() == 1 else positions.flatten(0, 1), weights
        areas = integrate_gaps(
            rule,
            self.speeds(states),
            gaps,
            nodes,
            lambda rows, *cut: self._areas(states.excited[rows], gaps[rows], *cut),
        )
        return Terms(torch.where(batch.mask, own, 0.0), areas.unflatten(0, batch.gaps.shape))

    def _areas(self, excited: Tensor, gaps: Tensor, positions: Tensor, weights: Tensor) -> Tensor:
        """∫ Σ_k λ_k over N gaps by nodes at ``positions`` [Q] or [N, Q], [N]."""
        rates = self.activate(self._within(excited, gaps, positions.expand(len(gaps), -1)))
        return (rates.sum(-1) @ weights) * gaps

    def _within(self, excited: Tensor, gaps: Tensor, positions: Tensor) -> Tensor:
        """Drives at ``positions`` [N, Q] of N gaps that begin with ``excited`` [N, R, K], [N, Q, K]."""
        elapsed = (gaps / self.time_scale.to(self.dtype))[:, None] * positions
        return self.base + self._fade(elapsed) @ excited

    def _fade(self, elapsed: Tensor) -> Tensor:
        """What is left after times [...] by the model's clock, [..., R]."""
        return torch.exp(-self.decays * elapsed[..., None])

    def _jumps(self) -> Tensor:
        """What an event adds to each drive at each scale, [K, R, K]."""
        return (self.influence * self.decays[:, None, None]).transpose(0, 1)

    def step_memory(self, streams: int, events: int) -> float:
        """Also what each scale has of every type after every event, with what their scan keeps."""
        more = 10.0 * streams * (events + 1) * self.num_scales * self.num_types * self.dtype.itemsize
        return super().step_memory(streams, events) + more

    @classmethod
    def from_streams(
        cls, streams: StreamSet, scales: Literal["auto"] | int | Sequence[float] = "auto"
    ) -> NonlinearHawkes:
        """A start for training: half of each type's rate is spontaneous, the rest is excited evenly.

        ``scales`` are those of ``Hawkes.from_streams``.
        """
        rates, decays = Poisson.from_streams(streams).rates.detach(), decay_grid(streams, scales)
        share = (0.5 / len(decays)) * (rates / rates.sum()).expand(len(decays), len(rates), -1)
        gap = float(streams.durations.sum()) / (streams.num_events + len(streams))
        model = cls(0.5 * rates, share, decays.tolist(), 0.5 * rates, gap)
        model.adapt(streams)
        return model

    def config(self) -> dict[str, Any]:
        """Constructor arguments."""
        scale = float(self.time_scale)
        return {
            "base": (self.base.double() / scale).tolist(),
            "influence": self.influence.tolist(),
            "decay": (self.decays.double() / scale).tolist(),
            "softness": (self.log_scale.double().exp() / scale).tolist(),
            "time_scale": scale,
        }


def _numbers(values: Any, name: str) -> Tensor:
    """Finite numbers in double precision."""
    found = torch.as_tensor(values, dtype=torch.float64).detach()
    if not bool(torch.isfinite(found).all()):
        raise ModelError(f"{name} must be finite numbers, but is {found.tolist()}.")
    return found
