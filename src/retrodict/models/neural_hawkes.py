"""The neural Hawkes process (Mei and Eisner, 2017; the paper, sections 2.2 and B.1).

A continuous-time LSTM reads the history; intensities are λ_k(t) = f_k(v_k · h(t)) (equation 2) with the
scaled softplus f_k(x) = s_k log(1 + exp(x / s_k)) and a learned scale s_k for each type.

Times are divided by the model's own ``time_scale``, chosen from the training data, so nobody has to rescale
by hand; intensities and likelihoods are in the user's units all the same.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from retrodict.errors import ModelError
from retrodict.events.batch import Batch
from retrodict.events.stream_set import StreamSet
from retrodict.models.base import Model, Terms, log_softplus
from retrodict.models.ctlstm import (
    Cells,
    CellsSince,
    ContinuousTimeLSTM,
    OwnClock,
    hidden_at,
    hidden_range,
    linear_bound,
)
from retrodict.models.ctlstm_project import project, states
from retrodict.models.quadrature import GaussLegendre, Integral


class NeuralHawkes(OwnClock, Model):
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
        super().__init__()
        for name, value in (("num_types", num_types), ("hidden_size", hidden_size)):
            if not (isinstance(value, int | np.integer) and value > 0):
                raise ModelError(f"{name} must be a positive whole number, but is {value!r}.")
        if time_scale is not None and not (math.isfinite(time_scale) and time_scale > 0):
            raise ModelError(f"time_scale must be a positive number, but is {time_scale!r}.")
        self.num_types, self.hidden_size = int(num_types), int(hidden_size)
        self.lstm = ContinuousTimeLSTM(num_types + 1, hidden_size)
        spread = 1 / math.sqrt(hidden_size)
        self.readout = nn.Parameter(torch.empty(num_types, hidden_size).uniform_(-spread, spread))
        self.log_scale = nn.Parameter(torch.zeros(num_types))
        self._scale_is_chosen = time_scale is not None
        self.register_buffer("time_scale", torch.tensor(time_scale or 1.0, dtype=torch.float64))

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

    def activate(self, drive: Tensor) -> Tensor:
        """f_k(x) = s_k softplus(x / s_k), per unit of the user's time; the last dimension of x is K."""
        scale = self.log_scale.exp()
        return scale / self.time_scale.to(self.dtype) * F.softplus(drive / scale)

    def log_activate(self, drive: Tensor, types: Tensor | None = None) -> Tensor:
        """log f_k(x), [..., K]; or, with ``types`` [...], of one drive [...] for each type given."""
        log_scale = self.log_scale if types is None else self.log_scale[types]
        return log_scale + log_softplus(drive / log_scale.exp()) - self.time_scale.log().to(self.dtype)

    def intensity(self, state: CellsSince, t: Tensor) -> Tensor:
        """λ_k(t) = f_k(v_k · h(t)), equation (2), [..., K] or [..., N, K]."""
        return self.activate(self.drive(state, t))

    def bound(self, state: CellsSince, start: Tensor, stop: Tensor) -> Tensor:
        """f_k of the drive's bound, [..., K]."""
        return self.activate(self.drive_bound(state, start, stop)) * (1 + 8 * torch.finfo(self.dtype).eps)

    def compensator(self, state: CellsSince, start: Tensor, stop: Tensor, integral: Integral | None = None) -> Tensor:
        """∫ λ_k by quadrature, [..., K]."""
        positions, weights = (integral or GaussLegendre()).nodes(start.shape, self.readout)
        length = stop - start
        rates = self.intensity(state, start[..., None] + length[..., None] * positions)
        return (rates * weights[:, None]).sum(-2) * length.to(self.dtype)[..., None]

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

    def terms(self, batch: Batch, integral: Integral | None = None) -> Terms:
        """All intensities from one scan."""
        positions, weights = (integral or GaussLegendre()).nodes(batch.gaps.shape, batch.gaps)
        at_events, inside = self.drives(batch, positions)
        own = self.log_activate(at_events.gather(-1, batch.types[..., None])[..., 0], batch.types)
        areas = (self.activate(inside).sum(-1) @ weights) * batch.gaps
        return Terms(torch.where(batch.mask, own, 0.0), areas)

    def adapt(self, streams: StreamSet) -> None:
        """Also, once and unless a time scale was given, choose it (the mean gap) and start the rates right.

        With readouts near zero each intensity starts at s_k log 2, so s_k is set to make that the mean rate;
        a rare type's softplus is kept from being too sharp to learn from.
        """
        super().adapt(streams)
        if self._scale_is_chosen:
            return
        total, gaps = float(streams.durations.sum()), streams.num_events + len(streams)
        self.time_scale.fill_(total / gaps if total > 0 else 1.0)
        self._scale_is_chosen = True
        per_gap = np.bincount(streams.event_types, minlength=self.num_types) / gaps
        with torch.no_grad():
            self.log_scale.copy_(torch.as_tensor(np.log(np.clip(per_gap / math.log(2), 0.05, 1.0))))

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
            "time_scale": float(self.time_scale) if self._scale_is_chosen else None,
        }

    def _elapsed(self, state: CellsSince, t: Tensor) -> Tensor:
        last = state.time if t.dim() == state.time.dim() else state.time[..., None]
        return ((t - last) / self.time_scale).to(self.dtype)
