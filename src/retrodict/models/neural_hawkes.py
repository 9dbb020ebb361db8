"""The neural Hawkes process (Mei and Eisner, 2017; the paper, sections 2.2 and B.1).

A continuous-time LSTM reads the history; intensities are λ_k(t) = f_k(v_k · h(t)) (equation 2) on the model's own
clock (``softplus_model.py``).
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.utils.parametrize import register_parametrization, remove_parametrizations

from retrodict.events.batch import Batch
from retrodict.events.stream_set import StreamSet
from retrodict.models.base import Terms, inverse_softplus
from retrodict.models.ctlstm import (
    Cells,
    CellsSince,
    ContinuousTimeLSTM,
    hidden_at,
    hidden_range,
    linear_bound,
)
from retrodict.models.ctlstm_project import project, states
from retrodict.models.first_decays import first_decays
from retrodict.models.quadrature import GaussLegendre, Integral, Speeds, integrate_gaps
from retrodict.models.softplus_model import SoftplusModel


class _Gains(nn.Module):
    """Weights [K, D] as multiples of what each cell's are counted in, [D]."""

    gains: Tensor

    def __init__(self, gains: Tensor) -> None:
        super().__init__()
        self.register_buffer("gains", gains)

    def forward(self, counted: Tensor) -> Tensor:
        return counted * self.gains

    def right_inverse(self, weights: Tensor) -> Tensor:
        return weights / self.gains


class NeuralHawkes(SoftplusModel):
    """A neural Hawkes process with ``num_types`` types and ``hidden_size`` LSTM cells.

    ``time_scale`` is the unit of the model's own clock, in the user's units; None lets training choose it
    (the mean gap between events).

    >>> model = NeuralHawkes(num_types=4, hidden_size=16)
    >>> model.intensity(model.initial((1,)), torch.zeros(1, dtype=torch.float64)).shape
    torch.Size([1, 4])
    """

    kind = "neural_hawkes"
    learning_rate = 3e-3

    def __init__(self, num_types: int, hidden_size: int = 64, time_scale: float | None = None) -> None:
        super().__init__(num_types, time_scale, hidden_size=hidden_size)
        self.hidden_size = int(hidden_size)
        self.lstm = ContinuousTimeLSTM(num_types + 1, hidden_size)
        spread = 1 / math.sqrt(hidden_size)
        self.readout = nn.Parameter(torch.empty(num_types, hidden_size).uniform_(-spread, spread))
        self.log_scale = nn.Parameter(torch.zeros(num_types))

    @property
    def boundary(self) -> int:
        """The LSTM's input for BOS, the boundary event at the start."""
        return self.num_types

    def initial(self, shape: Sequence[int]) -> CellsSince:
        """The state after reading BOS at time 0."""
        time = torch.zeros(*shape, dtype=torch.float64, device=self.device)
        bos = torch.full(tuple(shape), self.boundary, device=self.device)
        elapsed = torch.zeros(*shape, dtype=self.dtype, device=self.device)
        return CellsSince(*self.lstm.read(self.lstm.zero(time.shape), bos, elapsed), time)

    def update(self, state: CellsSince, type: Tensor, time: Tensor) -> CellsSince:
        """The LSTM reads type@time."""
        return CellsSince(*self.lstm.read(state.cells, type, self._elapsed(state, time)), time)

    def drive(self, state: CellsSince, t: Tensor) -> Tensor:
        """v_k · h(t), [..., K] or [..., N, K]."""
        if t.dim() == 2 and state.time.dim() == 1 and not (t.is_cuda or torch.is_grad_enabled()):
            # Sampling on a CPU: block by block in the cache.
            return project(state.cells, self._elapsed(state, t), self.readout)
        return self._hidden(state, t) @ self.readout.t()

    @property
    def num_features(self) -> int:
        """D."""
        return self.hidden_size

    def features(self, state: CellsSince, t: Tensor) -> Tensor:
        """h(t), [..., D] or [..., N, D]."""
        return self._hidden(state, t)

    def _hidden(self, state: CellsSince, t: Tensor) -> Tensor:
        cells = state.cells
        if t.dim() > state.time.dim():
            cells = Cells(*(field.unsqueeze(-2) for field in cells))
        return hidden_at(cells, self._elapsed(state, t))

    def feature_range(self, state: CellsSince, start: Tensor, stop: Tensor) -> tuple[Tensor, Tensor]:
        """Each h_d is monotone until the next event: from one end to the other, [..., D] each."""
        return hidden_range(state.cells, self._elapsed(state, start), self._elapsed(state, stop))

    def drive_bound(self, state: CellsSince, start: Tensor, stop: Tensor) -> Tensor:
        """Appendix C.4, with the range of each h_d over this very interval, [..., K]."""
        return linear_bound(self.readout, *self.feature_range(state, start, stop))

    def speeds(self, state: CellsSince) -> Speeds:
        """Each cell's decay, per unit of the user's time, [..., D], and what its move to its target can add in all."""
        return Speeds(state.decay / self.time_scale.to(self.dtype), self._masses(state.cells))

    def batch_speeds(self, batch: Batch) -> Speeds:
        """From one scan, [B, L+1, D]."""
        cells = Cells(*(field.transpose(0, 1) for field in self._scan(batch)[0]))
        return Speeds(cells.decay / self.time_scale.to(self.dtype), self._masses(cells))

    def _masses(self, cells: Cells) -> Tensor:
        """Σ_k |v_kd| times how far h_d moves, over its decay: softplus and tanh have slopes of at most 1, [..., D]."""
        moved = cells.output * (cells.start - cells.target).abs().clamp(max=2.0)
        return moved * self.readout.abs().sum(0) / cells.decay

    def drives(self, batch: Batch, positions: Tensor) -> tuple[Tensor, Tensor]:
        """One scan of the LSTM, then all projections at once; inside, time runs along the first dimension."""
        B, L = batch.types.shape
        cells, hidden, gaps = self._scan(batch)
        if positions.dim() > 1:
            positions = positions.transpose(0, 1)
        elapsed = (gaps[..., None] * positions).flatten(0, 1)
        inside = project(Cells(*(field.flatten(0, 1) for field in cells)), elapsed, self.readout)
        at_events = (hidden[:L] @ self.readout.t()).transpose(0, 1)
        return at_events, inside.unflatten(0, (L + 1, B)).transpose(0, 1)

    @torch.no_grad()
    def drives_and_features(self, batch: Batch, positions: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """One scan, h(t) at all nodes and ends, and its projections; proposals ask for them, to whom p is given."""
        cells, _, gaps = self._scan(batch)
        ends = torch.cat([positions, torch.ones_like(positions[..., :1])], -1)
        elapsed = gaps.t()[..., None] * ends
        by_stream = Cells(*(field.transpose(0, 1).flatten(0, 1) for field in cells))
        hidden = states(by_stream, elapsed.flatten(0, 1)).unflatten(0, elapsed.shape[:2])
        drives = hidden @ self.readout.t()
        return drives[:, :-1, -1], drives[:, :, :-1], hidden

    def _scan(self, batch: Batch) -> tuple[Cells, Tensor, Tensor]:
        """The cells after BOS and each event, h at the end of each gap, [L+1, B, D] each, and scaled gaps [L+1, B]."""
        gaps = (batch.gaps / self.time_scale.to(self.dtype)).t().contiguous()
        bos = batch.types.new_full((1, len(batch.types)), self.boundary)
        return *self.lstm.scan(torch.cat([bos, batch.types.t()]), gaps), gaps

    def gap_states(self, batch: Batch) -> CellsSince:
        """From one scan, [B (L+1), ...]."""
        cells = Cells(*(field.transpose(0, 1).flatten(0, 1) for field in self._scan(batch)[0]))
        return CellsSince(*cells, torch.cat([batch.begins[:, None], batch.times], 1).flatten())

    def gap_drives(self, states: CellsSince, times: Tensor) -> Tensor:
        """Block by block, also with gradients."""
        return project(states.cells, self._elapsed(states, times), self.readout)

    def terms(self, batch: Batch, integral: Integral | None = None) -> Terms:
        """All intensities from one scan; gaps that need as many panels are integrated together."""
        (B, L), rule = batch.types.shape, integral or GaussLegendre()
        cells, hidden, gaps = self._scan(batch)
        at_events = (hidden[:L] @ self.readout.t()).transpose(0, 1)
        own = self.log_activate(at_events.gather(-1, batch.types[..., None])[..., 0], batch.types)
        cells, gaps = Cells(*(field.flatten(0, 1) for field in cells)), gaps.flatten()
        positions, weights = rule.nodes(batch.gaps.shape, batch.gaps)
        nodes = positions if positions.dim() == 1 else positions.transpose(0, 1).flatten(0, 1), weights

        def areas_of(rows: Tensor | slice, *cut: Tensor) -> Tensor:
            return self._areas(Cells(*(field[rows] for field in cells)), gaps[rows], *cut)

        areas = integrate_gaps(rule, Speeds(cells.decay, self._masses(cells)), gaps, nodes, areas_of)
        areas = areas.unflatten(0, (L + 1, B)).t() * self.time_scale.to(self.dtype)
        return Terms(torch.where(batch.mask, own, 0.0), areas)

    def _areas(self, cells: Cells, gaps: Tensor, positions: Tensor, weights: Tensor) -> Tensor:
        """∫ Σ_k λ_k over N scaled gaps, in the user's rates, by nodes at ``positions`` [Q] or [N, Q], [N]."""
        inside = project(cells, gaps[:, None] * positions, self.readout)
        return (self.activate(inside).sum(-1) @ weights) * gaps

    def _choose_scales(self, streams: StreamSet) -> None:
        """Also first decays that cover the gaps."""
        super()._choose_scales(streams)
        with torch.no_grad():
            decays = torch.as_tensor(first_decays(streams, self.hidden_size) * float(self.time_scale))
            shift = inverse_softplus(decays) - inverse_softplus(torch.tensor(math.log(2)))
            self.lstm.bias[-self.hidden_size :] += shift.to(self.lstm.bias)

    @contextmanager
    def in_training(self, train: StreamSet) -> Iterator[None]:
        """The weights of cells that start with fast decays take larger steps, by the square root of their decays.

        To cause as many events in less time a cell needs a larger weight, which Adam's steps of one size take long to
        reach. Steps in proportion to the decays would throw intensities about.
        """
        decays = torch.as_tensor(first_decays(train, self.hidden_size) * float(self.time_scale) / math.log(2))
        gains = decays.clamp(min=1.0).sqrt().to(self.readout)
        if bool((gains < 1.5).all()):
            yield
            return
        register_parametrization(self, "readout", _Gains(gains))
        try:
            yield
        finally:
            remove_parametrizations(self, "readout")

    @classmethod
    def from_streams(cls, streams: StreamSet, hidden_size: int | None = None) -> NeuralHawkes:
        """A model sized for these training streams: more cells for more events, 16 to 256."""
        if hidden_size is None:
            wanted = math.sqrt(max(streams.num_events, 1)) / 2
            hidden_size = int(np.clip(2 ** round(math.log2(max(wanted, 1))), 16, 256))
        model = cls(streams.num_types, hidden_size)
        model.adapt(streams)
        return model

    def config(self) -> dict[str, Any]:
        """Constructor arguments."""
        return {
            "num_types": self.num_types,
            "hidden_size": self.hidden_size,
            "time_scale": self._given_scale(),
        }
