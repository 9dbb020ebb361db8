"""Islands: independent runs for the same stream, combined by their evidence.

Within an island all particles soon descend from few; islands never share an ancestor. An island's particles count in
proportion to its evidence, an unbiased estimate of p(x), so that the whole is a valid weighted sample again, and the
mean of the evidences is unbiased too.
"""

from __future__ import annotations

from dataclasses import fields

import torch
from torch import Tensor

from retrodict.events.batch import Batch
from retrodict.random import split
from retrodict.smc.particles import Result, Sample, Trace
from retrodict.smc.resampling import effective_size, log_mean

_ISLANDS = 1_000_000  # island j > 0 has this branch, plus j, of a stream's random numbers; island 0 has its own


def settle(observed: Batch, keys: Tensor, islands: int) -> tuple[Batch, Tensor]:
    """Every stream ``islands`` times, with keys of its own each time."""
    if islands == 1:
        return observed, keys
    repeated = Batch(*(getattr(observed, f.name).repeat_interleave(islands, 0) for f in fields(observed)))
    number = torch.arange(islands, device=keys.device)
    own = split(keys[:, None], _ISLANDS + number)
    own[:, 0] = keys
    return repeated, own.reshape(-1)


def unite(run: Result, islands: int) -> Result:
    """The runs of each stream's islands as one run with all of their particles."""
    if islands == 1:
        return run
    sample, trace = run
    B, M, S, C = len(sample.counts) // islands, sample.counts.shape[1], trace.ess.shape[1], sample.times.shape[2]
    evidence = sample.log_evidence.view(B, islands)
    shares = torch.log_softmax(sample.log_weights, 1).view(B, islands, M) + evidence[..., None]
    weights = torch.where(torch.isnan(shares), -torch.inf, shares).reshape(B, islands * M)
    offsets = (torch.arange(islands, device=evidence.device) * M)[None, :, None, None]
    parents = (trace.parents.view(B, islands, S, M) + offsets).transpose(1, 2).reshape(B, S, islands * M)
    ess = trace.ess.view(B, islands, S).sum(1)
    last = (~torch.isnan(ess)).sum(1) - 1
    ess[torch.arange(B, device=ess.device), last] = effective_size(weights)
    return Result(
        Sample(
            times=sample.times.view(B, islands * M, C),
            types=sample.types.view(B, islands * M, C),
            counts=sample.counts.view(B, islands * M),
            log_weights=weights,
            log_evidence=log_mean(evidence),
        ),
        Trace(ess, parents.to(trace.parents.dtype), trace.resampled.view(B, islands, S).any(1)),
    )
