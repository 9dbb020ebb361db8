"""Islands: independent runs for the same stream, combined by their evidence.

Within an island all particles soon descend from few; islands never share an ancestor, so that each can judge what the
others say (``smc/choice.py``). An island's particles count in proportion to its evidence, an unbiased estimate of p(x),
so that the whole is a valid weighted sample again, and the mean of the evidences is unbiased too. In the lagged
ensemble (``smc/genealogy.py``) islands count alike: evidence of the far past and future says nothing of a segment.
"""

from __future__ import annotations

from dataclasses import fields

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from retrodict.errors import ModelError
from retrodict.events.batch import Batch
from retrodict.random import split
from retrodict.smc.resampling import effective_size, log_mean

_ISLANDS = 1_000_000  # island j > 0 has this branch, plus j, of a stream's random numbers; island 0 has its own
Numbers = NDArray[np.float64]


def number_of_islands(islands: int | None, particles: int) -> int:
    """How many islands: as asked, by default two where the particles can be halved."""
    if islands is None:
        return 2 if particles % 2 == 0 else 1
    if not (isinstance(islands, int) and islands > 0 and particles % islands == 0):
        raise ModelError(f"islands must divide the {particles} particles evenly, but is {islands!r}.")
    return islands


def settle(observed: Batch, keys: Tensor, islands: int) -> tuple[Batch, Tensor]:
    """Every stream ``islands`` times, with keys of its own each time."""
    if islands == 1:
        return observed, keys
    repeated = Batch(*(getattr(observed, f.name).repeat_interleave(islands, 0) for f in fields(observed)))
    number = torch.arange(islands, device=keys.device)
    own = split(keys[:, None], _ISLANDS + number)
    own[:, 0] = keys
    return repeated, own.reshape(-1)


def unite_weights(log_weights: Tensor, log_evidence: Tensor, islands: int) -> tuple[Tensor, Tensor]:
    """Weights [B, M] that add up to one, and log evidence [B], of B streams whose islands have [B I, M / I] and [B I].

    Particles of streams that are impossible, whose weights are all zero, count alike.
    """
    evidence, shares = log_evidence.view(len(log_evidence) // islands, islands), log_weights
    if islands > 1:
        own = torch.log_softmax(log_weights, 1).view(len(evidence), islands, log_weights.shape[1])
        shares = own + evidence[..., None]
        shares = torch.where(torch.isnan(shares), -torch.inf, shares).flatten(1)
    dead = ~torch.isfinite(shares.amax(1, keepdim=True)) if shares.numel() else shares.isnan()
    return torch.softmax(torch.where(dead, 0.0, shares), 1), log_mean(evidence)


def unite_sizes(ess: Tensor, weights: Tensor, islands: int) -> Tensor:
    """Effective sample sizes [B, S] from those of the islands [B I, S]; at the end that of all weights [B, M]."""
    if islands == 1:
        return ess
    total = ess.view(len(weights), islands, ess.shape[1]).sum(1)
    last = (~torch.isnan(total)).sum(1) - 1
    total[torch.arange(len(total), device=total.device), last] = effective_size(weights.log())
    return total
