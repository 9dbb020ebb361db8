"""Train a smoothing proposal q to be near the posterior p (section 3.2.1).

    Div = β KL(p ‖ q) + (1 - β) KL(q ‖ p)                                                  equation (8)

*Inclusive*, KL(p ‖ q), equation (6): complete streams are censored, and q is taught to give the events that were
hidden a high probability given those that were left. A fresh mask every epoch, and streams simulated from the model
itself, are more data for the very same divergence.

*Exclusive*, KL(q ‖ p), equation (7): events are drawn from q, and the gradient is that of ½ (log q - b)², b being
log p_model + log p_miss of the drawn stream: the REINFORCE estimate. The draws are plain draws from q, without
resampling, so that the estimate is unbiased. With several draws a stream each is compared with the mean of the
others, which leaves the expectation as it is and takes most of the variance away.

Both are known up to a constant of the data, log p(x) or the posterior's entropy, which training does not need.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from retrodict.errors import ModelError
from retrodict.events.batch import Batch, batches_by_length
from retrodict.events.pairs import pairs_of_draws
from retrodict.events.stream import EventStream
from retrodict.events.stream_set import StreamSet
from retrodict.models.quadrature import GaussLegendre
from retrodict.models.simulate import simulate
from retrodict.proposals.base import Proposal
from retrodict.smc.sampler import Options, sequential_monte_carlo
from retrodict.train.censored import CensoredObjective


class Divergence(CensoredObjective):
    """Minimise β KL(p ‖ q) + (1 - β) KL(q ‖ p), up to a constant, over complete streams and their masks.

    ``beta`` 1 is inclusive only, as the paper ended up with. ``fresh_masks`` censors anew every epoch (the paper uses
    one mask throughout). ``simulated`` is how many streams drawn from the model join each epoch, as a share of the
    training streams; by default as many as there are where it is certain which events go missing, so that a fresh mask
    is the same mask, and none elsewhere (``docs/imputation.md`` says what that gains); others are drawn every
    ``redraw`` epochs. ``draws`` is how many draws a stream the exclusive part takes (1: the paper's form).
    """

    def __init__(
        self,
        proposal: Proposal,
        train: StreamSet,
        dev: StreamSet,
        *,
        seed: int = 0,
        beta: float = 1.0,
        fresh_masks: bool = True,
        simulated: float | None = None,
        redraw: int = 1,
        draws: int = 4,
    ) -> None:
        if not 0 <= beta <= 1:
            raise ModelError(f"beta must lie in [0, 1] (1 is the inclusive divergence), but is {beta!r}.")
        mechanism = proposal.missingness
        if simulated is None:
            rates = mechanism.event_rates(train)
            simulated = float(bool(((rates == 0) | (rates == 1)).all()))
        if not simulated >= 0:
            raise ModelError(f"simulated, a share of the training streams, must not be negative, but is {simulated!r}.")
        for name, value in (("draws", draws), ("redraw", redraw)):
            if not (isinstance(value, int) and value > 0):
                raise ModelError(f"{name} must be a positive whole number, but is {value!r}.")
        super().__init__(proposal, train, dev, seed)
        self.proposal = proposal
        self.beta, self.fresh_masks, self.simulated, self.num_draws = beta, fresh_masks, simulated, draws
        self.redraw = redraw
        self._drawn: tuple[int, StreamSet] | None = None  # with simulated streams, and since which epoch

    def options(self) -> dict[str, Any]:
        """What this divergence is, for a run's identity."""
        options: dict[str, Any] = {"beta": self.beta, "fresh_masks": self.fresh_masks, "simulated": self.simulated}
        if self.redraw != 1:
            options["redraw"] = self.redraw
        return options if self.beta == 1 else {**options, "draws": self.num_draws}

    def events_per_stream(self) -> float:
        """Expected missing events of a training stream."""
        return max(float(self.mechanism.event_rates(self.train).sum()) / max(len(self.train), 1), 1e-3)

    def epoch_batches(self, batch_size: int, seed: int, epoch: int) -> list[NDArray[np.int64]]:
        """Censor this epoch's streams; a function of seed and epoch alone."""
        streams = self.train
        if self.simulated > 0:
            since = epoch - epoch % self.redraw
            if self._drawn is None or self._drawn[0] != since:
                self._drawn = since, _joined(streams, self._simulate(since))
            streams = self._drawn[1]
        self.censor(streams, epoch, fresh=self.fresh_masks)
        return batches_by_length(streams.lengths, batch_size, np.random.default_rng([seed, epoch]))

    def name_of(self, index: int) -> Hashable:
        """Those after the training streams were simulated."""
        return self.train.ids[index] if index < len(self.train) else "simulated"

    def loss(self, batch: Any, training: bool) -> tuple[Tensor, Tensor]:
        """The divergence summed over streams, and the number of missing events."""
        total = torch.zeros((), dtype=self.proposal.model.dtype, device=batch.durations.device)
        if self.beta > 0:
            integral = GaussLegendre(4) if training else GaussLegendre()
            total = total - self.beta * self.proposal.batch_log_prob(batch, integral).sum()
        if self.beta < 1:
            drawn = exclusive(self.proposal, batch.observed, self.keys(batch, training), self.num_draws)
            total = total + (1 - self.beta) * drawn.sum()
        return total, batch.missing.sum()

    def _simulate(self, epoch: int) -> StreamSet:
        """Streams from the model, as long as training streams are and starting when they do."""
        count = round(self.simulated * len(self.train))
        generator = np.random.default_rng([self.seed, epoch, 1])
        like = generator.choice(len(self.train), count)
        drawn = simulate(
            self.proposal.model, count, self.train.durations[like], seed=(self.seed + 1) * 1_000_000 + epoch
        )
        starts = self.train.starts[like]
        return StreamSet(
            [
                EventStream.trusted(s.times + a, s.types, float(a), s.end + float(a), s.id)
                for s, a in zip(drawn, starts, strict=True)
            ],
            types=self.train.types,
            axis=self.train.axis,
        )


def exclusive(proposal: Proposal, observed: Batch, keys: Tensor, draws: int) -> Tensor:
    """KL(q ‖ p) - log p(x) of each stream, [B]: an unbiased estimate with an unbiased gradient.

    The value is the mean of log q - b over draws from q; the gradient that of equation (7).
    """
    run = sequential_monte_carlo(observed, proposal, keys, Options(draws, scheme=None))
    excess = -run.log_weights  # log q - b, [B, S]
    baseline = (excess.sum(1, keepdim=True) - excess) / (draws - 1) if draws > 1 else torch.zeros_like(excess)
    pairs = pairs_of_draws(observed, run.times, run.types, run.counts)
    log_q = proposal.batch_log_prob(pairs, GaussLegendre(4)).view_as(excess)
    surrogate = (excess - baseline).to(log_q.dtype) * log_q
    return (excess.to(log_q.dtype) + surrogate - surrogate.detach()).mean(1)


def _joined(streams: StreamSet, drawn: StreamSet) -> StreamSet:
    renamed = (EventStream.trusted(s.times, s.types, s.start, s.end, f"simulated {s.id}") for s in drawn)
    plain = (EventStream.trusted(s.times, s.types, s.start, s.end, s.id) for s in streams)
    return StreamSet([*plain, *renamed], types=streams.types, axis=streams.axis)
