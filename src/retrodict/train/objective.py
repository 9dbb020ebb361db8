"""What training needs to know about what is trained: batches, a loss, and how well it does on dev data.

``Likelihood`` fits a complete-data model. Something else to fit (a proposal, say) is another Objective.
"""

from __future__ import annotations

import hashlib
from abc import ABC, abstractmethod
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from retrodict.events.batch import Batch, batches_by_length, make_batch
from retrodict.events.stream_set import StreamSet
from retrodict.models.base import Model
from retrodict.models.quadrature import GaussLegendre, Integral


class Objective(ABC):
    """A module to train, its data, and a loss in nats per event (lower is better)."""

    module: nn.Module
    train: StreamSet
    dev: StreamSet

    @abstractmethod
    def batch(self, streams: StreamSet, index: NDArray[np.int64], epoch: int | None) -> Any:
        """A batch of these streams; ``epoch`` is None for dev data."""

    @abstractmethod
    def loss(self, batch: Any, training: bool) -> tuple[Tensor, int]:
        """Summed loss of the batch, and the number of events it is the sum over."""

    def events_per_stream(self) -> float:
        """Mean number of scored events of a training stream, the unit in which losses are reported."""
        return max(self.train.num_events / max(len(self.train), 1), 1e-3)

    def epoch_batches(self, batch_size: int, seed: int, epoch: int) -> list[NDArray[np.int64]]:
        """The training batches of an epoch: a function of seed and epoch alone, so that runs resume."""
        generator = np.random.default_rng([seed, epoch])
        return batches_by_length(self.train.lengths, batch_size, generator)

    def dev_batches(self, batch_size: int) -> list[NDArray[np.int64]]:
        """The dev data once."""
        return batches_by_length(self.dev.lengths, batch_size)

    def options(self) -> dict[str, Any]:
        """What else makes this objective what it is, as JSON can hold it: a part of a run's identity."""
        return {}

    def metrics(self) -> dict[str, float]:
        """What else to record of each epoch, after dev was scored."""
        return {}

    def fingerprint(self) -> str:
        """A digest of the data, so that a run is not resumed on other streams by mistake."""
        digest = hashlib.blake2b(digest_size=8)
        for streams in (self.train, self.dev):
            for array in (streams.event_times, streams.event_types, streams.offsets, streams.ends):
                digest.update(np.ascontiguousarray(array).tobytes())
        return digest.hexdigest()


class Likelihood(Objective):
    """Maximise log p_model of complete streams (equation B.2).

    Training integrates with a few quadrature nodes per gap, dev scores with more.
    """

    def __init__(
        self,
        model: Model,
        train: StreamSet,
        dev: StreamSet,
        integral: Integral | None = None,
        dev_integral: Integral | None = None,
    ) -> None:
        self.module = self.model = model
        self.train, self.dev = train, dev
        self.integral = integral or GaussLegendre(4)
        self.dev_integral = dev_integral or GaussLegendre()

    def batch(self, streams: StreamSet, index: NDArray[np.int64], epoch: int | None) -> Batch:
        """Complete streams, padded, in the model's precision."""
        return make_batch(streams, index, dtype=self.model.dtype)

    def loss(self, batch: Batch, training: bool) -> tuple[Tensor, int]:
        """-log p summed over streams."""
        integral = self.integral if training else self.dev_integral
        return -self.model.batch_log_likelihood(batch, integral).sum(), batch.num_events


def mean_loss(objective: Objective, batch_size: int, device: torch.device) -> float:
    """Loss per event on the dev streams."""
    total, count = 0.0, 0
    with torch.no_grad():
        for index in objective.dev_batches(batch_size):
            loss, events = objective.loss(objective.batch(objective.dev, index, None).to(device), False)
            total, count = total + float(loss), count + events
    return total / max(count, 1)
