"""Train a smoothing proposal q to be near the posterior p (section 3.2.1).

    Div = β KL(p ‖ q) + (1 - β) KL(q ‖ p)                                                  equation (8)

*Inclusive*, KL(p ‖ q), equation (6): complete streams are censored, and q is taught to give the events that were
hidden a high probability given those that were left. The streams should come from p, whose posterior q is to be near
since p weights the particles. The paper takes the training streams for draws from p; here p draws its own.

*Exclusive*, KL(q ‖ p), equation (7): events are drawn from q, and the gradient is that of ½ (log q - b)², b being
log p_model + log p_miss of the drawn stream: the REINFORCE estimate. The draws are plain draws from q, without
resampling, so that the estimate is unbiased. With several draws a stream each is compared with the mean of the
others, which leaves the expectation as it is and takes most of the variance away.

Both are known up to a constant of the data, log p(x) or the posterior's entropy, which training does not need.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any, Literal, get_args

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from retrodict.errors import ModelError, RunawayError
from retrodict.events.batch import Batch, batches_by_length
from retrodict.events.combine import join
from retrodict.events.pairs import pairs_of_draws
from retrodict.events.stream_set import StreamSet
from retrodict.models.base import Model
from retrodict.models.quadrature import GaussLegendre, Integral, Stratified
from retrodict.proposals.base import Proposal
from retrodict.smc.draw import draw_like
from retrodict.smc.propose import Thinning
from retrodict.smc.sampler import Options, sequential_monte_carlo
from retrodict.train.censored import CensoredObjective
from retrodict.train.objective import epoch_seed

Teacher = Literal["model", "data", "both"]
_DRAWS = 1_000_000_000_000  # seeds of draws are those of masks and this much more
_POINTS = 2_000_000_000_000  # and of points of integrals so much more
_DEV_DRAWS = 999_999_893 + _DRAWS  # of the one draw of dev streams


class Divergence(CensoredObjective):
    """Minimise β KL(p ‖ q) + (1 - β) KL(q ‖ p), up to a constant, over complete streams and their masks.

    ``beta`` 1 is inclusive only, as the paper ended up with. ``learn_from`` says whose streams: those that the
    ``"model"`` draws, one for every training or dev stream, which starts and lasts as that one does, and other ones to
    train on every ``redraw`` epochs; the ``"data"``, the training streams themselves, as in the paper; or ``"both"``,
    scored on dev data. ``docs/imputation.md`` says what each gains. ``fresh_masks`` censors anew every epoch (the paper
    uses one mask throughout). ``draws`` is how many draws a stream the exclusive part takes (1: the paper's form).
    """

    def __init__(
        self,
        proposal: Proposal,
        train: StreamSet,
        dev: StreamSet,
        *,
        seed: int = 0,
        beta: float = 1.0,
        learn_from: Teacher = "model",
        redraw: int = 1,
        fresh_masks: bool = True,
        draws: int = 4,
    ) -> None:
        if not 0 <= beta <= 1:
            raise ModelError(f"beta must lie in [0, 1] (1 is the inclusive divergence), but is {beta!r}.")
        if learn_from not in get_args(Teacher):
            raise ModelError(f"learn_from must be one of {', '.join(get_args(Teacher))}, but is {learn_from!r}.")
        for name, value in (("draws", draws), ("redraw", redraw)):
            if not (isinstance(value, int) and value > 0):
                raise ModelError(f"{name} must be a positive whole number, but is {value!r}.")
        scored = _draw(proposal.model, dev, seed + _DEV_DRAWS) if learn_from == "model" else None
        super().__init__(proposal, train, dev, seed, scored)
        self.proposal = proposal
        self.beta, self.learn_from, self.redraw = beta, learn_from, redraw
        self.fresh_masks, self.num_draws = fresh_masks, draws
        self._points: torch.Generator | None = None  # of this epoch's integrals
        self._drawn: tuple[int, StreamSet] | None = None  # this epoch's streams, and since which epoch

    def options(self) -> dict[str, Any]:
        """What this divergence is, for a run's identity."""
        options: dict[str, Any] = {"beta": self.beta, "fresh_masks": self.fresh_masks, "learn_from": self.learn_from}
        if self.learn_from != "data":
            options["redraw"] = self.redraw
        return options if self.beta == 1 else {**options, "draws": self.num_draws}

    def events_per_stream(self) -> float:
        """Expected missing events of a training stream."""
        return max(float(self.mechanism.event_rates(self.train).sum()) / max(len(self.train), 1), 1e-3)

    def epoch_batches(self, batch_size: int, seed: int, epoch: int) -> list[NDArray[np.int64]]:
        """Censor this epoch's streams; a function of seed and epoch alone (on one kind of device, if p draws them)."""
        streams, self._points = self._streams(epoch), None
        self.censor(streams, epoch, fresh=self.fresh_masks)
        return batches_by_length(streams.lengths, batch_size, np.random.default_rng([seed, epoch]))

    def name_of(self, index: int) -> Hashable:
        """A training stream, or one that was drawn."""
        if self.learn_from == "data" or (self.learn_from == "both" and index < len(self.train)):
            return self.train.ids[index]
        return f"drawn by the model in place of {self.train.ids[index % len(self.train)]!r}"

    def loss(self, batch: Any, training: bool) -> tuple[Tensor, Tensor]:
        """The divergence summed over streams, and the number of missing events."""
        total = torch.zeros((), dtype=self.proposal.model.dtype, device=batch.durations.device)
        if self.beta > 0:
            integral = self._integral() if training else GaussLegendre()
            total = total - self.beta * self.proposal.batch_log_prob(batch, integral).sum()
        if self.beta < 1:
            integral = self._integral() if training else GaussLegendre()
            drawn = exclusive(self.proposal, batch.observed, self.keys(batch, training), self.num_draws, integral)
            total = total + (1 - self.beta) * drawn.sum()
        return total, batch.missing.sum()

    def _integral(self) -> Integral:
        """Other points in every batch: q knows when the next observed event is, and could learn to hide from nodes."""
        if self._points is None or self._points.device != self.device:
            self._points = torch.Generator(self.device).manual_seed(epoch_seed(self.seed, self._epoch) + _POINTS)
        return Stratified(4, self._points)

    def _streams(self, epoch: int) -> StreamSet:
        """The complete streams of an epoch."""
        if self.learn_from == "data":
            return self.train
        since = epoch - epoch % self.redraw
        if self._drawn is None or self._drawn[0] != since:
            drawn = _draw(self.proposal.model, self.train, epoch_seed(self.seed, since) + _DRAWS)
            self._drawn = since, drawn if self.learn_from == "model" else join([self.train, drawn])
        return self._drawn[1]


def _draw(model: Model, like: StreamSet, seed: int) -> StreamSet:
    """Streams from the model, in place of these."""
    try:
        return draw_like(model, like, seed)
    except RunawayError as error:
        raise ModelError(
            "the model cannot teach a smoother: a stream that it drew had a hundred times as many events as the "
            "longest of yours, or more. It may be explosive (for a Hawkes process: more than one child per event on "
            'average). Teach the smoother by your streams instead: learn_from="data", or --learn-from data on the '
            "command line."
        ) from error


def exclusive(
    proposal: Proposal, observed: Batch, keys: Tensor, draws: int, integral: Integral | None = None
) -> Tensor:
    """KL(q ‖ p) - log p(x) of each stream, [B]: an unbiased estimate with an unbiased gradient.

    The value is the mean of log q - b over draws from q itself, by thinning; the gradient that of equation (7), with
    ∫ λ^q as ``integral`` says.
    """
    run = sequential_monte_carlo(observed, proposal, keys, Options(draws, scheme=None, sampler=Thinning()))
    excess = -run.log_weights  # log q - b, [B, S]
    baseline = (excess.sum(1, keepdim=True) - excess) / (draws - 1) if draws > 1 else torch.zeros_like(excess)
    pairs = pairs_of_draws(observed, run.times, run.types, run.counts)
    log_q = proposal.batch_log_prob(pairs, integral or GaussLegendre(8)).view_as(excess)
    surrogate = (excess - baseline).to(log_q.dtype) * log_q
    return (excess.to(log_q.dtype) + surrogate - surrogate.detach()).mean(1)
