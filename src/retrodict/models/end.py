"""An atom at the end: the probability that an event is the last one of its stream.

Most prepared data end exactly at an event: streams were cut after so many events, or their end was taken from the last
row. Then the end T is random, and says something: no event in between was the last one. The model's story is that
after every event i, of type k_i at t_i and with the state that it leaves behind, the stream ends there with probability

    π_i = σ(a_n + b_k + c t_i + w · φ_i)

where n is the number of events so far (beyond the longest training stream n stays as it is), k = k_i, and φ_i are the
model's features just after the event. A stream of n events that ends at its last one has

    log p = Σ_i log λ_k(t_i) - ∫ Σ_k λ_k dt + Σ_{i<n} log(1 - π_i) + log π_n

The integral ends at t_n: nothing is survived after the last event. A stream that does not end at an event was cut at T
by something else; none of its events was the last one (all have 1 - π_i), and it survives to T.

π shares no parameter with λ, so that both are fitted apart, λ first (``models/end_fit.py``).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import torch
import torch.nn.functional as F
from numpy.typing import NDArray
from torch import Tensor, nn

from retrodict.events.batch import Batch
from retrodict.events.stream_set import StreamSet
from retrodict.events.suspicion import nearly_all_end_at_events

if TYPE_CHECKING:
    from retrodict.models.base import Model

MOST_COUNTS = 10_000  # numbers of events that are told apart


class EndAtom(nn.Module):
    """The log odds that an event is the last one, as a sum of four parts."""

    by_count: Tensor  # [N]: a_n of the n-th event, from n = 1; later events are as the N-th
    by_type: Tensor  # [K]
    by_time: Tensor  # []: per ``time_scale`` units of time since the start
    time_scale: Tensor  # []
    by_feature: Tensor  # [F]

    def __init__(
        self, by_count: Tensor, by_type: Tensor, by_time: Tensor, time_scale: Tensor, by_feature: Tensor
    ) -> None:
        super().__init__()
        self.register_buffer("by_count", by_count)
        self.register_buffer("by_type", by_type)
        self.register_buffer("by_time", by_time)
        self.register_buffer("time_scale", time_scale)
        self.register_buffer("by_feature", by_feature)

    @classmethod
    def empty(cls, counts: int, model: Model) -> EndAtom:
        """Zeros of the right shapes, for weights to be loaded into."""
        by_count, by_type, by_feature = (torch.zeros(n) for n in (counts, model.num_types, model.num_features))
        return cls(by_count, by_type, torch.zeros(()), torch.ones(()), by_feature)

    @classmethod
    def of_counts(cls, probabilities: NDArray[np.float64] | list[float], model: Model) -> EndAtom:
        """π by the number of events alone: ``probabilities`` [N] of the first, second ... N-th event and later ones."""
        atom = cls.empty(len(probabilities), model)
        atom.by_count = torch.logit(torch.as_tensor(probabilities, dtype=torch.float64), eps=1e-12)
        return atom.to(model.device, model.dtype)

    def log_odds(self, features: Tensor, types: Tensor, times: Tensor, counts: Tensor) -> Tensor:
        """log π / (1 - π) of events, [...] float64, after ``features`` [..., F]; ``counts`` include the event."""
        place = (counts - 1).clamp(0, len(self.by_count) - 1)
        slope = self.by_time.double() / self.time_scale.double()
        known = self.by_count[place].double() + self.by_type[types].double() + slope * times
        return known + (features @ self.by_feature.to(features.dtype)).double()

    def log_prob(self, features: Tensor, types: Tensor, times: Tensor, counts: Tensor, last: Tensor | bool) -> Tensor:
        """log π of events that were the ``last`` one, log(1 - π) of others, [...] float64."""
        odds = self.log_odds(features, types, times, counts)
        return F.logsigmoid(torch.where(torch.as_tensor(last, device=odds.device), odds, -odds))

    @torch.no_grad()
    def score(self, model: Model, batch: Batch) -> Tensor:
        """What the ends of complete streams add to their log p, [B]."""
        logs = F.logsigmoid(torch.where(last_events(batch), 1.0, -1.0) * self._batch_log_odds(model, batch))
        return torch.where(batch.mask, logs, 0.0).sum(1).to(model.dtype)

    @torch.no_grad()
    def expected(self, model: Model, batch: Batch) -> Tensor:
        """Σ π over the events of complete streams, [B]: on average as many streams end at an event."""
        return torch.where(batch.mask, torch.sigmoid(self._batch_log_odds(model, batch)), 0.0).sum(1)

    def _batch_log_odds(self, model: Model, batch: Batch) -> Tensor:
        counts = batch.mask.long().cumsum(1)
        return self.log_odds(features_after(model, batch), batch.types, batch.times, counts)


@torch.no_grad()
def features_after(model: Model, batch: Batch) -> Tensor:
    """The model's features just after each event of complete streams, [B, L, F]."""
    begin = torch.zeros(1, dtype=batch.gaps.dtype, device=batch.gaps.device)
    return model.drives_and_features(batch, begin)[2][:, 1:, 0]


def last_events(batch: Batch) -> Tensor:
    """Which event of each stream is its last one, exactly at its end, [B, L]; none of a stream that was cut."""
    place = torch.arange(batch.types.shape[1], device=batch.types.device)
    final = place == batch.mask.sum(1, keepdim=True) - 1
    return batch.mask & final & (batch.times == batch.durations[:, None])


def is_to_learn(streams: StreamSet) -> bool:
    """Whether streams are such that a model should learn their ends: nearly all end exactly at an event.

    Where few do, ends are taken for given: an event at T is then a coincidence. The others of nearly all were cut.
    """
    return nearly_all_end_at_events(streams)
