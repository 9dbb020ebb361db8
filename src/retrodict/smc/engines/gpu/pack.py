"""Weights and streams as the kernels want them: padded to whole tiles, with zeros that change nothing.

A padded LSTM cell has zero weights, so its c and h stay zero; a padded type has rate zero.
"""

from __future__ import annotations

import math

import torch
import torch.nn.functional as F
from torch import Tensor

from retrodict.events.batch import Batch
from retrodict.missingness.base import Context
from retrodict.models.ctlstm import Cells, CellsSince, ContinuousTimeLSTM
from retrodict.models.neural_hawkes import NeuralHawkes
from retrodict.models.thinning import categorical
from retrodict.proposals.base import Proposal
from retrodict.random import split, uniform

_START, _PARTICLE = 3, 8  # branches of the random numbers, as in ``smc/sampler.py``


def padded_size(hidden: int) -> int:
    """The number of cells that fills whole tiles."""
    return 32 if hidden <= 32 else -(-hidden // 64) * 64


def padded_types(count: int) -> int:
    """A power of two, at least 16, as the matrix units want."""
    return max(16, 1 << (count - 1).bit_length())


def pack_lstm(lstm: ContinuousTimeLSTM, D: int, columns: int, exact: bool) -> tuple[Tensor, Tensor]:
    """Each input's share of the gates, [V, 7, D], and the recurrent weights, [1 or 2, D / columns, 8, columns, D]."""
    more = D - lstm.hidden_size
    shares = (lstm.bias + lstm.by_type).unflatten(-1, (7, lstm.hidden_size))
    recurrent = F.pad(lstm.by_hidden.unflatten(-1, (7, lstm.hidden_size)), (0, more, 0, 1, 0, more))
    blocks = recurrent.permute(1, 2, 0).unflatten(1, (D // columns, columns)).transpose(0, 1).clamp(-6e4, 6e4)
    return F.pad(shares, (0, more)), halves(blocks) if exact else blocks.half()[None]


def halves(x: Tensor) -> Tensor:
    """Single precision as two half-precision numbers, [2, ...]."""
    high = x.half()
    return torch.stack([high, (x - high).half()])


def pack_readout(readout: Tensor, KP: int, D: int) -> tuple[Tensor, Tensor]:
    """One row a type: its largest number [KP], and the row over it as two half-precision numbers each, [2, KP, D]."""
    padded = F.pad(readout, (0, D - readout.shape[1], 0, KP - readout.shape[0]))
    size = padded.abs().amax(1).clamp(min=1e-30)
    return size, halves(padded / size[:, None])


def pack_types(model: NeuralHawkes, rho: Tensor, KP: int) -> Tensor:
    """For each type log2(e) / s_k, s_k log(2), ρ_k, log ρ_k and log s_k, [5, KP]; ``rho`` [K] float64."""
    scale = model.log_scale.exp()
    rho = rho.to(scale.dtype)
    rows = [math.log2(math.e) / scale, math.log(2) * scale, rho, rho.log(), model.log_scale]
    return F.pad(torch.stack(rows), (0, KP - len(scale)))


def first_states(model: NeuralHawkes, shares: Tensor) -> Tensor:
    """The states after BOS, and after BOS and an event of each type at the start instant, [1 or K + 1, 4, D].

    Before BOS all cells are zero, so its share of the gates [7, D], the last of ``shares``, is all there is.
    """
    i, _, o, i_bar, _, z, _ = torch.sigmoid(shares[-1]).unbind()
    state = torch.stack([i * (2 * z - 1), i_bar * (2 * z - 1), F.softplus(shares[-1, 6]), o])[None]
    if model.start_atom is None:
        return state
    fields = Cells(*(x.expand(model.num_types, -1) for x in state[0, :, : model.hidden_size]))
    types = torch.arange(model.num_types, device=model.device)
    after = torch.stack(model.lstm.read(fields, types, torch.zeros_like(types, dtype=model.dtype)), 1)
    return torch.cat([state, F.pad(after, (0, shares.shape[-1] - model.hidden_size))])


def edge_scores(model: NeuralHawkes, rho: Tensor) -> Tensor:
    """What an observed event of each type adds to the log weights beside log λ_k, [2, K] float64.

    First log(1 - ρ_k), in the user's unit of time; then the same with the start atom in place of a density, for an
    event at the start (where the model has none, as in the first row, and λ_k is still to be added).
    """
    kept = torch.log1p(-rho)
    plain = kept - model.time_scale.log()
    return torch.stack([plain, plain if model.start_atom is None else kept + model.start_atom.log_probs[1:]])


def draw_starts(
    observed: Batch, proposal: Proposal, cells: Cells | None, keys: Tensor, rho: Tensor, M: int
) -> tuple[Tensor, Tensor]:
    """What happened at the start instant according to each particle, and its log weight, [B M] each.

    0 is no event, 1 + k one of type k; streams with an observed event there draw nothing. ``cells`` [B, D] are those of
    the right-to-left LSTM in the first segment.
    """
    model = proposal.model
    assert model.start_atom is not None
    B = len(keys)
    edges = torch.cat([observed.times, observed.durations[:, None]], 1)
    ahead = None if cells is None else CellsSince(*cells, edges[:, 0])
    log_q = proposal.start_log_probs(ahead, Context(observed.starts, observed.index))
    log_p = model.start_atom.log_probs + torch.cat([torch.zeros_like(log_q[0, :1]), rho.log()]).to(log_q)
    row_keys = split(keys[:, None], _PARTICLE + torch.arange(M, device=keys.device)).reshape(-1)
    u = uniform(split(row_keys, _START), torch.zeros_like(row_keys))
    outcome = categorical(log_q.exp().repeat_interleave(M, 0), u).view(B, M)
    weight = (log_p - log_q).gather(1, outcome).double()
    some = observed.mask[:, 0] if observed.mask.shape[1] else torch.zeros_like(keys, dtype=torch.bool)
    seen = (some & (edges[:, 0] == 0))[:, None]
    return torch.where(seen, 0, outcome).reshape(-1), torch.where(seen, 0.0, weight).reshape(-1)
