"""Particle smoothing: a second continuous-time LSTM reads the observed future from right to left (section 3.2).

    λ^q_k(t) = ρ_k(t) f_k(v_k · (h(t) + B h̄(t)))                                         equation (5), C.6

The model's part v_k · h(t) is its ``drive``, shared and frozen; for a model without hidden states it is the
inverse softplus of its intensity, a statistic of the past. What the future adds is u_k · h̄(t) with
u_k = v_kᵀ B (appendix C.4): one vector per type.

There past and future only add up, which cannot express that an event which the future speaks for has happened already.
With ``mixing`` units they also interact:

    λ^q_k(t) = ρ_k(t) f_k(v_k · h(t) + u_k · h̄(t) + w_k · tanh(P h(t) + Q h̄(t) + b))

where h(t) are the model's ``features``.

At each input the right-to-left LSTM is also told what can go missing: the mean of ρ_k over the segment left of the
event, and ρ_k at the event itself (``told_rates.py``), with weights of their own. So one smoother can be trained for
many mechanisms, and be given any.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from retrodict import _limits
from retrodict.errors import ModelError
from retrodict.events.batch import Batch
from retrodict.missingness.anything import Anything
from retrodict.missingness.base import Missingness
from retrodict.models.base import Model
from retrodict.models.ctlstm import (
    Cells,
    CellsSince,
    ContinuousTimeLSTM,
    OwnClock,
    hidden_at,
    hidden_range,
    linear_bound,
)
from retrodict.models.ctlstm_project import project
from retrodict.models.quadrature import Speeds
from retrodict.proposals.base import Proposal
from retrodict.proposals.mixing import mix
from retrodict.proposals.told_rates import rate_inputs, told_rates

MIXING = 32  # units by default: the most effective samples a second (docs/imputation.md)


class Future(NamedTuple):
    """The right-to-left LSTM for each segment of B streams.

    Cells [B, S, D'] after it has read every observed event from the right up to the segment's right end, and
    that end [B, S] float64. Segment i lies between observed events i - 1 and i; the last one ends at T.
    """

    cells: Cells
    right: Tensor


class Smoothing(OwnClock, Proposal):
    """A trainable proposal with ``hidden_size`` right-to-left cells and ``mixing`` units that see past and future.

    Without ``missingness`` it is trained on mechanisms of all kinds (``missingness/anything.py``), and is given one
    when it is used: ``rd.impute(observed, smoother, missing=...)``.

    By default there are as many cells as the model's own LSTM has (64 where it has none), and 32 units, fewer where
    neither LSTM has 32 cells. 0 units are the paper's form, in which past and future only add up; it is also the
    default for a model without ``feature_range`` (``models/base.py``), whose features have no known bounds for
    thinning to rely on. ``told`` says whether the LSTM is told the missing rates.
    """

    kind = "smoothing"

    def __init__(
        self,
        model: Model,
        missingness: Missingness | None = None,
        hidden_size: int | None = None,
        mixing: int | None = None,
        told: bool = True,
    ) -> None:
        super().__init__(model, Anything() if missingness is None else missingness)
        if hidden_size is None:
            hidden_size = int(getattr(model, "hidden_size", 64))
        if not (isinstance(hidden_size, int) and hidden_size > 0):
            raise ModelError(f"hidden_size must be a positive whole number, but is {hidden_size!r}.")
        has_range = type(model).feature_range is not Model.feature_range
        if mixing is None:
            mixing = min(MIXING, max(hidden_size, getattr(model, "hidden_size", 0))) if has_range else 0
        if not (isinstance(mixing, int) and mixing >= 0):
            raise ModelError(f"mixing must be a whole number of units, or 0 for none, but is {mixing!r}.")
        if mixing and not has_range:
            raise ModelError(
                f"past and future cannot be mixed for a {type(model).__name__} model, which does not say within which "
                "bounds its features stay. Define feature_range (models/base.py), or leave mixing out."
            )
        if not isinstance(told, bool):
            raise ModelError(f"told must be True or False, but is {told!r}.")
        self.hidden_size = hidden_size
        self.lstm = ContinuousTimeLSTM(model.num_types + 1, hidden_size)
        spread = 1 / math.sqrt(hidden_size)
        # Small at first: training starts near filtering.
        self.readout = nn.Parameter(torch.empty(model.num_types, hidden_size).uniform_(-spread, spread) * 0.1)
        self.start_readout = nn.Parameter(torch.zeros(model.num_types + 1, hidden_size))
        rates = torch.empty(6 * model.num_types, 7 * hidden_size).uniform_(-spread, spread) if told else None
        self.by_rate = None if rates is None else nn.Parameter(rates)
        self.mix = Mixing(model.num_features, hidden_size, mixing, model.num_types) if mixing else None
        scale = getattr(model, "time_scale", None)
        self.register_buffer("time_scale", torch.tensor(1.0 if scale is None else float(scale), dtype=torch.float64))
        self.to(model.device, model.dtype)
        for parameter in model.parameters():
            parameter.requires_grad_(False)

    @property
    def boundary(self) -> int:
        """The LSTM's input for EOS, the boundary event at the end."""
        return self.model.num_types

    @property
    def mixing(self) -> int:
        """Units where past and future interact."""
        return 0 if self.mix is None else self.mix.past.out_features

    @property
    def reads_past(self) -> bool:
        """Where there are such units."""
        return self.mix is not None

    def config(self) -> dict[str, Any]:
        """Constructor arguments."""
        return {"hidden_size": self.hidden_size, "mixing": self.mixing, "told": self.by_rate is not None}

    @classmethod
    def from_config(cls, model: Model, missingness: Missingness, **config: Any) -> Smoothing:
        """The same as was saved: folders written before ``mixing`` or ``told`` were recorded have neither."""
        return cls(model, missingness, **{"mixing": 0, "told": False, **config})

    def input_table(self) -> Tensor:
        """The share of the gates that each input has, bias included, [K+1, 7 D']; with the rates, if they never change.

        Where ``input_shares`` gives shares one by one, they take its place.
        """
        table = self.lstm.bias + self.lstm.by_type
        if self.by_rate is None or not self.missingness.is_constant:
            return table
        with torch.no_grad():
            rates = self.missingness.rates(torch.zeros((), device=table.device))
        return table + rate_inputs(torch.cat([rates, rates])).to(table.dtype) @ self.by_rate

    def input_shares(self, observed: Batch) -> Tensor | None:
        """The same for the input at the right end of each segment, [B, S, 7 D']; None where the table says all."""
        if self.by_rate is None or self.missingness.is_constant:
            return None
        rates = rate_inputs(told_rates(self.missingness, observed)).to(self.by_rate.dtype)
        ends = torch.where(observed.mask, observed.types, self.boundary)
        types = F.pad(ends, (0, 1), value=self.boundary)
        return F.embedding(types, self.lstm.bias + self.lstm.by_type) + rates @ self.by_rate

    def prepare(self, observed: Batch) -> Future:
        """Read EOS at T, then the observed events from the last to the first."""
        B, L = observed.types.shape
        count = observed.mask.sum(1, keepdim=True)
        back = count - torch.arange(L + 1, device=count.device)  # which gap follows the j-th input from the right
        gaps = torch.where(back >= 0, observed.gaps.gather(1, back.clamp(min=0)), 0.0)
        scaled = (gaps / self.time_scale.to(gaps.dtype)).t().contiguous()
        shares = self.input_shares(observed)
        if shares is None:
            padded = torch.cat([observed.types, observed.types.new_zeros(B, 1)], 1)
            types = torch.where(back >= 0, padded.gather(1, back.clamp(min=0)), 0)
            types[:, 0] = self.boundary
            cells, _ = self.lstm.scan(types.t().contiguous(), scaled, count[:, 0] + 1, self.input_table())
        else:
            order = back.clamp(min=0).t()[..., None].expand(-1, -1, shares.shape[-1])
            cells, _ = self.lstm.scan(None, scaled, count[:, 0] + 1, shares.transpose(0, 1).gather(0, order))
        # Segment i was entered after reading count - i inputs beyond EOS.
        order = (back.clamp(min=0) * B + torch.arange(B, device=back.device)[:, None]).flatten()
        by_segment = Cells(*(field.flatten(0, 1).index_select(0, order).unflatten(0, (B, L + 1)) for field in cells))
        return Future(by_segment, torch.cat([observed.times, observed.durations[:, None]], 1))

    def ahead(self, prepared: Future, stream: Tensor, segment: Tensor) -> CellsSince:
        """Gather the rows' segments; the event that was read last is at the segment's right end."""
        row = stream * prepared.right.shape[1] + segment
        fields = (*prepared.cells, prepared.right)
        return CellsSince(*(field.flatten(0, 1).index_select(0, row) for field in fields))

    def future_drive(self, ahead: CellsSince, t: Tensor, past: Tensor | None) -> Tensor:
        """u_k · h̄(t), and what mixing adds, [R(, N), K]."""
        if self.mix is None:
            return self._project(ahead, t, self.readout)
        assert past is not None
        return self.mix(past, self._project(ahead, t, torch.cat([self.readout, self.mix.future.weight])))

    def future_speeds(self, ahead: CellsSince) -> Speeds:
        """Each cell's decay, per unit of the user's time, and what its move to its target can add in all, [R, D']."""
        rates = ahead.decay / self.time_scale.to(ahead.decay.dtype)
        moved = ahead.output * (ahead.start - ahead.target).abs().clamp(max=2.0)
        return Speeds(rates, moved * self.future_weight() / ahead.decay)

    def future_weight(self) -> Tensor:
        """The most that all drives together can change with each h̄_d: tanh has a slope of at most 1, [D']."""
        alone, mix = self.readout.abs().sum(0), self.mix
        return alone if mix is None else alone + mix.readout.weight.abs().sum(0) @ mix.future.weight.abs()

    def future_drive_bound(
        self, ahead: CellsSince, start: Tensor, stop: Tensor, past: tuple[Tensor, Tensor] | None
    ) -> Tensor:
        """Each coordinate of h̄ is monotone within the segment: extremes are at the two ends, [R, K]."""
        low, high = hidden_range(ahead.cells, self._elapsed(ahead, stop), self._elapsed(ahead, start))
        bound = linear_bound(self.readout, low, high)
        if self.mix is None:
            return bound
        assert past is not None
        return bound + self.mix.bound(past, (low, high))

    def _project(self, ahead: CellsSince, t: Tensor, readout: Tensor) -> Tensor:
        """The products of h̄(t) with the rows of ``readout``, [R(, N), rows]."""
        cells, elapsed = ahead.cells, self._elapsed(ahead, t)
        if t.dim() == 1:
            return hidden_at(cells, elapsed) @ readout.t()
        return project(cells, elapsed, readout)

    def start_tilt(self, ahead: CellsSince) -> Tensor:
        """A readout of h̄(0), [R, K+1]."""
        zero = torch.zeros_like(ahead.time)
        return hidden_at(ahead.cells, self._elapsed(ahead, zero)) @ self.start_readout.t()

    def _elapsed(self, ahead: CellsSince, t: Tensor) -> Tensor:
        right = ahead.time if t.dim() == 1 else ahead.time[:, None]  # h̄ was read backwards, from there
        return ((right - t) / self.time_scale).to(self.readout.dtype)


class Mixing(nn.Module):
    """``units`` that see the model's features h(t) and h̄(t) at once: w_k · tanh(P h + Q h̄ + b)."""

    def __init__(self, num_features: int, hidden_size: int, units: int, num_types: int) -> None:
        super().__init__()
        need = 4.0 * units * (num_features + hidden_size + num_types + 1)
        _limits.ask_memory(need, f"a smoother of {units:,} mixing units", "choose fewer units")
        self.past = nn.Linear(num_features, units)  # P and b
        self.future = nn.Linear(hidden_size, units, bias=False)  # Q
        self.readout = nn.Linear(units, num_types, bias=False)  # w
        with torch.no_grad():
            self.readout.weight.mul_(0.1)  # training starts near filtering

    def forward(self, past: Tensor, ahead: Tensor) -> Tensor:
        """From h(t) [..., F] and the products of h̄(t) with u and Q side by side, [..., K + W], the sum [..., K]."""
        return mix(ahead, past, self.past.weight, self.past.bias, self.readout.weight)

    def bound(self, past: tuple[Tensor, Tensor], future: tuple[Tensor, Tensor]) -> Tensor:
        """An upper bound for h and h̄ that lie within these ranges, [..., F] and [..., D'] each; slack covers rounding.

        Each sum before tanh then lies within an interval, and tanh is increasing.
        """
        eps = torch.finfo(past[0].dtype).eps
        least, most = (a + b for a, b in zip(_within(self.past, past), _within(self.future, future), strict=True))
        size = 1 + sum(_reach(layer, ends) for layer, ends in ((self.past, past), (self.future, future)))
        return linear_bound(self.readout.weight, torch.tanh(least - 8 * eps * size), torch.tanh(most + 8 * eps * size))


def _within(layer: nn.Linear, ends: tuple[Tensor, Tensor]) -> tuple[Tensor, Tensor]:
    """The least and the most that a layer makes of inputs between both ``ends``, [..., W] each."""
    low, high = ends
    up, down = layer.weight.clamp(min=0).t(), layer.weight.clamp(max=0).t()
    bias = 0.0 if layer.bias is None else layer.bias
    return low @ up + high @ down + bias, high @ up + low @ down + bias


def _reach(layer: nn.Linear, ends: tuple[Tensor, Tensor]) -> Tensor:
    """How large its terms are, added up by size, [..., W]."""
    reach = torch.maximum(ends[0].abs(), ends[1].abs()).clamp(min=1) @ layer.weight.abs().t()
    return reach if layer.bias is None else reach + layer.bias.abs()
