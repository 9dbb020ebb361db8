"""What training needs to know about what is trained: batches, a loss, and how well it does on dev data.

``Likelihood`` fits a complete-data model. Something else to fit (a proposal, say) is another Objective.
"""

from __future__ import annotations

import hashlib
from abc import ABC, abstractmethod
from collections.abc import Hashable, Iterator
from contextlib import contextmanager
from typing import Any, ClassVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from retrodict.errors import ModelError
from retrodict.events.batch import Batch, Packed, batches_by_length
from retrodict.events.stream_set import StreamSet
from retrodict.models.base import Model
from retrodict.models.dropout import Dropout
from retrodict.models.quadrature import GaussLegendre, Integral
from retrodict.models.state_space import StateSpace


class Objective(ABC):
    """A module to train, its data, and a loss per event, in nats (lower is better)."""

    what: ClassVar[str] = "model"  # what is trained, and what scores are: words for those who wait
    unit: ClassVar[str] = "nats per event"
    module: nn.Module
    train: StreamSet
    dev: StreamSet
    process: int = 0  # which of several that train together this is: what is random in a step is its own

    @abstractmethod
    def batch(self, index: NDArray[np.int64], epoch: int | None) -> Any:
        """A batch of an epoch's training streams, or of dev streams (``epoch`` None), on the module's device."""

    @abstractmethod
    def loss(self, batch: Any, training: bool) -> tuple[Tensor, Tensor]:
        """Summed loss of the batch, and the number of events it is the sum over: both may still be being computed."""

    def name_of(self, index: int) -> Hashable:
        """What to call a stream of a training batch in a message."""
        return self.train.ids[index]

    @property
    def device(self) -> torch.device:
        """Where the module is."""
        return next(self.module.parameters()).device

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
            add_streams(digest, streams, "event_times", "event_types", "offsets", "starts", "ends", "id_keys")
        return digest.hexdigest()


class Likelihood(Objective):
    """Maximise log p_model of complete streams (equation B.2).

    Training integrates with a few quadrature nodes per gap, dev scores with more. ``dropout`` is the share of a state
    space's units that is hidden in a step (``models/dropout.py``).
    """

    def __init__(
        self,
        model: Model,
        train: StreamSet,
        dev: StreamSet,
        integral: Integral | None = None,
        dev_integral: Integral | None = None,
        dropout: float = 0.0,
    ) -> None:
        _check_dropout(dropout, model)
        self.module = self.model = model
        self.train, self.dev = train, dev
        self.integral = integral or GaussLegendre(4)
        # A calendar cuts gaps into short parts: half of the nodes are as exact there.
        self.dev_integral = dev_integral or GaussLegendre(16 if model.calendar is None else 8)
        self.dropout, self._epoch_seed = dropout, 0
        self._hiding: Dropout | None = None  # of this epoch
        self._packed: dict[tuple[bool, torch.device], Packed] = {}

    def epoch_batches(self, batch_size: int, seed: int, epoch: int) -> list[NDArray[np.int64]]:
        """Also begin the epoch's random numbers."""
        self._epoch_seed, self._hiding = epoch_seed(seed, epoch), None
        return super().epoch_batches(batch_size, seed, epoch)

    def options(self) -> dict[str, Any]:
        """The dropout, where there is any."""
        return {"dropout": self.dropout} if self.dropout else {}

    def batch(self, index: NDArray[np.int64], epoch: int | None) -> Batch:
        """Complete streams, padded, in the model's precision."""
        key = epoch is None, self.device
        if key not in self._packed:
            self._packed[key] = Packed(self.dev if epoch is None else self.train, self.device)
        return self._packed[key].batch(index, self.model.dtype)

    def loss(self, batch: Batch, training: bool) -> tuple[Tensor, Tensor]:
        """-log p summed over streams."""
        integral = self.integral if training else self.dev_integral
        with self._dropping(training):
            loss = -self.model.batch_log_likelihood(batch, integral).sum()
        if training and self.model.calendar is not None:
            share = len(batch.durations) / max(len(self.train), 1)
            loss = loss + share * self.model.calendar.held_back()
        return loss, batch.mask.sum()

    @contextmanager
    def _dropping(self, training: bool) -> Iterator[None]:
        """Inside, units are hidden if that was asked for and this is a step of training."""
        if not (training and self.dropout and isinstance(self.model, StateSpace)):
            yield
            return
        self._hiding = self._hiding or Dropout(self.dropout, self._epoch_seed, self.device)
        self.model.dropout = self._hiding
        try:
            yield
        finally:
            self.model.dropout = None


def _check_dropout(dropout: float, model: Model) -> None:
    if not 0 <= dropout < 1:
        raise ModelError(f"dropout must be at least 0 and below 1, but is {dropout}.")
    if dropout and not isinstance(model, StateSpace):
        raise ModelError(f"dropout is for rd.StateSpace, not {type(model).__name__}: leave dropout= out.")
    if dropout and model.calendar is not None:
        raise ModelError("dropout and a calendar do not go together yet: leave dropout= or calendar= out.")


def add_streams(digest: hashlib.blake2b, streams: StreamSet, *names: str) -> None:
    """Add these arrays of streams to a digest."""
    for name in names:
        digest.update(np.ascontiguousarray(getattr(streams, name)).tobytes())


def epoch_seed(seed: int, epoch: int) -> int:
    """Of what is random in an epoch: another one for every epoch of every run."""
    return (seed + 1) * 1_000_000 + epoch


def dev_loss(objective: Objective, batch_size: int, share: slice = slice(None)) -> tuple[float, float]:
    """Summed loss on the dev streams, or on a share of their batches, and the number of events it is the sum over."""
    sums = torch.zeros(2, dtype=torch.float64, device=objective.device)
    with torch.no_grad():
        for index in objective.dev_batches(batch_size)[share]:
            sums = sums + torch.stack([x.to(sums) for x in objective.loss(objective.batch(index, None), False)])
    total, count = sums.tolist()
    return total, count
