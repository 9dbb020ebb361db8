"""Multivariate Hawkes processes with exponential kernels: each event raises intensities, which then decay.

λ_k(t) = base_k + Σ_{(k', t') before t} excitation[k'][k] · decay_k · exp(-decay_k (t - t'))

``excitation[k'][k]`` is the mean number of type-k events that one event of type k' causes directly.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from retrodict.errors import ModelError
from retrodict.events.batch import Batch
from retrodict.events.stream_set import StreamSet
from retrodict.models.base import Model, Terms
from retrodict.models.poisson import Poisson, log_of
from retrodict.models.quadrature import Integral

_CHUNK = 64


class HawkesState(NamedTuple):
    """``excited`` [..., K]: what past events add to each intensity, just after ``time`` [...]."""

    excited: Tensor
    time: Tensor


class Hawkes(Model):
    """Exponential-kernel Hawkes process; ``decay`` is one number or one per excited type.

    >>> model = Hawkes(base=[0.2, 0.1], excitation=[[0.5, 0.2], [0.0, 0.3]], decay=1.5)
    >>> model.num_types
    2
    """

    kind = "hawkes"
    learning_rate = 0.05

    def __init__(
        self,
        base: Sequence[float] | Tensor,
        excitation: Sequence[Sequence[float]] | Tensor,
        decay: float | Sequence[float] | Tensor,
    ) -> None:
        super().__init__()
        self.log_base = nn.Parameter(log_of(base, "base", (None,)))
        K = self.num_types = len(self.log_base)
        self.log_excitation = nn.Parameter(log_of(excitation, "excitation", (K, K)).to(self.log_base.dtype))
        decays = torch.as_tensor(decay, dtype=self.log_base.dtype)
        if not bool((decays > 0).all()):
            raise ModelError(f"decay must be positive, but is {decays.tolist()}.")
        self.log_decay = nn.Parameter(log_of(decays, "decay", (K,) if decays.dim() else ()))

    @property
    def base(self) -> Tensor:
        """[K]."""
        return self.log_base.exp()

    @property
    def excitation(self) -> Tensor:
        """[K, K], from the exciting type to the excited one."""
        return self.log_excitation.exp()

    @property
    def decay(self) -> Tensor:
        """[] or [K]."""
        return self.log_decay.exp()

    def initial(self, shape: Sequence[int]) -> HawkesState:
        """State of an empty history."""
        return HawkesState(
            torch.zeros(*shape, self.num_types, dtype=self.dtype, device=self.device),
            torch.zeros(*shape, dtype=torch.float64, device=self.device),
        )

    def update(self, state: HawkesState, type: Tensor, time: Tensor) -> HawkesState:
        """Decay to ``time``, then add the event's jumps."""
        faded = state.excited * torch.exp(-self.decay * self._elapsed(state, time)[..., None])
        return HawkesState(faded + self._jumps()[type], time)

    def intensity(self, state: HawkesState, t: Tensor) -> Tensor:
        """λ_k(t), [..., K] or [..., N, K]."""
        excited = state.excited if t.dim() == state.time.dim() else state.excited.unsqueeze(-2)
        return self.base + excited * torch.exp(-self.decay * self._elapsed(state, t)[..., None])

    def bound(self, state: HawkesState, start: Tensor, stop: Tensor) -> Tensor:
        """Intensities only fall until the next event, so the bound is the intensity at ``start``."""
        return self.intensity(state, start)

    def feature_range(self, state: HawkesState, start: Tensor, stop: Tensor) -> tuple[Tensor, Tensor]:
        """They fall with the intensities, [..., K] each."""
        return self.features(state, stop), self.features(state, start)

    def compensator(self, state: HawkesState, start: Tensor, stop: Tensor) -> Tensor:
        """∫ λ_k in closed form, [..., K]."""
        length = (stop - start).to(self.dtype)[..., None]
        excited = self.intensity(state, start) - self.base
        return self.base * length - excited * torch.expm1(-self.decay * length) / self.decay

    def terms(self, batch: Batch, integral: Integral | None = None) -> Terms:
        """The recursion in chunks: within a chunk all pairs at once, between chunks the decayed sum.

        Exact, differentiable, and linear in the length of the streams.
        """
        B, L = batch.types.shape
        decay, jumps = self.decay.expand(self.num_types), self._jumps()
        carried = torch.zeros(B, self.num_types, dtype=self.dtype, device=self.device)
        carried_from = torch.zeros(B, dtype=torch.float64, device=self.device)
        before = []  # what earlier events add to each intensity at each event, left limit
        for first in range(0, L, _CHUNK):
            times = batch.times[:, first : first + _CHUNK]
            jump = jumps[batch.types[:, first : first + _CHUNK]]
            jump = jump * batch.mask[:, first : first + _CHUNK, None]
            fade = self._fade(times - carried_from[:, None], decay)
            earlier = torch.ones(times.shape[1], times.shape[1], device=self.device).tril(-1)
            lag = self._fade((times[:, :, None] - times[:, None, :]).clamp(min=0), decay)
            added = torch.einsum("bijk,ij,bjk->bik", lag, earlier.to(lag.dtype), jump)
            before.append(carried[:, None] * fade + added)
            carried = before[-1][:, -1] + jump[:, -1]
            carried_from = times[:, -1]
        excited = torch.cat(before, 1) if before else carried[:, None][:, :0]
        rates = (self.base + excited).gather(-1, batch.types[..., None])[..., 0]
        after = torch.cat([torch.zeros_like(carried)[:, None], excited + jumps[batch.types]], 1)
        gaps = batch.gaps[..., None]
        areas = self.base * gaps - after * torch.expm1(-decay * gaps) / decay
        return Terms(torch.where(batch.mask, rates, 1.0).log(), areas.sum(-1))

    def step_memory(self, streams: int, events: int) -> float:
        """All pairs of events within a chunk, for each type."""
        return 3.5 * streams * events * min(events, _CHUNK) * self.num_types * self.dtype.itemsize

    def _fade(self, elapsed: Tensor, decay: Tensor) -> Tensor:
        return torch.exp(-decay * elapsed.to(self.dtype)[..., None])

    def _jumps(self) -> Tensor:
        return self.excitation * self.decay

    def _elapsed(self, state: HawkesState, t: Tensor) -> Tensor:
        last = state.time if t.dim() == state.time.dim() else state.time[..., None]
        return (t - last).to(self.dtype)

    @classmethod
    def from_streams(cls, streams: StreamSet) -> Hawkes:
        """A start for training: half of each type's rate is spontaneous, the rest is excited evenly."""
        rates = Poisson.from_streams(streams).rates.detach()
        share = 0.5 * (rates / rates.sum()).expand(len(rates), -1)
        model = cls(0.5 * rates, share.clone(), 2.0 * float(rates.sum()))
        model.adapt(streams)
        return model

    def config(self) -> dict[str, Any]:
        """Constructor arguments."""
        return {"base": self.base.tolist(), "excitation": self.excitation.tolist(), "decay": self.decay.tolist()}
