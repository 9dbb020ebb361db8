"""Multivariate Hawkes processes: each event raises intensities, which then decay. Kernels are sums of exponentials.

λ_k(t) = base_k + Σ_{(k', t') before t} φ_k'k(t - t')

With one exponential, φ_k'k(τ) = excitation[k'][k] · decay_k · exp(-decay_k τ). With R of them, at decays that all
pairs share, φ_k'k(τ) = Σ_r excitation[r][k'][k] · decay_r · exp(-decay_r τ): on a grid of decays such sums come close
to kernels that fall at many speeds, as power laws do. ``excitation`` is the mean number of type-k events that one event
of type k' causes directly (at scale r).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Literal, NamedTuple

import torch
from torch import Tensor, nn

from retrodict import _limits
from retrodict.errors import ModelError
from retrodict.events.batch import Batch
from retrodict.events.stream_set import StreamSet
from retrodict.models.base import Model, Terms
from retrodict.models.hawkes_fit import Fit, fit_excitation
from retrodict.models.hawkes_grid import decay_grid
from retrodict.models.poisson import Poisson, log_of
from retrodict.models.quadrature import Integral, Speeds

_CHUNK = 64
_PAIRS = 1 << 24  # numbers of all pairs of a chunk, for each stream and type
_TURNS = 2  # of a calendar and what is excited
_LEAST = 1e-9  # events caused: logarithms of parameters stay finite, so that gradients can go on from them


class HawkesState(NamedTuple):
    """``excited`` [..., R, K]: what past events add to each intensity at each scale, just after ``time`` [...]."""

    excited: Tensor
    time: Tensor


class Hawkes(Model):
    """A Hawkes process with one exponential a kernel, or with R of them.

    One: ``excitation`` is [K, K], and ``decay`` one number or one per excited type. R: ``excitation`` is [R, K, K], and
    ``decay`` [R].

    >>> model = Hawkes(base=[0.2, 0.1], excitation=[[0.5, 0.2], [0.0, 0.3]], decay=1.5)
    >>> model.num_types
    2
    >>> Hawkes(base=[0.2], excitation=[[[0.3]], [[0.4]]], decay=[100.0, 1.0]).num_scales
    2
    """

    kind = "hawkes"
    learning_rate = 0.05
    exact_integrals = True

    def __init__(
        self,
        base: Sequence[float] | Tensor,
        excitation: Sequence[Sequence[float]] | Sequence[Sequence[Sequence[float]]] | Tensor,
        decay: float | Sequence[float] | Tensor,
    ) -> None:
        super().__init__()
        self.log_base = nn.Parameter(log_of(base, "base", (None,)))
        K, dtype = len(self.log_base), self.log_base.dtype
        self.num_types = K
        floating = isinstance(excitation, Tensor) and excitation.is_floating_point()
        caused = torch.as_tensor(excitation, dtype=None if floating else torch.float64)
        self.many = caused.dim() == 3
        self.num_scales = len(caused) if self.many else 1
        _limits.ask_memory(
            16.0 * self.num_scales * K * K,
            f"a Hawkes process of {K:,} types, each of which may excite each",
            "merge rare types, or use rd.NeuralHawkes, whose size grows with the number of types, not its square",
        )
        shape = (None, K, K) if self.many else (K, K)
        self.log_excitation = nn.Parameter(log_of(caused, "excitation", shape).to(dtype))
        decays = torch.as_tensor(decay, dtype=dtype)
        if not bool((decays > 0).all()):
            raise ModelError(f"decay must be positive, but is {decays.tolist()}.")
        wanted = (self.num_scales,) if self.many else (K,) if decays.dim() else ()
        self.log_decay = nn.Parameter(log_of(decays, "decay", wanted))

    @property
    def base(self) -> Tensor:
        """[K]."""
        return self.log_base.exp()

    @property
    def excitation(self) -> Tensor:
        """[K, K] or [R, K, K], from the exciting type to the excited one."""
        return self.log_excitation.exp()

    @property
    def decay(self) -> Tensor:
        """[] or [K] of one exponential, [R] of several."""
        return self.log_decay.exp()

    @property
    def decays(self) -> Tensor:
        """By scale and excited type, [R, K], or [R, 1] where types share them."""
        return self.decay[:, None] if self.many else self.decay.reshape(1, -1)

    @property
    def jumps(self) -> Tensor:
        """What an event adds to each intensity at each scale, [K, R, K]."""
        caused = self.excitation if self.many else self.excitation[None]
        return (caused * self.decays[:, None]).transpose(0, 1)

    def initial(self, shape: Sequence[int]) -> HawkesState:
        """State of an empty history."""
        return HawkesState(
            torch.zeros(*shape, self.num_scales, self.num_types, dtype=self.dtype, device=self.device),
            torch.zeros(*shape, dtype=torch.float64, device=self.device),
        )

    def update(self, state: HawkesState, type: Tensor, time: Tensor) -> HawkesState:
        """Decay to ``time``, then add the event's jumps."""
        own = (self.log_excitation.transpose(0, 1) if self.many else self.log_excitation[:, None])[type]
        return HawkesState(self._excited(state, time) + own.exp() * self.decays, time)  # of the types that happened

    def intensity(self, state: HawkesState, t: Tensor) -> Tensor:
        """λ_k(t), [..., K] or [..., N, K]."""
        return self.base + self._excited(state, t).sum(-2)

    def bound(self, state: HawkesState, start: Tensor, stop: Tensor) -> Tensor:
        """Intensities only fall until the next event, so the bound is the intensity at ``start``."""
        return self.intensity(state, start)

    def feature_range(self, state: HawkesState, start: Tensor, stop: Tensor) -> tuple[Tensor, Tensor]:
        """They fall with the intensities, [..., K] each."""
        return self.features(state, stop), self.features(state, start)

    def speeds(self, state: HawkesState) -> Speeds:
        """The decays, and how many events each scale still causes, of all types together or, with decays of their own,
        of each: [..., R] or [..., K]."""
        masses = state.excited / self.decays
        masses = masses[..., 0, :] if self.decays.shape[1] > 1 else masses.sum(-1)
        return Speeds(self.decays.reshape(-1).expand_as(masses), masses)

    def compensator(self, state: HawkesState, start: Tensor, stop: Tensor) -> Tensor:
        """∫ λ_k in closed form, [..., K]."""
        length = (stop - start).to(self.dtype)[..., None]
        return self.base * length - (self._excited(state, start) * self._lost(length)).sum(-2)

    def terms(self, batch: Batch, integral: Integral | None = None) -> Terms:
        """Exact, differentiable, and linear in the length of the streams."""
        excited, after = self._excitations(batch)
        rates = (self.base + excited.sum(-2)).gather(-1, batch.types[..., None])[..., 0]
        gaps = batch.gaps[..., None]
        areas = self.base * gaps - (after * self._lost(gaps)).sum(-2)
        return Terms(torch.where(batch.mask, rates, 1.0).log(), areas.sum(-1))

    def gap_states(self, batch: Batch) -> HawkesState:
        """By the same recursion, [B (L+1), ...]."""
        after = self._excitations(batch)[1].flatten(0, 1)
        return HawkesState(after, torch.cat([batch.begins[:, None], batch.times], 1).flatten())

    def _excitations(self, batch: Batch) -> tuple[Tensor, Tensor]:
        """What earlier events add just before each event [B, L, R, K], and when each gap begins [B, L+1, R, K].

        The recursion in chunks: within a chunk all pairs at once, between chunks the decayed sum.
        """
        B, L = batch.types.shape
        jumps = self.jumps
        carried = torch.zeros(B, self.num_scales, self.num_types, dtype=self.dtype, device=self.device)
        carried_from = torch.zeros(B, dtype=torch.float64, device=self.device)
        before = []  # what earlier events add to each intensity at each event, left limit
        chunk = self._chunk(B)
        for first in range(0, L, chunk):
            times = batch.times[:, first : first + chunk]
            jump = jumps[batch.types[:, first : first + chunk]]
            jump = jump * batch.mask[:, first : first + chunk, None, None]
            fade = self._fade(times - carried_from[:, None])
            earlier = torch.ones(times.shape[1], times.shape[1], device=self.device).tril(-1)
            lag = self._fade((times[:, :, None] - times[:, None, :]).clamp(min=0))
            added = torch.einsum("bijrk,ij,bjrk->birk", lag, earlier.to(lag.dtype), jump)
            before.append(carried[:, None] * fade + added)
            carried = before[-1][:, -1] + jump[:, -1]
            carried_from = times[:, -1]
        excited = torch.cat(before, 1) if before else carried[:, None][:, :0]
        return excited, torch.cat([torch.zeros_like(carried)[:, None], excited + jumps[batch.types]], 1)

    def step_memory(self, streams: int, events: int) -> float:
        """All pairs of events within a chunk, for each scale, and for each type that has decays of its own."""
        pairs = min(events, self._chunk(streams)) * self.decays.numel() + 4 * self.num_scales * self.num_types
        return 3.5 * streams * events * pairs * self.dtype.itemsize

    def _chunk(self, streams: int) -> int:
        """Events of a chunk: few where there are many decays, so that all pairs of them take little memory."""
        return max(1, min(_CHUNK, math.isqrt(_PAIRS // max(1, streams * self.decays.numel()))))

    def _excited(self, state: HawkesState, t: Tensor) -> Tensor:
        """What past events still add at t, [..., R, K] or [..., N, R, K]."""
        one = t.dim() == state.time.dim()
        excited, last = (state.excited, state.time) if one else (state.excited.unsqueeze(-3), state.time[..., None])
        return excited * self._fade(t - last)

    def _fade(self, elapsed: Tensor) -> Tensor:
        """What is left after a time [...], [..., R, K or 1]."""
        return torch.exp(-self.decays * elapsed.to(self.dtype)[..., None, None])

    def _lost(self, length: Tensor) -> Tensor:
        """(exp(-decay length) - 1) / decay for lengths [..., 1], [..., R, K or 1]."""
        decays = self.decays
        return torch.expm1(-decays * length[..., None]) / decays

    @classmethod
    def from_streams(cls, streams: StreamSet, scales: Literal["auto"] | int | Sequence[float] | None = None) -> Hawkes:
        """A start for training: half of each type's rate is spontaneous, the rest is excited evenly.

        ``scales`` gives kernels several exponentials: "auto" lays a grid of decays over the gaps of the streams
        (``models/hawkes_grid.py``), a number says how many, and a list which decays. Without it there is one.
        """
        rates = Poisson.from_streams(streams).rates.detach()
        share = 0.5 * (rates / rates.sum()).expand(len(rates), -1)
        if scales is None:
            model = cls(0.5 * rates, share.clone(), 2.0 * float(rates.sum()))
        else:
            decays = torch.as_tensor(decay_grid(streams, scales), dtype=torch.float64)
            model = cls(0.5 * rates, (share / len(decays)).repeat(len(decays), 1, 1), decays)
        model.adapt(streams)
        return model

    def solve(self, train: StreamSet, dev: StreamSet) -> dict[str, Any] | None:
        """With several scales: the base rates and excitations of greatest likelihood, for the decays as they are.

        What is held back against chance, and the certificate of convergence: ``models/hawkes_fit.py``.
        """
        if not self.many:
            return None
        record = self._solve(train, dev)
        if self.calendar is not None:  # in turn with what is excited
            from retrodict.models.calendar_fit import improve_calendar

            for _ in range(_TURNS):
                improve_calendar(self, train, dev)
                record = self._solve(train, dev)
        return record

    def _solve(self, train: StreamSet, dev: StreamSet) -> dict[str, Any]:
        decays = self.decay.detach().double().cpu().numpy()
        fit: Fit = fit_excitation(train, dev, decays, self.start_atom is not None, self.calendar)
        with torch.no_grad():
            self.log_base.copy_(torch.from_numpy(fit.base).log())
            self.log_excitation.copy_(torch.from_numpy(fit.excitation).clamp(min=_LEAST).log())
        return fit.record

    def config(self) -> dict[str, Any]:
        """Constructor arguments."""
        return {"base": self.base.tolist(), "excitation": self.excitation.tolist(), "decay": self.decay.tolist()}
