"""Train a smoothing proposal by the inclusive Kullback-Leibler divergence (section 3.2.1, equation 6).

Complete streams are censored afresh every epoch, and q is taught to give the events that were hidden a high
probability given those that were left. Streams simulated from the model itself can be mixed in: unlimited data for
exactly the divergence that is wanted.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from retrodict.events.batch import batches_by_length
from retrodict.events.pairs import PairBatch, make_pairs
from retrodict.events.stream import EventStream
from retrodict.events.stream_set import StreamSet
from retrodict.models.quadrature import GaussLegendre
from retrodict.models.simulate import simulate
from retrodict.proposals.base import Proposal
from retrodict.train.objective import Objective

_DEV_MASK = 1_000_003  # the seed of the one mask that dev streams keep


class InclusiveKL(Objective):
    """Minimise E[-log q(z | x)] over complete streams and their masks.

    ``fresh_masks`` censors anew every epoch (the paper uses one mask throughout). ``simulated`` is how many streams
    drawn from the model join each epoch, as a share of the training streams.
    """

    def __init__(
        self,
        proposal: Proposal,
        train: StreamSet,
        dev: StreamSet,
        *,
        seed: int = 0,
        fresh_masks: bool = True,
        simulated: float = 0.0,
    ) -> None:
        self.module = self.proposal = proposal
        self.train, self.dev, self.seed = train, dev, seed
        self.fresh_masks, self.simulated = fresh_masks, simulated
        self.mechanism = proposal.missingness
        self.dev_pair = self.mechanism.censor(dev, _DEV_MASK)
        self._epoch_pair: tuple[StreamSet, StreamSet] | None = None

    def events_per_stream(self) -> float:
        """Expected missing events of a training stream."""
        return max(float(self.mechanism.event_rates(self.train).sum()) / max(len(self.train), 1), 1e-3)

    def epoch_batches(self, batch_size: int, seed: int, epoch: int) -> list[NDArray[np.int64]]:
        """Censor this epoch's streams; a function of seed and epoch alone."""
        streams = self.train
        if self.simulated > 0:
            streams = _joined(streams, self._draw(epoch))
        mask_seed = (self.seed + 1) * 1_000_000 + (epoch if self.fresh_masks else 0)
        self._epoch_pair = self.mechanism.censor(streams, mask_seed)
        return batches_by_length(streams.lengths, batch_size, np.random.default_rng([seed, epoch]))

    def batch(self, streams: StreamSet, index: NDArray[np.int64], epoch: int | None) -> PairBatch:
        """Observed and missing events of some of the streams."""
        pair = self.dev_pair if epoch is None else self._epoch_pair
        assert pair is not None
        return make_pairs(*pair, index, dtype=self.proposal.model.dtype)

    def loss(self, batch: Any, training: bool) -> tuple[Tensor, int]:
        """-log q summed over streams, and the number of missing events."""
        integral = GaussLegendre(4) if training else GaussLegendre()
        return -self.proposal.batch_log_prob(batch, integral).sum(), batch.num_events

    def _draw(self, epoch: int) -> StreamSet:
        """Streams from the model, as long as training streams are."""
        count = round(self.simulated * len(self.train))
        generator = np.random.default_rng([self.seed, epoch, 1])
        durations = generator.choice(self.train.durations, count)
        with torch.no_grad():
            return simulate(self.proposal.model, count, durations, seed=(self.seed + 1) * 1_000_000 + epoch)


def _joined(streams: StreamSet, drawn: StreamSet) -> StreamSet:
    renamed = (EventStream.trusted(s.times, s.types, s.start, s.end, f"simulated {s.id}") for s in drawn)
    plain = (EventStream.trusted(s.times, s.types, s.start, s.end, s.id) for s in streams)
    return StreamSet([*plain, *renamed], types=streams.types, axis=streams.axis)
