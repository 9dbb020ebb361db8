"""Make particles differ again after resampling: Metropolis-Hastings moves within windows.

Resampling leaves few distinct histories of the early part of a stream. A move picks a window of time for each particle,
draws the missing events there afresh from q (which reads the observed future) and keeps the rest:

    z -> z'   with probability min(1, [p(x, z') / q_W(z')] / [p(x, z) / q_W(z)])

where q_W is q of the events in the window. Each move leaves the posterior p(z | x) as it is, whatever q, so weights
stay as they were; the particles are first resampled to equal weights. Windows are anywhere in the stream and between
all of it and a 64th wide, cut at both ends (small ones are accepted more often, large ones change more).
"""

from __future__ import annotations

from dataclasses import replace

import torch
from torch import Tensor

from retrodict.events.batch import Batch
from retrodict.proposals.base import Proposal
from retrodict.random import split, uniform
from retrodict.smc.options import EIGHT_NODES, Options
from retrodict.smc.particles import Result, Sample, Trace
from retrodict.smc.propose import Thinning
from retrodict.smc.resampling import systematic
from retrodict.smc.script import Replay, Script

_MOVES = 7  # a branch of each stream's random numbers; round r has branch r of it
_RESAMPLE, _WHERE, _WIDTH, _ACCEPT, _DRAW = range(5)
_NARROWEST = 64  # windows are at least this fraction of a stream wide, before they are cut at its ends


def rejuvenate(observed: Batch, run: Result, proposal: Proposal, keys: Tensor, rounds: int, options: Options) -> Result:
    """``rounds`` moves of every particle; ``keys`` [B] are the streams' random keys."""
    keys, start = split(keys, _MOVES), run.sample
    B, M = start.counts.shape
    number = torch.arange(M, device=keys.device)
    weights = torch.softmax(torch.where(torch.isfinite(start.log_weights), start.log_weights, -1e300), 1)
    parents = systematic(weights, uniform(split(keys, _RESAMPLE)[:, None], number))
    wide = parents[..., None].expand_as(start.times)
    times, types, counts = start.times.gather(1, wide), start.types.gather(1, wide), start.counts.gather(1, parents)
    whole = observed.durations[:, None]
    accepted = torch.zeros(B, dtype=torch.float64, device=keys.device)
    # Exact draws and exact integrals: with random points each round would be after another posterior.
    plain = replace(options, particles=2 * M, scheme=None, sampler=Thinning(), integral=EIGHT_NODES)
    for r in range(rounds):
        at = split(keys, 8 + r)
        u = [uniform(split(at, branch)[:, None], number) for branch in (_WHERE, _WIDTH, _ACCEPT)]
        width = whole * _NARROWEST ** -u[1]
        left = u[0] * (whole + width) - width
        script = _script(times, types, counts, left.clamp(min=0), torch.minimum(left + width, whole))
        swept = Replay(observed, proposal, split(at, _DRAW), plain, script).run().sample
        moved = u[2].log() < swept.log_weights[:, M:] - swept.log_weights[:, :M]
        times, types = _wider(times, swept.times), _wider(types, swept.types)
        times = torch.where(moved[..., None], _wider(swept.times, times)[:, M:], times)
        types = torch.where(moved[..., None], _wider(swept.types, types)[:, M:], types)
        counts = torch.where(moved, swept.counts[:, M:], counts)
        accepted += moved.double().mean(1)
    sample = Sample(times, types, counts, torch.zeros_like(start.log_weights), start.log_evidence)
    trace = _resampled_at_the_end(run.trace, observed, parents)
    return Result(sample, trace._replace(accepted=accepted / max(rounds, 1)))


def _resampled_at_the_end(trace: Trace, observed: Batch, parents: Tensor) -> Trace:
    """The trace of a run whose particles were resampled once more, at the end."""
    stream, last = torch.arange(len(parents), device=parents.device), observed.mask.sum(1)
    ancestry, resampled = trace.parents.clone(), trace.resampled.clone()
    ancestry[stream, last], resampled[stream, last] = parents.to(ancestry.dtype), True
    return trace._replace(parents=ancestry, resampled=resampled)


def _script(times: Tensor, types: Tensor, counts: Tensor, left: Tensor, right: Tensor) -> Script:
    """Each particle twice: as it is, and with its window drawn afresh."""
    C = times.shape[2]
    real = torch.arange(C, device=times.device) < counts[..., None]
    both = lambda x: torch.cat([x, x], 1).flatten(0, 1)  # noqa: E731
    drawn = torch.cat([torch.zeros_like(left), torch.ones_like(left)], 1).bool().flatten()
    return Script(both(torch.where(real, times, torch.inf)), both(types), both(left), both(right), drawn)


def _wider(x: Tensor, like: Tensor) -> Tensor:
    """Padded with zeros to hold as many events as ``like``."""
    return torch.nn.functional.pad(x, (0, max(0, like.shape[2] - x.shape[2])))
