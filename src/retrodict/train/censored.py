"""What objectives of proposals share: complete streams, censored afresh every epoch, with dev streams censored once."""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from retrodict.events.batch import batches_by_length
from retrodict.events.combine import observed_first
from retrodict.events.pairs import PackedPairs, PairBatch
from retrodict.events.stream_set import StreamSet
from retrodict.proposals.base import Proposal
from retrodict.random import split, stream_keys
from retrodict.train.objective import Objective, epoch_seed

_DEV_MASK = 999_999_937  # the seed of the one mask that dev streams keep


class CensoredObjective(Objective):
    """Batches of observed and missing events; masks and random keys are functions of seed and epoch alone."""

    def __init__(
        self, proposal: Proposal, train: StreamSet, dev: StreamSet, seed: int, scored: StreamSet | None = None
    ) -> None:
        """``scored`` are other streams to score in place of dev."""
        self.module = proposal
        self.train, self.dev, self.seed = train, dev, seed
        self.mechanism = proposal.missingness
        self.dtype = proposal.model.dtype
        self.scored = dev if scored is None else scored
        self._dev = observed_first(self.scored, self.mechanism.hide(self.scored, _DEV_MASK))
        self._packed: dict[tuple[bool, torch.device], PackedPairs] = {}
        self._censored: tuple[StreamSet, NDArray[np.bool_]] | None = None
        self._epoch = 0

    def censor(self, streams: StreamSet, epoch: int, *, fresh: bool = True) -> None:
        """Hide events of this epoch's streams, other ones than last time if ``fresh``."""
        mask_seed = epoch_seed(self.seed, epoch if fresh else 0)
        self._censored, self._epoch = observed_first(streams, self.mechanism.hide(streams, mask_seed)), epoch
        self._packed = {key: packed for key, packed in self._packed.items() if key[0]}

    def dev_batches(self, batch_size: int) -> list[NDArray[np.int64]]:
        """The scored streams once."""
        return batches_by_length(self.scored.lengths, batch_size)

    def batch(self, index: NDArray[np.int64], epoch: int | None) -> PairBatch:
        """Observed and missing events of some of the streams."""
        key = epoch is None, self.device
        if key not in self._packed:
            pair = self._dev if epoch is None else self._censored
            assert pair is not None
            self._packed[key] = PackedPairs(*pair, self.device)
        return self._packed[key].batch(index, self.dtype)

    def keys(self, batch: PairBatch, training: bool) -> Tensor:
        """Random keys for drawing particles of these streams, [B]: new ones every epoch, the same ones on dev."""
        keys = stream_keys(self.seed, batch.index.tolist()).to(batch.durations.device)
        return split(keys, 1 + self._epoch if training else 0)
