"""Smoothing that asks the model what would follow from an event before it proposes one.

The best proposal there is multiplies the model's intensity by how much better what is observed later fits with the
event than without it: λ^q_k(t) = ρ_k λ^p_k(t) ψ(s after k@t) / ψ(s), where ψ is the probability of the observed future
given the particle's state s. A network that only sees h(t) has to learn what the model would make of each event. Here
the model says so itself, and the network only has to learn how well a state fits the future:

    λ^q_k(t) = λ^smoothing_k(t) · exp( c tanh( (V(s after k@t) - V(s)) / c ) )

V(s) = w · tanh(M tanh(P φ(s) + Q h̄(t) + b)) reads the observed future h̄(t) and what the model expects of it, φ(s): its
features at t; and then, for each of the next ``steps`` observed events, if nothing happened in between, its features
there, its log-intensity of the very event, the time-weighted intensity of all events that would have been seen, and (of
all but the last) its features after reading it. The limit c keeps the ratio within bounds that thinning needs.

It learns faster and ends closer to the posterior than units that mix past and future, above all where single events
change the model's mind a lot; every intensity costs K + 1 times the work (``docs/imputation.md``).
"""

from __future__ import annotations

from functools import partial
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

from retrodict.errors import ModelError
from retrodict.events.batch import Batch
from retrodict.missingness.base import Missingness
from retrodict.models.base import Model
from retrodict.models.ctlstm import Cells, hidden_at
from retrodict.models.state import flat, side_by_side, spread, take
from retrodict.proposals.smoothing import Smoothing

_MOST = {"cpu": 1 << 25, "cuda": 1 << 31}  # bytes of states that are worked on at once
_MOST_KEPT = 1 << 31  # and that training keeps for gradients: beyond, they are computed again when these are wanted
_FARTHEST = 8.0  # logarithms and expected counts that V reads are cut here


class Course(NamedTuple):
    """What is known of B streams: as ``Future``, the type [B, S] of the event at the end of each segment, and how many
    events were observed [B]."""

    cells: Cells
    right: Tensor
    types: Tensor
    counts: Tensor


class Prospect(NamedTuple):
    """The same for R rows: as ``Ahead``, and the next events that were observed, [R, steps] each.

    Where there are fewer, ``seen`` is false and the time is that of the end.
    """

    start: Tensor
    target: Tensor
    decay: Tensor
    output: Tensor
    right: Tensor
    times: Tensor
    types: Tensor
    seen: Tensor

    @property
    def cells(self) -> Cells:
        """Of the right-to-left LSTM."""
        return Cells(*self[:4])


class Lookahead(Smoothing):
    """A smoother of ``hidden_size`` right-to-left cells with a value V of ``units`` that looks ``steps`` events ahead.

    ``limit`` is c; ``strength`` multiplies the exponent (see ``damped``).
    """

    kind = "lookahead"
    hidden_types: Tensor
    shown: Tensor
    sampler = "inversion"  # the bound is loose

    def __init__(
        self,
        model: Model,
        missingness: Missingness,
        hidden_size: int = 64,
        units: int = 256,
        steps: int = 1,
        limit: float = 4.0,
        strength: float = 1.0,
    ) -> None:
        super().__init__(model, missingness, hidden_size)
        for name, value in (("units", units), ("steps", steps)):
            if not (isinstance(value, int) and value > 0):
                raise ModelError(f"{name} must be a positive whole number, but is {value!r}.")
        if not 0 < limit <= 20:
            raise ModelError(f"limit must be a positive number of at most 20, but is {limit!r}.")
        if not 0 <= strength <= 1:
            raise ModelError(f"strength must lie in [0, 1], but is {strength!r}.")
        self.units, self.steps, self.limit, self.strength = units, steps, float(limit), float(strength)
        inner = max(units // 4, 1)
        self.state_layer = nn.Linear(2 * steps * model.num_features + 2 * steps, units)  # P and b
        self.future_layer = nn.Linear(hidden_size, units, bias=False)  # Q
        self.inner_layer = nn.Linear(units, inner)  # M
        self.value_layer = nn.Linear(inner, 1, bias=False)  # w
        with torch.no_grad():
            self.value_layer.weight.mul_(0.1)  # training starts near filtering
        constant = self.missingness.is_constant
        rates = self.missingness.rates(torch.zeros(1, dtype=torch.float64))[0] if constant else None
        hidden = torch.arange(model.num_types) if rates is None else rates.nonzero()[:, 0].cpu()
        shown = torch.ones(model.num_types) if rates is None else 1 - rates
        self.register_buffer("hidden_types", hidden, persistent=False)  # those that can go missing
        self.register_buffer("shown", shown.detach().cpu(), persistent=False)  # the share that would be seen
        self.to(model.device, model.dtype)

    @property
    def reads_state(self) -> bool:
        """To ask what would follow."""
        return True

    @property
    def most_log_ratio(self) -> float:
        """The limit; a hundred-thousandth covers rounding."""
        return self.strength * self.limit + 1e-5

    def damped(self, factor: float) -> Lookahead:
        """A proposal between filtering (0) and this one (1)."""
        damped = super().damped(factor)
        assert isinstance(damped, Lookahead)
        damped.strength *= factor
        return damped

    def config(self) -> dict[str, Any]:
        """Constructor arguments."""
        own = {"units": self.units, "steps": self.steps, "limit": self.limit, "strength": self.strength}
        return {**super().config(), **own}

    def prepare(self, observed: Batch) -> Course:  # type: ignore[override]
        """Also remember what is observed."""
        future = super().prepare(observed)
        types = torch.cat([observed.types, observed.types.new_zeros(len(observed.types), 1)], 1)
        return Course(future.cells, future.right, types, observed.mask.sum(1))

    def ahead(self, prepared: Course, stream: Tensor, segment: Tensor) -> Prospect:  # type: ignore[override]
        """Gather the rows' segments, and the events at the ends of these and of the next ones."""
        start, target, decay, output = (field[stream, segment] for field in prepared.cells)
        number = segment[:, None] + torch.arange(self.steps, device=segment.device)
        seen = number < prepared.counts[stream, None]
        at = number.clamp(max=prepared.right.shape[1] - 1)
        times, types = prepared.right[stream[:, None], at], prepared.types[stream[:, None], at]
        return Prospect(start, target, decay, output, prepared.right[stream, segment], times, types, seen)

    def log_ratio(self, state: Any, ahead: Any, t: Tensor) -> Tensor:
        """strength · c tanh((V(s after k@t) - V(s)) / c), zero for types that cannot go missing."""
        if t.dim() == 1:
            return self.log_ratio(state, ahead, t[:, None])[:, 0]
        at_once = self._rows_at_once(t)
        if at_once < len(t):
            run = (
                partial(checkpoint, self.log_ratio, use_reentrant=False) if torch.is_grad_enabled() else self.log_ratio
            )
            parts = torch.arange(len(t), device=t.device).split(at_once)
            return torch.cat([run(take(state, rows), take(ahead, rows), t[rows]) for rows in parts])
        with torch.no_grad():  # the model is given
            expected = self._expectations(state, ahead, t)
        back = hidden_at(Cells(*(field.unsqueeze(1) for field in ahead.cells)), self._elapsed(ahead, t))
        read = torch.tanh(self.state_layer(expected) + self.future_layer(back).unsqueeze(2))
        value = self.value_layer(torch.tanh(self.inner_layer(read)))[..., 0]  # [R, N, 1 + J]
        gain = self.limit * torch.tanh((value[..., 1:] - value[..., :1]) / self.limit)
        ratio = gain.new_zeros(*t.shape, self.model.num_types)
        return ratio.index_copy(-1, self.hidden_types, self.strength * gain)

    def _expectations(self, state: Any, ahead: Prospect, t: Tensor) -> Tensor:
        """φ of the state as it is and after an event of each type that can go missing, [R, N, 1 + J, features]."""
        R, N = t.shape
        now = flat(spread(state, N))
        states = side_by_side(spread(now, 1), self.model.branches(now, self.hidden_types, t.flatten()))
        J1 = states.time.shape[1]

        def each(x: Tensor) -> Tensor:  # of rows [R], for all their states [R N, 1 + J]
            return x[:, None, None].expand(R, N, J1).reshape(R * N, J1)

        before = t.flatten()[:, None].expand(R * N, J1)
        found = [self.model.features(states, before)]
        for i in range(self.steps):
            time, kind, seen = each(ahead.times[:, i]), each(ahead.types[:, i]), each(ahead.seen[:, i])
            rates, there = self.model.intensity_and_features(states, time)  # beyond the last event: at the end
            rates = rates * self.time_scale.to(rates.dtype)
            own = rates.gather(-1, kind[..., None])[..., 0].log().clamp(-_FARTHEST, _FARTHEST)
            wait = ((time - before) / self.time_scale).to(rates.dtype) * (rates * self.shown).sum(-1)
            numbers = torch.stack([torch.where(seen, own, 0.0), wait.clamp(max=_FARTHEST)], -1)
            found += [there, numbers]
            if i < self.steps - 1:
                states = self.model.update(states, kind, time)
                found.append(torch.where(seen[..., None], self.model.features(states, time), 0.0))
            before = time
        return torch.cat(found, -1).unflatten(0, (R, N))

    def _rows_at_once(self, t: Tensor) -> int:
        """So many that what is known of all their states fits into a bounded memory."""
        numbers = 16 * self.model.num_features + self.state_layer.in_features + 2 * self.units
        row = t.shape[1] * (1 + len(self.hidden_types)) * numbers * self.readout.element_size()
        most = _MOST_KEPT if torch.is_grad_enabled() else _MOST.get(t.device.type, 1 << 25)
        return max(1, most // row)
