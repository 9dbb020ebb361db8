"""The contract of a missingness mechanism p_miss: the probability that each event of a complete stream goes missing.

A mechanism says the probability ρ_k(t) that an event of type k at time t goes missing, possibly given what
happened before (paper, section 5.1 and appendix C.5). A new mechanism is one new file with ``rates``, and

- ``bound``, where it knows a better upper bound than 1: candidates are thinned by it;
- ``breaks``, where ρ jumps or bends within a stretch of time: integrals are taken piece by piece between them;
- ``initial`` and ``update``, where it looks at the preceding events, observed or missing: a summary of them that
  every particle carries along (``Context.history``);
- ``bind``, where it knows types by name or times in a unit;
- ``depends_on_time_alone``, where ρ depends on nothing but the time and which stream it is: engines other than torch
  then take it (``pieces.py``);
- ``parameters``, where some of it can be learned.

``Either`` is several mechanisms at work: an event is seen only if it survives all of them.
"""

from __future__ import annotations

import itertools
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import reduce
from typing import Any, ClassVar, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from retrodict.errors import ModelError
from retrodict.events.batch import Batch, iterate_batches
from retrodict.events.combine import combine
from retrodict.events.stream_set import StreamSet
from retrodict.random import stream_keys, uniform

History = tuple[Tensor, ...]


class Context(NamedTuple):
    """What a mechanism may look at besides the time t since the start of the stream.

    ``start`` [...]: when the stream started, on the axis of its times (t + start is the time of day of dated streams:
    they count in their unit since 1970-01-01 UTC). ``stream`` [...]: a number that follows from the stream's id alone.
    ``state``: the model's state after the events so far, or None while streams are censored. ``end`` [...]: when the
    stream ends, since its start. ``history``: the mechanism's own summary of the events so far, tensors [..., *] each.
    """

    start: Tensor
    stream: Tensor
    state: Any = None
    end: Tensor | None = None
    history: History = ()

    def over(self, t: Tensor) -> Context:
        """The same context for times t of more dimensions: all but ``state`` broadcast against them."""
        own = self.start.dim()
        if t.dim() == own:
            return self
        wide = lambda x: x.reshape(*x.shape[:own], *[1] * (t.dim() - own), *x.shape[own:])  # noqa: E731
        end = None if self.end is None else wide(self.end)
        return Context(wide(self.start), wide(self.stream), self.state, end, tuple(wide(x) for x in self.history))


class Missingness(ABC):
    """p_miss(z | x ⊔ z) = Π_missing ρ · Π_observed (1 - ρ), eqn:missfactors of the paper, C.5."""

    kind: ClassVar[str] = ""

    @abstractmethod
    def rates(self, t: Tensor, context: Context | None = None) -> Tensor:
        """ρ_k(t), the probability that an event of type k at time t [...] goes missing, [..., K].

        The context's tensors broadcast against t.
        """

    def bound(self, start: Tensor, stop: Tensor, context: Context | None = None) -> Tensor:
        """An upper bound of ρ_k over [start, stop], [..., K]; 1 unless a mechanism knows better."""
        return torch.ones_like(self.rates(start, context))

    def breaks(self, start: Tensor, stop: Tensor, context: Context | None = None) -> Tensor | None:
        """Times inside (start, stop) [...] where some ρ_k jumps or bends, in order, [..., J]; None if there are none.

        Rows that have fewer are filled up with ``stop``.
        """
        return None

    def initial(self, shape: Sequence[int], device: torch.device | str = "cpu") -> History:
        """The summary of an empty history, tensors [*shape, ...]; () unless the mechanism looks at past events."""
        return ()

    def update(self, history: History, type: Tensor, time: Tensor) -> History:
        """The summary after event type@time, [...] each, observed or missing."""
        return history

    @property
    def is_constant(self) -> bool:
        """Whether ρ is the same at all times and after all histories."""
        return False

    @property
    def depends_on_time_alone(self) -> bool:
        """Whether ρ depends on the time, and the stream's start, end and id, but on no event and no model."""
        return self.is_constant

    def parameters(self) -> Iterator[nn.Parameter]:
        """The parameters that can be learned."""
        return iter(())

    def config(self) -> dict[str, Any]:
        """The constructor's arguments, as JSON can hold them; needed to save a proposal."""
        raise ModelError(f"a {type(self).__name__} mechanism cannot be saved: it does not define config().")

    @classmethod
    def from_config(cls, config: dict[str, Any]) -> Missingness:
        """The mechanism that ``config`` described."""
        return cls(**config)

    def bind(self, types: Sequence[str], unit: str | None = None) -> Missingness:
        """The mechanism for a type vocabulary and a unit of time (what is given by name is looked up here)."""
        return self

    def in_zone(self, zone: str | None) -> Missingness:
        """The mechanism with dates and hours that were given without a zone in that of streams; itself without any."""
        return self

    def on(self, streams: StreamSet) -> Missingness:
        """The mechanism for the zone, the types and the unit of streams."""
        return self.in_zone(streams.axis.timezone).bind(streams.types, streams.axis.unit)

    def redrawn(self, seed: int) -> Missingness:
        """Another of the mechanisms that it stands for; itself, unless it is a prior over many."""
        return self

    def meaning(self) -> Any:
        """What the mechanism, bound to types and a unit, says, in lists and numbers: equal if two say the same."""
        return [self.kind, self.config()]

    def __mul__(self, other: Missingness) -> Either:
        return Either(self, other)

    def contexts(self, batch: Batch) -> Context:
        """The context of each gap of complete streams, leading dimensions [B, L+1]; without a model's state."""
        facts = (batch.starts, batch.ids, batch.durations)
        start, stream, end = (fact[:, None].expand(batch.gaps.shape) for fact in facts)
        history = self.initial((len(batch.starts),), batch.starts.device)
        if not history:
            return Context(start, stream, None, end)
        steps = [history]
        for type, time in zip(batch.types.unbind(1), batch.times.unbind(1), strict=True):
            history = self.update(history, type, time)
            steps.append(history)
        return Context(start, stream, None, end, tuple(torch.stack(field, 1) for field in zip(*steps, strict=True)))

    def batch_rates(self, batch: Batch) -> Tensor:
        """ρ of each event of complete streams, [B, L]; padding holds arbitrary numbers. Gradients flow."""
        times = torch.cat([batch.times, batch.durations[:, None]], 1)
        rates = self.rates(times, self.contexts(batch))[:, :-1]
        return rates.gather(-1, batch.types[..., None])[..., 0]

    @torch.no_grad()
    def event_rates(self, streams: StreamSet) -> NDArray[np.float64]:
        """ρ for each event of complete streams, [E]."""
        result = np.zeros(streams.num_events)
        for batch in iterate_batches(streams, 1024, dtype=torch.float64):
            mask, index = batch.mask.numpy(), batch.index.numpy()
            where = streams.offsets[index][:, None] + np.arange(mask.shape[1])
            result[where[mask]] = self.batch_rates(batch).cpu().numpy()[mask]
        return result

    def censor(self, streams: StreamSet, seed: int = 0) -> tuple[StreamSet, StreamSet]:
        """Hide events at random: (observed, missing). A stream's draw depends on its id, not its place."""
        hidden = self.hide(streams, seed)
        return streams.keep(~hidden), streams.keep(hidden)

    def hide(self, streams: StreamSet, seed: int = 0) -> NDArray[np.bool_]:
        """A mask [E] of the events that ``censor`` hides."""
        mechanism = self.on(streams)
        keys = np.repeat(stream_keys(seed, streams.ids).numpy(), streams.lengths)
        number = np.arange(streams.num_events) - np.repeat(streams.offsets[:-1], streams.lengths)
        draws = uniform(torch.as_tensor(keys), torch.as_tensor(number)).numpy()
        return draws < mechanism.event_rates(streams)

    def log_prob(self, observed: StreamSet, missing: StreamSet) -> Tensor:
        """log p_miss of each stream, [N] float64; -inf where the mechanism cannot have done this."""
        complete, is_missing = combine(observed, missing)
        rates = self.on(complete).event_rates(complete)
        with np.errstate(divide="ignore"):
            logs = np.log(np.where(is_missing, rates, 1 - rates))
        total = torch.zeros(len(complete), dtype=torch.float64)
        return total.index_add_(0, torch.as_tensor(complete.stream_of_event), torch.as_tensor(logs))


def history_of(context: Context | None) -> History:
    """The summary of the events so far, for a mechanism that needs one."""
    if context is None or not context.history:
        raise ModelError("a mechanism that looks at preceding events needs them: give a context with its history.")
    return context.history


def between(times: Tensor, start: Tensor, stop: Tensor) -> Tensor | None:
    """The ``times`` [..., J] that lie inside (start, stop) [...], as ``breaks`` gives them."""
    times, start, stop = torch.broadcast_tensors(times, start[..., None], stop[..., None])
    inside = (times > start) & (times < stop)
    most = int(inside.sum(-1).max()) if inside.numel() else 0
    return torch.where(inside, times, stop).sort(-1).values[..., :most] if most else None


class Either(Missingness):
    """ρ = 1 - Π (1 - ρ_i): an event goes missing for one reason or another, independently; also written a * b."""

    kind = "either"
    kinds: ClassVar[Mapping[str, type[Missingness]]] = {}  # what parts may be; set where all mechanisms are listed

    def __init__(self, *parts: Missingness) -> None:
        if not parts or not all(isinstance(part, Missingness) for part in parts):
            raise ModelError("Either takes mechanisms, such as Either(ByType(0.1), Windows([(8, 9)])).")
        self.parts: tuple[Missingness, ...] = tuple(
            p for part in parts for p in (part.parts if isinstance(part, Either) else (part,))
        )
        self.sizes = [len(part.initial((1,))) for part in self.parts]

    def config(self) -> dict[str, Any]:
        """Those of its parts."""
        return {"parts": [{"kind": part.kind, "config": part.config()} for part in self.parts]}

    @classmethod
    def from_config(cls, config: dict[str, Any]) -> Either:
        """Each part by its kind."""
        return cls(*(cls.kinds[part["kind"]].from_config(part["config"]) for part in config["parts"]))

    def bind(self, types: Sequence[str], unit: str | None = None) -> Either:
        """All of them bound."""
        return Either(*(part.bind(types, unit) for part in self.parts))

    def in_zone(self, zone: str | None) -> Either:
        """All of them."""
        parts = [part.in_zone(zone) for part in self.parts]
        return self if all(a is b for a, b in zip(parts, self.parts, strict=True)) else Either(*parts)

    def meaning(self) -> Any:
        """That of its parts, in whichever order they were given."""
        return [self.kind, *sorted((part.meaning() for part in self.parts), key=repr)]

    @property
    def is_constant(self) -> bool:
        """Whether all are."""
        return all(part.is_constant for part in self.parts)

    @property
    def depends_on_time_alone(self) -> bool:
        """Whether all do."""
        return all(part.depends_on_time_alone for part in self.parts)

    def parameters(self) -> Iterator[nn.Parameter]:
        """Those of its parts."""
        return itertools.chain.from_iterable(part.parameters() for part in self.parts)

    def rates(self, t: Tensor, context: Context | None = None) -> Tensor:
        """1 - Π (1 - ρ_i), [..., K]."""
        return self._together(context, lambda part, own: part.rates(t, own))

    def bound(self, start: Tensor, stop: Tensor, context: Context | None = None) -> Tensor:
        """The same of the bounds, [..., K]."""
        return self._together(context, lambda part, own: part.bound(start, stop, own).clamp(max=1.0)) * (1 + 1e-12)

    def breaks(self, start: Tensor, stop: Tensor, context: Context | None = None) -> Tensor | None:
        """Those of any."""
        each = [part.breaks(start, stop, own) for part, own in self._contexts(context)]
        some = [times for times in each if times is not None]
        return between(torch.cat(some, -1), start, stop) if some else None

    def initial(self, shape: Sequence[int], device: torch.device | str = "cpu") -> History:
        """One after the other."""
        return tuple(field for part in self.parts for field in part.initial(shape, device))

    def update(self, history: History, type: Tensor, time: Tensor) -> History:
        """Each its own."""
        own = self._split(history)
        return tuple(f for part, h in zip(self.parts, own, strict=True) for f in part.update(h, type, time))

    def _together(self, context: Context | None, ask: Callable[[Missingness, Context | None], Tensor]) -> Tensor:
        seen = (1 - ask(part, own) for part, own in self._contexts(context))
        return 1 - reduce(torch.mul, seen)

    def _contexts(self, context: Context | None) -> list[tuple[Missingness, Context | None]]:
        if context is None:
            return [(part, None) for part in self.parts]
        own = self._split(context.history)
        return [(part, context._replace(history=h)) for part, h in zip(self.parts, own, strict=True)]

    def _split(self, history: History) -> list[History]:
        fields = iter(history)
        return [tuple(itertools.islice(fields, size)) for size in self.sizes]

    def __repr__(self) -> str:
        return " * ".join(repr(part) for part in self.parts)
