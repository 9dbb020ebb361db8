"""Train a twist ψ to tell the true history from the particles of the moment.

At observed event i, weighted particles are draws from p(z up to t_i | x up to t_i), and the true missing events are a
draw from p(z up to t_i | all of x). The ratio of the two densities is p(x after t_i | z, x up to t_i), up to a constant
of the stream: what ψ should be. A classifier that has to pick the truth out from among M draws learns this ratio
(noise-contrastive estimation; Gutmann and Hyvärinen, 2010), and the constant does not matter to it. Weighted particles
stand in for the draws, which is the same as M grows:

    loss = -log [ ψ(truth) / (ψ(truth) + M Σ_m w_m ψ(particle m)) ],   summed over observed events
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from retrodict.errors import ModelError
from retrodict.events.batch import Batch, batches_by_length
from retrodict.events.pairs import PairBatch
from retrodict.events.stream_set import StreamSet
from retrodict.proposals.twisted import Twisted
from retrodict.smc.resampling import systematic
from retrodict.smc.sampler import Meeting, Options, sequential_monte_carlo
from retrodict.smc.script import Script
from retrodict.train.censored import CensoredObjective


class Twisting(CensoredObjective):
    """Pick the true history out from among ``particles``, for at most ``per_epoch`` streams an epoch."""

    def __init__(
        self, proposal: Twisted, train: StreamSet, dev: StreamSet, *, seed: int = 0, particles: int = 16,
        per_epoch: int = 500,
    ) -> None:  # fmt: skip
        for name, value in (("particles", particles), ("per_epoch", per_epoch)):
            if not (isinstance(value, int) and value > 0):
                raise ModelError(f"{name} must be a positive whole number, but is {value!r}.")
        super().__init__(proposal, train, dev[:per_epoch], seed)
        self.proposal, self.particles, self.per_epoch = proposal, particles, per_epoch

    def options(self) -> dict[str, Any]:
        """For a run's identity."""
        return {"twisting": True, "particles": self.particles, "per_epoch": self.per_epoch}

    def events_per_stream(self) -> float:
        """Expected observed events of a training stream: the classifications it takes part in."""
        return max(float((1 - self.mechanism.event_rates(self.train)).sum()) / max(len(self.train), 1), 1e-3)

    def epoch_batches(self, batch_size: int, seed: int, epoch: int) -> list[NDArray[np.int64]]:
        """Some of the streams, censored afresh; a function of seed and epoch alone."""
        generator = np.random.default_rng([seed, epoch])
        self.censor(self.train, epoch)
        chosen = generator.permutation(len(self.train))[: self.per_epoch]
        return [chosen[index] for index in batches_by_length(self.train.lengths[chosen], batch_size, generator)]

    def loss(self, batch: Any, training: bool) -> tuple[Tensor, Tensor]:
        """Summed over observed events, and how many they are."""
        keys = self.keys(batch, training)
        guesses = self._watch(batch.observed, keys, Options(self.particles, systematic, twist=False))
        truth = self._watch(batch.observed, keys, Options(1, None, twist=False), _truth(batch))
        seen = batch.observed.mask
        scores = self.proposal.twist(guesses.features[seen])[..., 0]
        own = self.proposal.twist(truth.features[seen])[..., 0]
        shares = torch.log_softmax(guesses.log_weights[seen], 1).to(scores.dtype) + math.log(self.particles)
        total = torch.logsumexp(torch.cat([own, scores + shares], 1), 1) - own[:, 0]
        return total.sum(), seen.sum()

    @torch.no_grad()
    def _watch(self, observed: Batch, keys: Tensor, options: Options, script: Script | None = None) -> _Notes:
        """What particles look like at each observed event."""
        notes = _Notes(self.proposal, observed, options.particles)
        sequential_monte_carlo(observed, self.proposal, keys, options, script, notes)
        return notes


class _Notes:
    """Features [B, L, M, F] and log weights [B, L, M] of the particles at each observed event."""

    def __init__(self, proposal: Twisted, observed: Batch, particles: int) -> None:
        self.proposal = proposal
        shape = (*observed.mask.shape, particles)
        size = proposal.model.num_features + proposal.hidden_size
        self.features = torch.zeros(*shape, size, dtype=proposal.model.dtype, device=observed.mask.device)
        self.log_weights = torch.zeros(shape, dtype=torch.float64, device=observed.mask.device)

    def __call__(self, meeting: Meeting) -> None:
        features = self.proposal.twist_features(meeting.state, meeting.ahead, meeting.time)
        where = (meeting.streams, meeting.number)
        self.features[where] = features.view(len(meeting.streams), -1, features.shape[-1])
        self.log_weights[where] = meeting.log_weights


def _truth(batch: PairBatch) -> Script:
    """The missing events that there really were, as a script to follow from start to end."""
    times = torch.where(batch.missing, batch.complete.times, torch.inf)
    # Missing events first, in their order; what follows is infinite.
    order = times.argsort(dim=1, stable=True)
    never = torch.full_like(batch.durations, torch.inf)
    if not times.shape[1]:
        times, order = never[:, None], torch.zeros_like(never, dtype=torch.int64)[:, None]
        types = order
    else:
        times, types = times.gather(1, order), batch.complete.types.gather(1, order)
    return Script(times, types, never, never, torch.zeros_like(never, dtype=torch.bool))
