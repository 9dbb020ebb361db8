"""A linear state that fades between events, read out by a small network: no matrix product when an event is read.

Each of U units remembers the past at R speeds. Between events its memories x_r fade in closed form, at rates δ_r that
all units share (the last is zero: it stays). An event of type k multiplies and moves them by numbers looked up for k:

    z(t) = b + Σ_r x_r exp(-δ_r (t - t_i)),        h(t) = tanh z(t),        λ_k(t) = f_k(v_k · h(t) + a_k)
    x_r <- σ(g_kr) x_r + e_kr                      at an event of type k

The recurrence is linear, so whole streams are read by a scan (``linear_scan.py``). With several layers, as in S2P2
(Chang and others, 2025), units also see those of the layer below, h': z has a further term C h'(t), and gates and jumps
depend on h' just after the event too. They stay linear in their own memories: one scan a layer.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from retrodict import _limits
from retrodict.events.batch import Batch
from retrodict.events.stream_set import StreamSet
from retrodict.models.base import Terms
from retrodict.models.ctlstm import linear_bound
from retrodict.models.ctlstm_project import tanh_
from retrodict.models.dropout import Dropout
from retrodict.models.hawkes_grid import decay_grid
from retrodict.models.linear_scan import linear_scan
from retrodict.models.quadrature import GaussLegendre, Integral, Speeds, integrate_gaps
from retrodict.models.softplus_model import SoftplusModel


class Memory(NamedTuple):
    """``x`` [..., layers, R, U]: what units remember just after the event at ``time`` [...] float64."""

    x: Tensor
    time: Tensor


class Layer(nn.Module):
    """U units with memories of R speeds, above ``below`` other units (none in the first layer).

    ``gates`` and ``jumps`` [inputs, R U] are looked up by type; the last input is the boundary event at the start.
    """

    def __init__(self, num_inputs: int, size: int, scales: int, below: int) -> None:
        super().__init__()
        self.shape = scales, size
        self.log_decay = nn.Parameter(torch.linspace(2, -2, scales - 1))
        self.gates = nn.Parameter(torch.randn(num_inputs, scales * size) + 1)
        self.jumps = nn.Parameter(torch.randn(num_inputs, scales * size) / math.sqrt(scales))
        self.bias = nn.Parameter(torch.zeros(size))
        self.across, self.turn = None, None
        if below:
            spread = 1 / math.sqrt(below)
            self.across = nn.Parameter(torch.empty(size, below).uniform_(-spread, spread))  # C
            # What units below add to gates and jumps.
            self.turn = nn.Parameter(torch.empty(2 * scales * size, below).uniform_(-spread, spread) * 0.5)

    def fade(self, elapsed: Tensor) -> Tensor:
        """What is left of memories, [..., R], after times [...]; the last of them stay."""
        return torch.exp(-self.decays * elapsed[..., None])

    @property
    def decays(self) -> Tensor:
        """[R], the last of them zero."""
        return torch.cat([self.log_decay.exp(), self.bias.new_zeros(1)])

    def changes(self, types: Tensor, below: Tensor | None) -> tuple[Tensor, Tensor]:
        """What memories are multiplied with and moved by at events of these types [...], [..., R, U] each."""
        if below is None or self.turn is None:
            both = F.embedding(types, torch.sigmoid(self.gates)), F.embedding(types, self.jumps)
        else:
            gates, jumps = (below @ self.turn.t()).chunk(2, -1)
            both = torch.sigmoid(F.embedding(types, self.gates) + gates), F.embedding(types, self.jumps) + jumps
        return both[0].unflatten(-1, self.shape), both[1].unflatten(-1, self.shape)

    def now(self, x: Tensor, below: Tensor | None) -> Tensor:
        """h just after an event, [..., U]."""
        return self._bend(x.sum(-2), below)

    def units(self, x: Tensor, fade: Tensor, below: Tensor | None) -> Tensor:
        """h [..., Q, U] of memories [..., R, U] that have faded so, [..., Q, R]; ``below`` is [..., Q, below]."""
        return self._bend(fade @ x, below)

    def _bend(self, sums: Tensor, below: Tensor | None) -> Tensor:
        if below is None or self.across is None:
            return _Tanh.apply(sums + self.bias)
        return _Tanh.apply(
            torch.addmm(sums.flatten(0, -2), below.flatten(0, -2), self.across.t()).view_as(sums) + self.bias
        )

    def range(
        self, x: Tensor, first: Tensor, last: Tensor, below: tuple[Tensor, Tensor] | None
    ) -> tuple[Tensor, Tensor]:
        """The least and the most of h, [..., U] each, while memories fade from ``first`` to ``last`` [..., R].

        Each memory moves one way, towards zero, and tanh is increasing; slack covers rounding.
        """
        rise, fall = x.clamp(max=0), x.clamp(min=0)
        sums = [(rise * a[..., None] + fall * b[..., None]).sum(-2) for a, b in ((first, last), (last, first))]
        size = 1 + self.bias.abs() + (x.abs() * first[..., None]).sum(-2)
        if below is not None and self.across is not None:
            up, down = self.across.clamp(min=0).t(), self.across.clamp(max=0).t()
            low, high = below
            sums = [sums[0] + low @ up + high @ down, sums[1] + high @ up + low @ down]
            size = size + self.across.abs().sum(1)
        slack = 8 * torch.finfo(x.dtype).eps * size
        return tanh_(self.bias + sums[0] - slack), tanh_(self.bias + sums[1] + slack)


class _Tanh(torch.autograd.Function):
    """tanh as a processor is fastest at it, which overwrites what it is given."""

    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        ctx.mark_dirty(x)
        ctx.save_for_backward(tanh_(x))
        return x

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> Tensor:
        (h,) = ctx.saved_tensors
        return torch.addcmul(grad, grad * h, h, value=-1)


class StateSpace(SoftplusModel):
    """A process with ``num_types`` types: ``layers`` layers of ``size`` units, each with memories of ``scales`` speeds.

    ``time_scale`` is the unit of the model's own clock, in the user's units; None lets training choose it (the mean gap
    between events), and the speeds with it: evenly on a logarithmic axis, from the shortest gaps to the longest stream.

    >>> model = StateSpace(num_types=4, size=16)
    >>> model.intensity(model.initial((1,)), torch.zeros(1, dtype=torch.float64)).shape
    torch.Size([1, 4])
    """

    kind = "state_space"
    dropout: Dropout | None = None  # while a step of training computes its loss

    def __init__(
        self, num_types: int, size: int = 32, layers: int = 1, scales: int = 8, time_scale: float | None = None
    ) -> None:
        super().__init__(num_types, time_scale, size=size, layers=layers, scales=scales)
        self.size, self.num_layers, self.scales = int(size), int(layers), int(scales)
        _limits.ask_memory(
            4.0 * size * (layers * scales * 2 * (num_types + size) + num_types),
            f"a state space of {layers:,} layers of {size:,} units at {scales:,} speeds and {num_types:,} types",
            "choose fewer units, layers, speeds or types",
        )
        made = [
            Layer(self.num_types + 1, self.size, self.scales, self.size if i else 0) for i in range(self.num_layers)
        ]
        self.layers = nn.ModuleList(made)
        spread = 1 / math.sqrt(self.num_features)
        self.readout = nn.Parameter(torch.empty(num_types, self.num_features).uniform_(-spread, spread))
        self.offset = nn.Parameter(torch.zeros(num_types))
        self.log_scale = nn.Parameter(torch.zeros(num_types))

    @property
    def learning_rate(self) -> float:  # type: ignore[override]
        """More layers take smaller steps."""
        return 0.02 if self.num_layers == 1 else 0.01

    @property
    def num_features(self) -> int:
        """Units of all layers."""
        return self.num_layers * self.size

    @property
    def boundary(self) -> int:
        """The input for the boundary event at the start."""
        return self.num_types

    def initial(self, shape: Sequence[int]) -> Memory:
        """What is remembered at the start: of the boundary event alone."""
        nothing = torch.zeros(*shape, self.num_layers, self.scales, self.size, dtype=self.dtype, device=self.device)
        time = torch.zeros(*shape, dtype=torch.float64, device=self.device)
        return self.update(Memory(nothing, time), torch.full(tuple(shape), self.boundary, device=self.device), time)

    def update(self, state: Memory, type: Tensor, time: Tensor) -> Memory:
        """Memories fade until ``time``, and are changed as the type says."""
        elapsed, below, memories = self._elapsed(state, time), None, []
        for layer, x in zip(self.each(), state.x.unbind(-3), strict=True):
            gates, jumps = layer.changes(type, below)
            memories.append(gates * layer.fade(elapsed)[..., None] * x + jumps)
            below = layer.now(memories[-1], below)
        return Memory(torch.stack(memories, -3), time)

    def features(self, state: Memory, t: Tensor) -> Tensor:
        """h(t) of all layers, [..., F] or [..., N, F]."""
        elapsed = self._elapsed(state, t)
        if t.dim() > state.time.dim():
            return self._units(state.x.unbind(-3), elapsed)
        return self._units(state.x.unbind(-3), elapsed[..., None])[..., 0, :]

    def _units(self, memories: Sequence[Tensor], elapsed: Tensor, shown: Sequence[Tensor] | None = None) -> Tensor:
        """h of all layers, [..., Q, F], ``elapsed`` [..., Q] after memories of each layer were [..., R, U].

        With ``shown`` [..., U] of each layer, units are multiplied by that.
        """
        below, units = None, []
        for i, (layer, x) in enumerate(zip(self.each(), memories, strict=True)):
            below = layer.units(x, layer.fade(elapsed), below)
            below = below if shown is None else below * shown[i][..., None, :]
            units.append(below)
        return units[0] if len(units) == 1 else torch.cat(units, -1)

    def feature_range(self, state: Memory, start: Tensor, stop: Tensor) -> tuple[Tensor, Tensor]:
        """Memories fade one way, and units of a layer are increasing or decreasing in each below, [..., F] each."""
        first, last = self._elapsed(state, start), self._elapsed(state, stop)
        below, ranges = None, []
        for layer, x in zip(self.each(), state.x.unbind(-3), strict=True):
            below = layer.range(x, layer.fade(first), layer.fade(last), below)
            ranges.append(below)
        low, high = zip(*ranges, strict=True)
        return torch.cat(low, -1), torch.cat(high, -1)

    def drive(self, state: Memory, t: Tensor) -> Tensor:
        """v_k · h(t) + a_k, [..., K] or [..., N, K]."""
        return self._project(self.features(state, t))

    def drive_bound(self, state: Memory, start: Tensor, stop: Tensor) -> Tensor:
        """From the range of each unit over this very interval, [..., K]."""
        slack = 8 * torch.finfo(self.dtype).eps * self.offset.abs()
        return linear_bound(self.readout, *self.feature_range(state, start, stop)) + self.offset + slack

    def speeds(self, state: Memory) -> Speeds:
        """The speeds of all layers but the memories that stay, and how many events these can still add, [..., S]."""
        rates, masses = self._speeds(state.x.unbind(-3))
        return Speeds((rates / self.time_scale.to(self.dtype)).expand_as(masses), masses)

    def batch_speeds(self, batch: Batch) -> Speeds:
        """From one scan a layer, [B, L+1, S]."""
        rates, masses = self._speeds([x.transpose(0, 1) for x in self._scan(batch, None)[0]])
        return Speeds((rates / self.time_scale.to(self.dtype)).expand_as(masses), masses)

    @torch.no_grad()
    def _speeds(self, memories: Sequence[Tensor]) -> tuple[Tensor, Tensor]:
        """By the model's clock, [S] and [..., S], of memories [..., R, U] of each layer.

        A unit moves all drives together by at most Σ_k |v_k|, and what it adds to the layers above: tanh and softplus
        have slopes of at most 1, and a unit moves by at most 2.
        """
        own = self.readout.abs().sum(0).split(self.size)
        above, found = own[-1], []
        for i in reversed(range(self.num_layers)):
            layer, decays = self.each()[i], self.each()[i].decays[:-1]
            found.append((decays, memories[i][..., :-1, :].abs().clamp(max=2.0) @ above / decays))
            if layer.across is not None:
                above = own[i - 1] + above @ layer.across.abs()
        rates, masses = zip(*reversed(found), strict=True)
        return torch.cat(rates), torch.cat(masses, -1)

    def drives(self, batch: Batch, positions: Tensor) -> tuple[Tensor, Tensor]:
        """One scan a layer, then all units at once."""
        drives = self._project(self._whole(batch, positions))
        return drives[:, :-1, -1], drives[:, :, :-1]

    @torch.no_grad()
    def drives_and_features(self, batch: Batch, positions: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """The same with the units; proposals ask for them, to whom p is given."""
        units = self._whole(batch, positions)
        drives = self._project(units)
        return drives[:, :-1, -1], drives[:, :, :-1], units

    def _project(self, units: Tensor) -> Tensor:
        return units @ self.readout.t() + self.offset

    def terms(self, batch: Batch, integral: Integral | None = None) -> Terms:
        """All intensities from one scan a layer; gaps that need as many panels are integrated together."""
        rule, shown = integral or GaussLegendre(), self._shown(len(batch.types))
        memories, gaps = self._scan(batch, shown)
        at_events = self._project(self._units(memories, gaps[..., None], shown)[:-1, :, 0]).transpose(0, 1)
        own = self.log_activate(at_events.gather(-1, batch.types[..., None])[..., 0], batch.types)
        masks = None if shown is None else [mask.expand(len(gaps), *mask.shape).flatten(0, 1) for mask in shown]
        all_memories, all_gaps = [x.flatten(0, 1) for x in memories], gaps.flatten()

        def areas_of(rows: Tensor | slice, positions: Tensor, weights: Tensor) -> Tensor:
            elapsed = all_gaps[rows, None] * positions
            some = None if masks is None else [mask[rows] for mask in masks]
            units = self._units([x[rows] for x in all_memories], elapsed, some)
            return (self.activate(self._project(units)).sum(-1) @ weights) * all_gaps[rows]

        positions, weights = rule.nodes(batch.gaps.shape, batch.gaps)
        nodes = positions if positions.dim() == 1 else positions.transpose(0, 1).flatten(0, 1), weights
        areas = integrate_gaps(rule, Speeds(*self._speeds(all_memories)), all_gaps, nodes, areas_of)
        areas = areas.unflatten(0, gaps.shape).t() * self.time_scale.to(self.dtype)
        return Terms(torch.where(batch.mask, own, 0.0), areas)

    def gap_states(self, batch: Batch) -> Memory:
        """From one scan a layer, [B (L+1), ...]."""
        memories = torch.stack(self._scan(batch, None)[0], 2).transpose(0, 1).flatten(0, 1)
        return Memory(memories, torch.cat([batch.begins[:, None], batch.times], 1).flatten())

    def _scan(self, batch: Batch, shown: Sequence[Tensor] | None) -> tuple[list[Tensor], Tensor]:
        """Memories of each layer in every gap, [L+1, B, R, U] each, and scaled gaps [L+1, B]; ``shown`` as there."""
        gaps = (batch.gaps / self.time_scale.to(self.dtype)).t()
        types = torch.cat([batch.types.new_full((1, len(batch.types)), self.boundary), batch.types.t()])
        before = torch.cat([torch.zeros_like(gaps[:1]), gaps[:-1]])
        below, memories = None, []
        for i, layer in enumerate(self.each()):
            gates, jumps = layer.changes(types, below)
            memories.append(linear_scan(gates * layer.fade(before)[..., None], jumps))
            below = layer.now(memories[-1], below) if len(memories) < self.num_layers else None
            below = below if below is None or shown is None else below * shown[i]
        return memories, gaps

    def _shown(self, streams: int) -> Sequence[Tensor] | None:
        """What units of each layer are multiplied by in a step of training, [B, U] each; None where all are shown."""
        if self.dropout is None:
            return None
        return self.dropout.mask(self.num_layers, streams, self.size, dtype=self.dtype).unbind(0)

    def _whole(self, batch: Batch, positions: Tensor) -> Tensor:
        """h inside every gap of whole streams and at its end, [B, L+1, Q+1, F]; inside, time runs along dimension 0."""
        shown = self._shown(len(batch.types))
        memories, gaps = self._scan(batch, shown)
        ends = torch.cat([positions, torch.ones_like(positions[..., :1])], -1)
        elapsed = gaps[..., None] * (ends if ends.dim() == 1 else ends.transpose(0, 1))
        return self._units(memories, elapsed, shown).transpose(0, 1)

    def step_memory(self, streams: int, events: int) -> float:
        """Also gates, jumps and memories at every event, with what their scan keeps."""
        more = 10.0 * streams * (events + 1) * self.num_features * self.scales * self.dtype.itemsize
        return super().step_memory(streams, events) + more

    def each(self) -> list[Layer]:
        """The layers, the first of which sees memories alone."""
        return list(self.layers)  # type: ignore[arg-type]

    def _choose_scales(self, streams: StreamSet) -> None:
        """Also the speeds of memories."""
        super()._choose_scales(streams)
        if self.scales > 1 and streams.durations.max(initial=0.0) > 0:
            decays = torch.as_tensor(decay_grid(streams, self.scales - 1)) * self.time_scale.cpu()
            with torch.no_grad():
                for layer in self.each():
                    layer.log_decay.copy_(decays.log())

    @classmethod
    def from_streams(cls, streams: StreamSet, size: int | None = None, layers: int = 1) -> StateSpace:
        """A model for these training streams, of 32 units unless ``size`` says otherwise."""
        model = cls(streams.num_types, size or 32, layers)
        model.adapt(streams)
        return model

    def config(self) -> dict[str, Any]:
        """Constructor arguments."""
        sizes = {"num_types": self.num_types, "size": self.size, "layers": self.num_layers, "scales": self.scales}
        return {**sizes, "time_scale": self._given_scale()}
