"""Train a smoothing proposal q to be near the posterior p (section 3.2.1).

    Div = β KL(p ‖ q) + (1 - β) KL(q ‖ p)                                                  equation (8)

Both divergences are known up to a constant of the data, log p(x) or the posterior's entropy, which training does not
need. ``train/streams.py`` says which complete streams are trained on; their events are hidden afresh every epoch.
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
from retrodict.events.combine import observed_first
from retrodict.events.pairs import PackedPairs, PairBatch, pairs_of_draws
from retrodict.events.stream_set import StreamSet
from retrodict.missingness.anything import Anything
from retrodict.missingness.base import Missingness
from retrodict.models.quadrature import GaussLegendre, Integral, Stratified
from retrodict.proposals.base import Proposal
from retrodict.random import split, stream_keys
from retrodict.smc.options import Options
from retrodict.smc.propose import Thinning
from retrodict.smc.sampler import SequentialMonteCarlo
from retrodict.train.objective import Objective, epoch_seed
from retrodict.train.streams import LearnFrom, TrainingStreams

_DEV_MASK = 999_999_937  # the seed of the one mask that dev streams keep
_POINTS = 2_000_000_000_000  # added to the seed of an epoch's masks gives the seed of its integration points
_MOMENTS, _LEAST = 16, 0.1  # of a stream, at which its rates are looked at; a mean rate that counts as little


def inclusive(proposal: Proposal, pairs: PairBatch, integral: Integral | None = None) -> Tensor:
    """KL(p ‖ q) of each stream, [B], up to the posterior's entropy: -log q(z | x), equation (6).

    The streams are complete ones from p whose missing events z were hidden by the mechanism.
    """
    return -proposal.batch_log_prob(pairs, integral)


def exclusive(
    proposal: Proposal, observed: Batch, keys: Tensor, draws: int, integral: Integral | None = None
) -> Tensor:
    """KL(q ‖ p) - log p(x) of each stream, [B]: an unbiased estimate with an unbiased gradient, equation (7).

    The value is the mean of log q - b over plain draws from q, by thinning and without resampling, where b is
    log p_model + log p_miss of the drawn stream. The gradient is the REINFORCE estimate, that of ½ (log q - b)², with
    ∫ λ^q as ``integral`` says. With several draws each is compared with the mean of the others, which leaves the
    expectation unchanged and removes most of the variance.
    """
    options = Options(draws, scheme=None, sampler=Thinning())
    drawn = SequentialMonteCarlo(observed, proposal, keys, options).run().sample
    excess = -drawn.log_weights  # log q - b, [B, S]
    baseline = (excess.sum(1, keepdim=True) - excess) / (draws - 1) if draws > 1 else torch.zeros_like(excess)
    pairs = pairs_of_draws(observed, drawn.times, drawn.types, drawn.counts)
    log_q = proposal.batch_log_prob(pairs, integral or GaussLegendre(8)).view_as(excess)
    surrogate = (excess - baseline).to(log_q.dtype) * log_q
    return (excess.to(log_q.dtype) + surrogate - surrogate.detach()).mean(1)


def count_evenly(mechanism: Missingness, observed: Batch) -> Tensor:
    """How much each stream counts in training for any mechanism, [B]: the more, the less may be missing; 1 on average.

    A stream of which a tenth may be missing has a ninth of the terms of one of which nine tenths may, and would be
    learned from that much less. What it counts depends on rates alone, not on what is missing: the best q is the same.
    """
    context = mechanism.contexts(observed)
    first = context._replace(**{name: getattr(context, name)[:, 0] for name in ("start", "stream", "end")})
    moments = (torch.arange(_MOMENTS, device=observed.durations.device) + 0.5) / _MOMENTS
    times = observed.durations[:, None] * moments
    count = 1 / (mechanism.rates(times, first.over(times)).mean((1, 2)) + _LEAST)
    return count / count.mean()


class Divergence(Objective):
    """Minimise β KL(p ‖ q) + (1 - β) KL(q ‖ p), up to a constant, over complete streams and their masks.

    ``beta`` 1 is the inclusive divergence alone, which the paper ended up with. ``learn_from`` and ``redraw`` choose
    the complete streams (``train/streams.py``; ``docs/imputation.md`` says what each choice gains). ``fresh_masks``
    hides other events every epoch (the paper uses one mask throughout); masks and random keys are functions of seed and
    epoch alone. The exclusive part takes ``draws`` draws a stream (1 is the paper's form).
    """

    what = "smoother"
    unit = "log q, nats per missing event"

    def __init__(
        self,
        proposal: Proposal,
        train: StreamSet,
        dev: StreamSet,
        *,
        seed: int = 0,
        beta: float = 1.0,
        learn_from: LearnFrom = "model",
        redraw: int = 1,
        fresh_masks: bool = True,
        draws: int = 4,
    ) -> None:
        if not 0 <= beta <= 1:
            raise ModelError(f"beta must lie in [0, 1] (1 is the inclusive divergence), but is {beta!r}.")
        if not (isinstance(draws, int) and draws > 0):
            raise ModelError(f"draws must be a positive whole number, but is {draws!r}.")
        self.streams = TrainingStreams(proposal.model, train, dev, learn_from, seed, redraw)
        self.module = self.proposal = proposal
        self.train, self.dev, self.seed = train, dev, seed
        self.beta, self.fresh_masks, self.num_draws = beta, fresh_masks, draws
        scored = self.streams.scored
        self._on_dev = proposal.given(proposal.missingness.redrawn(seed + _DEV_MASK))
        self._in_epoch = proposal  # with the mechanisms of this epoch
        self._dev = observed_first(scored, self._on_dev.missingness.hide(scored, _DEV_MASK))
        self._censored: tuple[StreamSet, NDArray[np.bool_]] | None = None  # this epoch's streams, and what is hidden
        self._packed: dict[tuple[bool, torch.device], PackedPairs] = {}
        self._expected: float | None = None  # missing events of a training stream: asked for in every step
        self._epoch = 0
        self._points: torch.Generator | None = None  # of this epoch's integrals

    def options(self) -> dict[str, Any]:
        """What this divergence is, for a run's identity."""
        learn_from = self.streams.learn_from
        options: dict[str, Any] = {"beta": self.beta, "fresh_masks": self.fresh_masks, "learn_from": learn_from}
        if learn_from != "data":
            options["redraw"] = self.streams.redraw
        return options if self.beta == 1 else {**options, "draws": self.num_draws}

    def events_per_stream(self) -> float:
        """Expected missing events of a training stream."""
        if self._expected is None:
            total = float(self.proposal.missingness.event_rates(self.train).sum())
            self._expected = max(total / max(len(self.train), 1), 1e-3)
        return self._expected

    def epoch_batches(self, batch_size: int, seed: int, epoch: int) -> list[NDArray[np.int64]]:
        """Censor this epoch's streams; a function of seed and epoch alone (on one kind of device, if p draws them).

        In a batch, streams with most observed events come first: so the right-to-left LSTM reads little padding.
        """
        streams, self._points, self._epoch = self.streams.of_epoch(epoch), None, epoch
        mask_seed = epoch_seed(self.seed, epoch if self.fresh_masks else 0)
        self._in_epoch = self.proposal.given(self.proposal.missingness.redrawn(mask_seed))
        self._censored = observed_first(streams, self._in_epoch.missingness.hide(streams, mask_seed))
        self._packed = {key: packed for key, packed in self._packed.items() if key[0]}
        complete, missing = self._censored
        seen = np.bincount(complete.stream_of_event[~missing], minlength=len(complete))
        groups = batches_by_length(streams.lengths, batch_size, np.random.default_rng([seed, epoch]))
        return [index[np.argsort(-seen[index], kind="stable")] for index in groups]

    def dev_batches(self, batch_size: int) -> list[NDArray[np.int64]]:
        """The scored streams once."""
        return batches_by_length(self.streams.scored.lengths, batch_size)

    def batch(self, index: NDArray[np.int64], epoch: int | None) -> PairBatch:
        """Observed and missing events of some of the streams."""
        key = epoch is None, self.device
        if key not in self._packed:
            pair = self._dev if epoch is None else self._censored
            assert pair is not None
            self._packed[key] = PackedPairs(*pair, self.device)
        return self._packed[key].batch(index, self.proposal.model.dtype)

    def name_of(self, index: int) -> Hashable:
        """A training stream, or one that was drawn."""
        return self.streams.name_of(index)

    def loss(self, batch: Any, training: bool) -> tuple[Tensor, Tensor]:
        """The divergence summed over streams, and the number of missing events."""
        proposal = self._in_epoch if training else self._on_dev
        total = torch.zeros((), dtype=proposal.model.dtype, device=batch.durations.device)
        if self.beta > 0:
            each = inclusive(proposal, batch, self._integral(training))
            total = total + self.beta * each.sum()
            if training and isinstance(proposal.missingness, Anything):
                more = count_evenly(proposal.missingness, batch.observed).to(each.dtype) - 1
                total = total + self.beta * (more * (each - each.detach())).sum()  # for the gradient alone
        if self.beta < 1:
            keys = stream_keys(self.seed, batch.index.tolist()).to(batch.durations.device)
            keys = split(keys, 1 + self._epoch if training else 0)  # new ones every epoch, the same ones on dev
            drawn = exclusive(proposal, batch.observed, keys, self.num_draws, self._integral(training))
            total = total + (1 - self.beta) * drawn.sum()
        return total, batch.missing.sum()

    def _integral(self, training: bool) -> Integral:
        """Sixteen points on dev, always the same; in training two random points a gap, others in every batch.

        q knows when the next observed event is, and could learn to be small at nodes that are always the same. Two
        points make a gradient noisier by less than a hundredth where rates are constant (``docs/imputation.md``).
        """
        if not training:
            prior = isinstance(self._on_dev.missingness, Anything)  # it has too many breaks to cut each gap at
            return Stratified(16, torch.Generator(self.device).manual_seed(_DEV_MASK)) if prior else GaussLegendre()
        if self._points is None or self._points.device != self.device:
            number = epoch_seed(self.seed, self._epoch) + _POINTS * (1 + self.process)
            self._points = torch.Generator(self.device).manual_seed(number)
        return Stratified(2, self._points)
