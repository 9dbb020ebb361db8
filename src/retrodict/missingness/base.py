"""The contract of a missingness mechanism p_miss: how likely each event of a complete stream goes missing.

A mechanism says the probability ρ_k(t) that an event of type k at time t goes missing, possibly given what
happened before (paper, section 5.1 and appendix C.5). A new mechanism is one new file with ``rates``; one
that looks at the preceding events also defines ``event_rates``.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any, ClassVar, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from retrodict.errors import ModelError
from retrodict.events.combine import combine
from retrodict.events.stream_set import StreamSet
from retrodict.random import stream_keys, uniform


class Context(NamedTuple):
    """What a mechanism may look at besides the time t since the start of the stream.

    ``start`` [...]: when the stream started, on the axis of its times (t + start is the time of day of dated streams,
    in the stream set's unit since its origin). ``stream`` [...]: its position in the set. ``state``: the model's state
    after the events so far, or None where streams are censored.
    """

    start: Tensor
    stream: Tensor
    state: Any = None


class Missingness(ABC):
    """p_miss(z | x ⊔ z) = Π_missing ρ · Π_observed (1 - ρ), equation (10) of the paper and C.5."""

    kind: ClassVar[str] = ""

    @abstractmethod
    def rates(self, t: Tensor, context: Context | None = None) -> Tensor:
        """ρ_k(t), the probability that an event of type k at time t [...] goes missing, [..., K]."""

    def bound(self, start: Tensor, stop: Tensor, context: Context | None = None) -> Tensor:
        """An upper bound of ρ_k over [start, stop], [..., K]; 1 unless a mechanism knows better."""
        return torch.ones_like(self.rates(start, context))

    def config(self) -> dict[str, Any]:
        """The constructor's arguments, as JSON can hold them; needed to save a proposal."""
        raise ModelError(f"a {type(self).__name__} mechanism cannot be saved: it does not define config().")

    def bind(self, types: Sequence[str]) -> Missingness:
        """The mechanism for a type vocabulary (rates given by name are looked up here)."""
        return self

    def event_rates(self, streams: StreamSet) -> NDArray[np.float64]:
        """ρ for each event of complete streams, [E]; overridden where it depends on preceding events."""
        starts = np.repeat(streams.starts, streams.lengths)
        context = Context(torch.as_tensor(starts), torch.as_tensor(streams.stream_of_event))
        rates = self.rates(torch.as_tensor(streams.event_times - starts), context)
        rows = torch.arange(streams.num_events)
        return rates[rows, torch.as_tensor(streams.event_types.copy())].numpy().astype(np.float64)

    def censor(self, streams: StreamSet, seed: int = 0) -> tuple[StreamSet, StreamSet]:
        """Hide events at random: (observed, missing). A stream's draw depends on its id, not its place."""
        mechanism = self.bind(streams.types)
        keys = np.repeat(stream_keys(seed, streams.ids).numpy(), streams.lengths)
        number = np.arange(streams.num_events) - np.repeat(streams.offsets[:-1], streams.lengths)
        draws = uniform(torch.as_tensor(keys), torch.as_tensor(number)).numpy()
        hidden = draws < mechanism.event_rates(streams)
        return streams.keep(~hidden), streams.keep(hidden)

    def log_prob(self, observed: StreamSet, missing: StreamSet) -> Tensor:
        """log p_miss of each stream, [N] float64; -inf where the mechanism cannot have done this."""
        complete, is_missing = combine(observed, missing)
        rates = self.bind(complete.types).event_rates(complete)
        with np.errstate(divide="ignore"):
            logs = np.log(np.where(is_missing, rates, 1 - rates))
        total = torch.zeros(len(complete), dtype=torch.float64)
        return total.index_add_(0, torch.as_tensor(complete.stream_of_event), torch.as_tensor(logs))
