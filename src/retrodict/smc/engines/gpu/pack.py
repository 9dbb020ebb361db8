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
from retrodict.missingness.pieces import Pieces
from retrodict.models.base import Model
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


def padded_units(count: int) -> int:
    """None, or a power of two, at least 16."""
    return padded_types(count) if count else 0


def pack_shares(shares: Tensor, D: int) -> Tensor:
    """Inputs' shares of the gates [..., 7 d] as [..., 7, D]."""
    return F.pad(shares.unflatten(-1, (7, -1)), (0, D - shares.shape[-1] // 7))


def pack_recurrent(lstm: ContinuousTimeLSTM, D: int, columns: int, exact: bool) -> Tensor:
    """The recurrent weights, [1 or 2, D / columns, 8, columns, D]."""
    more = D - lstm.hidden_size
    recurrent = F.pad(lstm.by_hidden.unflatten(-1, (7, lstm.hidden_size)), (0, more, 0, 1, 0, more))
    blocks = recurrent.permute(1, 2, 0).unflatten(1, (D // columns, columns)).transpose(0, 1).clamp(-6e4, 6e4)
    return halves(blocks) if exact else blocks.half()[None]


def pack_half(weights: Tensor, rows: int, columns: int) -> Tensor:
    """Half-precision numbers, [rows, columns]."""
    more = (0, columns - weights.shape[1], 0, rows - weights.shape[0])
    return F.pad(weights, more).clamp(-6e4, 6e4).half()


def halves(x: Tensor) -> Tensor:
    """Single precision as two half-precision numbers, [2, ...]."""
    high = x.half()
    return torch.stack([high, (x - high).half()])


def pack_readout(readout: Tensor, rows: int, D: int) -> tuple[Tensor, Tensor]:
    """Each row's largest number, and the row over it as two half-precision numbers each, [rows] and [2, rows, D]."""
    padded = F.pad(readout, (0, D - readout.shape[1], 0, rows - readout.shape[0]))
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


def log_kept(observed: Batch, pieces: Pieces, has_atom: bool) -> Tensor:
    """log(1 - ρ) of what depends on time, for each observed event, [B, L] float64.

    At a start atom it is all of it: the kernels add the parts that look at last triggers to densities alone.
    """
    kinds = observed.types[..., None]
    kept = torch.log1p(-pieces.at(observed.times).gather(-1, kinds)[..., 0])
    if has_atom:
        for part in pieces.after:
            late = torch.log1p(-part.late.to(kept))[observed.types[:, :1]]
            kept[:, :1] += torch.where(observed.times[:, :1] == 0, late, 0.0)
    return torch.where(observed.mask, kept, 0.0)


def _not_the_last(model: Model) -> Tensor:
    """log(1 - π) of an event of each type at the start instant, [K] float64."""
    assert model.end_atom is not None
    types = torch.arange(model.num_types, device=model.device)
    times = torch.zeros(model.num_types, dtype=torch.float64, device=model.device)
    state = model.update(model.initial((model.num_types,)), types, times)
    return model.end_atom.log_prob(model.features(state, times), types, times, torch.ones_like(types), False)


def draw_starts(
    observed: Batch, proposal: Proposal, cells: Cells | None, keys: Tensor, M: int
) -> tuple[Tensor, Tensor]:
    """What happened at the start instant according to each particle, and its log weight, [B M] each.

    0 is no event, 1 + k one of type k; streams with an observed event there draw nothing. ``cells`` [B, D] are those of
    the right-to-left LSTM in the first segment.
    """
    model, mechanism = proposal.model, proposal.missingness
    assert model.start_atom is not None
    B = len(keys)
    edges = torch.cat([observed.times, observed.durations[:, None]], 1)
    ahead = None if cells is None else CellsSince(*cells, edges[:, 0])
    history = mechanism.initial((B,), keys.device)
    context = Context(observed.starts, observed.ids, None, observed.durations, history)
    log_q = proposal.start_log_probs(ahead, context)
    rho = mechanism.rates(torch.zeros_like(observed.durations), context).to(log_q)
    log_p = model.start_atom.log_probs + F.pad(rho.log(), (1, 0))
    row_keys = split(keys[:, None], _PARTICLE + torch.arange(M, device=keys.device)).reshape(-1)
    u = uniform(split(row_keys, _START), torch.zeros_like(row_keys))
    outcome = categorical(log_q.exp().repeat_interleave(M, 0), u).view(B, M)
    weight = (log_p - log_q).gather(1, outcome).double()
    if model.end_atom is not None:
        weight += F.pad(_not_the_last(model), (1, 0))[outcome]
    some = observed.mask[:, 0] if observed.mask.shape[1] else torch.zeros_like(keys, dtype=torch.bool)
    seen = (some & (edges[:, 0] == 0))[:, None]
    return torch.where(seen, 0, outcome).reshape(-1), torch.where(seen, 0.0, weight).reshape(-1)
