"""The continuous-time LSTM (paper, appendices B.1 and D): cells jump at events and decay in between.

After an event at t_i the cell c(t) moves from ``start`` c_{i+1} towards ``target`` c̲_{i+1} at rate δ_{i+1}:

    c(t) = c̲ + (c - c̲) exp(-δ (t - t_i)),        h(t) = o ⊙ tanh c(t)

Time is elapsed time since the last event that was read, so the same cell reads streams left to right (the
model) and right to left (the smoothing proposal). ``scan`` reads whole padded streams at once.
"""

from __future__ import annotations

import importlib.util
import math
from typing import Any, NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from retrodict import _limits
from retrodict.models.ctlstm_scan import Plain, run_scan

_HAS_TRITON = importlib.util.find_spec("triton") is not None


class Cells(NamedTuple):
    """What determines h(t) until the next event; each [..., D]."""

    start: Tensor
    target: Tensor
    decay: Tensor
    output: Tensor


class CellsSince(NamedTuple):
    """The cells, [..., D] each, after the event at ``time`` [...] float64, the last that was read."""

    start: Tensor
    target: Tensor
    decay: Tensor
    output: Tensor
    time: Tensor

    @property
    def cells(self) -> Cells:
        """Without the time."""
        return Cells(*self[:4])


class ContinuousTimeLSTM(nn.Module):
    """Seven gates over an event's type and the decayed hidden state.

    ``by_type`` [num_inputs, 7D] holds the columns of the paper's W, ``by_hidden`` [D, 7D] its U transposed
    and ``bias`` [7D] its d. The blocks of 7D are: i, f, o, ī, f̄, z, δ (the first six take the sigmoid).
    """

    def __init__(self, num_inputs: int, hidden_size: int) -> None:
        super().__init__()
        self.hidden_size = hidden_size
        _limits.ask_memory(
            28.0 * hidden_size * (num_inputs + hidden_size + 1),
            f"an LSTM of {hidden_size:,} cells and {num_inputs:,} inputs",
            "choose fewer cells or fewer types",
        )
        spread = 1 / math.sqrt(hidden_size)
        self.by_type = nn.Parameter(torch.empty(num_inputs, 7 * hidden_size).uniform_(-spread, spread))
        self.by_hidden = nn.Parameter(torch.empty(hidden_size, 7 * hidden_size).uniform_(-spread, spread))
        self.bias = nn.Parameter(torch.empty(7 * hidden_size).uniform_(-spread, spread))

    def zero(self, shape: tuple[int, ...] | torch.Size) -> Cells:
        """The state before anything was read: c = c̲ = o = 0."""
        nothing = self.bias.new_zeros(*shape, self.hidden_size)
        return Cells(nothing, nothing, nothing, nothing)

    def read(self, cells: Cells, type: Tensor, elapsed: Tensor) -> Cells:
        """Read an event ``elapsed`` [...] after the last one; ``type`` [...] indexes the inputs."""
        cell = cell_at(cells, elapsed)
        gates = (self.bias + self.by_type)[type] + (cells.output * torch.tanh(cell)) @ self.by_hidden
        six, decay = gates.split([6 * self.hidden_size, self.hidden_size], -1)
        i, f, o, i_bar, f_bar, z = torch.sigmoid(six).chunk(6, -1)
        z = 2 * z - 1
        return Cells(f * cell + i * z, f_bar * cells.target + i_bar * z, F.softplus(decay), o)

    def scan(
        self, types: Tensor | None, gaps: Tensor, lengths: Tensor | None = None, table: Tensor | None = None
    ) -> tuple[Cells, Tensor]:
        """Read B whole streams from the zero state.

        ``types`` [N, B] are the inputs in reading order (the boundary event first), ``gaps`` [N, B] the time
        that passes after each. ``table`` takes the place of bias and ``by_type``, or, without types, has each input's
        share of the gates, [N, B, 7D]. Returns the cells after each input, [N, B, D] each, and the hidden states at
        the end of each gap, [N, B, D]. Where ``lengths`` [B] say how many inputs each stream has, N at most, results
        beyond them are undefined.
        """
        table = self.bias + self.by_type if table is None else table
        *fields, hidden = run_scan(_kernels(gaps, lengths), table, self.by_hidden, types, gaps)
        return Cells(*fields), hidden


class OwnClock(nn.Module):
    """A module that divides times by a scale of its own, exact whatever precision the module is cast to.

    Mix in before the base class, and register a float64 buffer ``time_scale``.
    """

    time_scale: Tensor

    def _apply(self, fn: Any, recurse: bool = True) -> Any:
        """Casting to another precision must not round the clock; moving to another device moves it too."""
        value = float(self.time_scale)
        super()._apply(fn, recurse)
        self.time_scale = torch.tensor(value, dtype=torch.float64, device=self.time_scale.device)
        return self


def _kernels(like: Tensor, lengths: Tensor | None) -> Any:
    """What runs a scan on the device of ``like``; a CPU alone saves time where streams are shorter than others."""
    if like.is_cuda and _HAS_TRITON:
        from retrodict.models.ctlstm_graphs import Graphed

        return Graphed
    return Plain(None if like.is_cuda else lengths)


def cell_at(cells: Cells, elapsed: Tensor) -> Tensor:
    """c(t), [..., D], ``elapsed`` [...] after the last event."""
    return cells.target + (cells.start - cells.target) * torch.exp(-cells.decay * elapsed[..., None])


def hidden_at(cells: Cells, elapsed: Tensor) -> Tensor:
    """h(t), [..., D], ``elapsed`` [...] after the last event."""
    return cells.output * torch.tanh(cell_at(cells, elapsed))


def linear_bound(weights: Tensor, low: Tensor, high: Tensor) -> Tensor:
    """A bound of the products of ``weights`` [K, D] with any h between ``low`` and ``high`` [..., D], [..., K].

    Coordinates of h lie within [-1, 1]; slack covers rounding.
    """
    slack = 8 * torch.finfo(weights.dtype).eps * (1 + weights.abs().sum(1))
    return high @ weights.clamp(min=0).t() + low @ weights.clamp(max=0).t() + slack


def hidden_range(cells: Cells, start: Tensor, stop: Tensor) -> tuple[Tensor, Tensor]:
    """Smallest and largest h_d(t) over an interval of elapsed times, [..., D] each.

    Each coordinate of c(t), and so of h(t), is monotone between events: its extremes are at the two ends.
    """
    first, last = hidden_at(cells, start), hidden_at(cells, stop)
    return torch.minimum(first, last), torch.maximum(first, last)
