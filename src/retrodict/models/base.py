"""The contract of a complete-data model: seven methods, five of them for the process, and what follows from them.

A model is an ``nn.Module`` with ``initial``, ``update``, ``intensity``, ``bound`` and ``compensator`` (and ``config``,
``from_streams``).
Everything else in the package (likelihood, simulation, filtering, smoothing, forecasting) is written
against these five. A new model is one new file that defines them and is listed in ``models/__init__.py``;
it may override ``terms`` where it can compute the likelihood of whole streams faster.

    class Constant(Model):
        kind = "constant"
        def initial(self, shape): return MyState(time=torch.zeros(shape, dtype=torch.float64))
        def update(self, state, type, time): return MyState(time)
        def intensity(self, state, t): ...      # [..., K]
        def bound(self, state, start, stop): ...        # [..., K], never below the intensity in between
        def compensator(self, state, start, stop): ...  # [..., K]

Times given to a model are float64, since the start of the stream.
"""

from __future__ import annotations

import copy
import hashlib
import json
import os
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, ClassVar, NamedTuple, Self

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from retrodict.errors import ModelError
from retrodict.events.batch import Batch, iterate_batches
from retrodict.events.stream import EventStream
from retrodict.events.stream_set import StreamSet, describe_types
from retrodict.models.calendar import Calendar
from retrodict.models.calendar_terms import calendar_terms
from retrodict.models.end import EndAtom
from retrodict.models.quadrature import Integral, Speeds
from retrodict.models.saved import Saved
from retrodict.models.start import StartAtom
from retrodict.models.tensors import weights_digest

MODEL_FILES = Saved("model")
TIME_WAS_UP = "time was up"  # why training ended that was not done
LONGEST = "longest_duration"  # of the training streams, in the training record


class Terms(NamedTuple):
    """The pieces of log p (equation B.2 of the paper) for a batch.

    ``log_intensities`` [B, L]: log λ_k(t) of each event's own type at its own time (left limit), zero at
    padding. ``compensators`` [B, L+1]: ∫ Σ_k λ_k over each gap.
    """

    log_intensities: Tensor
    compensators: Tensor


class Model(nn.Module, ABC):
    """A multivariate point process p_model over complete streams."""

    kind: ClassVar[str]
    num_types: int
    types: tuple[str, ...] | None = None
    time_unit: str | None = None
    start_atom: StartAtom | None
    end_atom: EndAtom | None
    calendar: Calendar | None  # what multiplies intensities of dated streams; methods here speak of the rest
    learning_rate: ClassVar[float] = 1e-3
    exact_integrals: ClassVar[bool] = False  # whether ``compensator`` is in closed form: then samplers use it

    def __init__(self) -> None:
        super().__init__()
        self.start_atom = None
        self.end_atom = None
        self.calendar = None
        self.training_record: dict[str, Any] = {}

    @abstractmethod
    def initial(self, shape: Sequence[int]) -> Any:
        """The state of an empty history at the start of a stream; fields have shape [*shape, ...]."""

    @abstractmethod
    def update(self, state: Any, type: Tensor, time: Tensor) -> Any:
        """The state after reading event type@time; both have the state's shape [...]."""

    @abstractmethod
    def intensity(self, state: Any, t: Tensor) -> Tensor:
        """λ_k(t) given the history, [..., K]; t is [...] or [..., N] (then the result is [..., N, K])."""

    @abstractmethod
    def bound(self, state: Any, start: Tensor, stop: Tensor) -> Tensor:
        """A guaranteed upper bound of λ_k over [start, stop] if no event happens there, [..., K]."""

    @abstractmethod
    def compensator(self, state: Any, start: Tensor, stop: Tensor) -> Tensor:
        """∫ λ_k over [start, stop] if no event happens there, [..., K]."""

    def drive(self, state: Any, t: Tensor) -> Tensor:
        """What goes into λ_k = activate(drive_k): v_k · h(t) of a neural model, in general a statistic of the past.

        A smoothing proposal adds what it knows of the future to this. Shapes as for ``intensity``.
        """
        return inverse_softplus(self.intensity(state, t))

    def speeds(self, state: Any) -> Speeds | None:
        """How fast intensities move until the next event, [..., S] each: integrals then have nodes where they do.

        None, as here, if that is not known: then they have as many nodes as asked for, spread over the whole piece.
        """
        return None

    def batch_speeds(self, batch: Batch) -> Speeds | None:
        """The same in every gap of complete streams, [B, L+1, S] each."""
        found = [self.speeds(state) for state, _, _ in self.gaps(batch)]
        known = [speeds for speeds in found if speeds is not None]
        return Speeds(*(torch.stack(parts, 1) for parts in zip(*known, strict=True))) if known else None

    @property
    def num_features(self) -> int:
        """How many numbers ``features`` gives."""
        return self.num_types

    def features(self, state: Any, t: Tensor) -> Tensor:
        """What is known of the past at t, for a network to read: h(t) of a neural model.

        t is [...] or [..., N], and the result [..., num_features] or [..., N, num_features].
        """
        return self.drive(state, t).clamp(min=-30)

    def feature_range(self, state: Any, start: Tensor, stop: Tensor) -> tuple[Tensor, Tensor]:
        """Guaranteed bounds of each feature over [start, stop] if no event happens there, [..., num_features] each.

        Only proposals that let past and future interact ask for it.
        """
        raise ModelError(f"{type(self).__name__} cannot say within which bounds its features stay: no feature_range.")

    def drive_bound(self, state: Any, start: Tensor, stop: Tensor) -> Tensor:
        """A guaranteed upper bound of the drive over [start, stop], [..., K]."""
        return inverse_softplus(self.bound(state, start, stop))

    def activate(self, drive: Tensor) -> Tensor:
        """f_k of equation (2): intensities from drives [..., K]; increasing."""
        return F.softplus(drive)

    def log_activate(self, drive: Tensor, types: Tensor | None = None) -> Tensor:
        """log f_k, safe where it underflows, [..., K]; or, with ``types`` [...], of one drive for each type."""
        return log_softplus(drive)

    def drives(self, batch: Batch, positions: Tensor) -> tuple[Tensor, Tensor]:
        """Drives at every event and inside every gap of complete streams.

        ``positions`` [Q] are fractions of each gap, [Q] or, if gaps differ, [B, L+1, Q]. Returns [B, L, K] at the
        events (left limits) and [B, L+1, Q, K] inside the gaps; padding holds finite numbers that mean nothing.
        """
        at_ends, inside = [], []
        for i, (state, start, end) in enumerate(self.gaps(batch)):
            inside.append(self.drive(state, _between(start, end, positions, i)))
            at_ends.append(self.drive(state, end))
        return torch.stack(at_ends, 1)[:, :-1], torch.stack(inside, 1)

    def drives_and_features(self, batch: Batch, positions: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """``drives``, and features inside every gap and at its end, [B, L+1, Q+1, num_features]."""
        features = [
            self.features(state, torch.cat([_between(start, end, positions, i), end[:, None]], 1))
            for i, (state, start, end) in enumerate(self.gaps(batch))
        ]
        return *self.drives(batch, positions), torch.stack(features, 1)

    def gaps(self, batch: Batch) -> Iterator[tuple[Any, Tensor, Tensor]]:
        """For each gap of complete streams the state in it, its start [B] and its end [B]."""
        state = self.initial(batch.durations.shape)
        previous = torch.zeros_like(batch.durations)
        edges = [*batch.times.unbind(1), batch.durations]
        for i, time in enumerate(edges):
            yield state, previous, time
            if i < len(edges) - 1:
                state = self.update(state, batch.types[:, i], time)
            previous = time

    def gap_states(self, batch: Batch) -> Any:
        """The state in every gap of complete streams, one row after the other: [B (L+1), ...]."""
        states = [state for state, _, _ in self.gaps(batch)]
        return type(states[0])(*(torch.stack(field, 1).flatten(0, 1) for field in zip(*states, strict=True)))

    def gap_drives(self, states: Any, times: Tensor) -> Tensor:
        """Drives of N states at times [N, Q], [N, Q, K]."""
        return self.drive(states, times)

    def scored_terms(self, batch: Batch, integral: Integral | None = None) -> Terms:
        """``terms``, with the calendar where the model has one."""
        return self.terms(batch, integral) if self.calendar is None else Terms(*calendar_terms(self, batch, integral))

    @abstractmethod
    def config(self) -> dict[str, Any]:
        """The constructor's arguments, as JSON can hold them."""

    @classmethod
    @abstractmethod
    def from_streams(cls, streams: StreamSet) -> Model:
        """A model to start training from, sized and scaled for these complete streams."""

    @contextmanager
    def in_training(self, train: StreamSet) -> Iterator[None]:
        """Inside, parameters have the form in which gradient steps on these streams move them: here, their own."""
        yield

    def solve(self, train: StreamSet, dev: StreamSet) -> dict[str, Any] | None:
        """Fit the model in place where its maximum can be computed, and say what is to be recorded of that.

        None, as here, lets ``rd.fit`` climb by gradient steps.
        """
        return None

    def save(self, directory: str | os.PathLike[str]) -> Path:
        """Write the model into a directory (made if need be), as safetensors and JSON; returns the directory."""
        about = {
            "kind": self.kind,
            "config": self.config(),
            "types": None if self.types is None else list(self.types),
            "time_unit": self.time_unit,
            "start_atom": self.start_atom is not None,
            "end_atom": None if self.end_atom is None else len(self.end_atom.by_count),
            "calendar": None if self.calendar is None else self.calendar.config(),
            "training": self.training_record,
        }
        return MODEL_FILES.write(directory, about, self.state_dict())

    def digest(self) -> str:
        """A name that no other model has: from its kind, its types and its weights."""
        return self.digest_later()()

    def digest_later(self) -> Callable[[], str]:
        """The digest of the model as it is now, worked out when it is called, which needs no GPU any more."""
        known = [] if self.calendar is None else [self.calendar.config()]
        about = json.dumps([self.kind, self.types, self.time_unit, *known])
        weights = {name: value.detach().cpu() for name, value in self.state_dict().items()}
        return lambda: hashlib.blake2b((about + weights_digest(weights)).encode(), digest_size=8).hexdigest()

    def adapt(self, streams: StreamSet) -> None:
        """Set what follows directly from training data: type names, time unit, start atom."""
        self.check_types(streams)
        self.types = self.types or streams.types
        self.time_unit = self.time_unit or streams.axis.unit
        atom = StartAtom.from_streams(streams)
        self.start_atom = None if atom is None else atom.to(self.device, self.dtype)

    def endless(self) -> Self:
        """The same model without an end atom, for streams that are still going on; both share their weights."""
        if self.end_atom is None:
            return self
        other = copy.copy(self)
        other._modules = {**self._modules, "end_atom": None}
        return other

    @property
    def dtype(self) -> torch.dtype:
        """The precision the model computes in."""
        return next(self.parameters()).dtype

    @property
    def device(self) -> torch.device:
        """Where the model lives."""
        return next(self.parameters()).device

    def extra_repr(self) -> str:
        """For printing: how many types, which, and the unit of time."""
        named = "" if self.types is None else f" ({describe_types(self.types, 4)})"
        return f"{self.num_types} types{named}" + (f", times in {self.time_unit}s" if self.time_unit else "")

    def terms(self, batch: Batch, integral: Integral | None = None) -> Terms:
        """The likelihood's terms from the five methods alone, event by event.

        Integrals are those of ``compensator``; models that override this method may let ``integral`` choose.
        """
        rows = torch.arange(len(batch.durations), device=batch.types.device)
        logs, areas = [], []
        for i, (state, start, end) in enumerate(self.gaps(batch)):
            areas.append(self.compensator(state, start, end).sum(-1))
            if i < batch.types.shape[1]:
                rate = self.intensity(state, end)[rows, batch.types[:, i]]
                logs.append(torch.where(batch.mask[:, i], rate, 1.0).log())
        empty = torch.zeros(len(rows), 0, dtype=self.dtype, device=self.device)
        return Terms(torch.stack(logs, 1) if logs else empty, torch.stack(areas, 1))

    def step_memory(self, streams: int, events: int) -> float:
        """About how many bytes a training step on ``streams`` of ``events`` each takes: what gradients need is kept."""
        return 20.0 * streams * (events + 1) * (self.num_features + self.num_types) * self.dtype.itemsize

    def batch_log_likelihood(
        self, batch: Batch, integral: Integral | None = None, *, score_first: bool = True, score_end: bool = True
    ) -> Tensor:
        """log p(stream) for each stream of a batch, [B]; see ``log_likelihood``."""
        logs, areas = self.scored_terms(batch, integral)
        result = -areas.sum(1)
        if self.end_atom is not None and score_end:
            result = result + self.end_atom.score(self, batch)
        if not score_first:
            return result + logs[:, 1:].sum(1)
        result = result + logs.sum(1)
        if self.start_atom is None:
            return result
        none = self.start_atom.log_none()
        if not logs.shape[1]:
            return result + none
        at_start = batch.mask[:, 0] & (batch.times[:, 0] == 0)
        by_atom = self.start_atom.log_type(batch.types[:, 0]) - logs[:, 0]
        return result + torch.where(at_start, by_atom, none)

    def log_likelihood(
        self,
        streams: StreamSet | EventStream,
        *,
        integral: Integral | None = None,
        batch_size: int = 256,
        score_first: bool = True,
        score_end: bool = True,
    ) -> Tensor:
        """log p(stream) for each stream, [N], in nats: eqn:logpmodel of the paper.

        A first event at the very start of a stream is scored by the start atom where the model has one, and where it
        has an end atom, each event by whether it was the last one. ``score_first=False`` leaves the first event's own
        factor out (its effect on the rest stays), as papers do that treat it as given, and ``score_end=False`` what
        the end atom adds, to compare models that have one with others. Gradients flow, but not through the end.
        """
        streams = self.matched(streams)
        batches = list(iterate_batches(streams, batch_size, dtype=self.dtype, device=self.device))
        if not batches:
            return torch.zeros(0, dtype=self.dtype, device=self.device)
        scored = {"score_first": score_first, "score_end": score_end}
        values = torch.cat([self.batch_log_likelihood(b, integral, **scored) for b in batches])
        return values[torch.cat([b.index for b in batches]).argsort()]

    def check_types(self, streams: StreamSet) -> None:
        """Refuse streams over another number of types."""
        if streams.num_types != self.num_types:
            raise ModelError(
                f"the model has {self.num_types} types but the streams have {streams.num_types} "
                f"({describe_types(streams.types)}). Build the model with num_types={streams.num_types}, or "
                "read the streams with types=[...] listing the model's type names."
            )

    def matched(self, streams: StreamSet | EventStream) -> StreamSet:
        """The streams, or one alone, over this model's types and in its unit of time (where both sides state one)."""
        if isinstance(streams, EventStream):
            streams = StreamSet([streams], types=self.types or [str(k) for k in range(self.num_types)])
        if not isinstance(streams, StreamSet):
            raise ModelError(f"expected a stream set, not a {type(streams).__name__}. Build one with rd.StreamSet.")
        if self.calendar is not None and not streams.axis.is_calendar:
            raise ModelError(
                "the model knows hours and days, and these streams have no dates. Read them from a table with dates, "
                "or fit a model without a calendar (calendar=False, --no-calendar)."
            )
        if self.calendar is not None and self.calendar.zone is not None and streams.axis.timezone is None:
            zone = self.calendar.zone
            raise ModelError(
                f"the model knows hours and days by the clocks of {zone}, and these dates have no time zone. Read them "
                f"with theirs: timezone={zone!r} if it is the same."
            )
        if self.time_unit is not None and streams.axis.unit is not None:
            streams = streams.with_unit(self.time_unit)
        if self.types is not None and not (
            self.types == streams.types or _are_indices(self.types) or _are_indices(streams.types)
        ):
            return streams.with_types(self.types)
        self.check_types(streams)
        return streams


def _between(start: Tensor, end: Tensor, positions: Tensor, gap: int) -> Tensor:
    """Times [B, Q] at the fractions ``positions`` [Q] or, for each gap, [B, L+1, Q]."""
    share = positions if positions.dim() == 1 else positions[:, gap]
    return start[:, None] + (end - start)[:, None] * share.to(start.dtype)


def _are_indices(types: Sequence[str]) -> bool:
    """Whether type names are but 0, 1, 2 ...: given by index, not by name."""
    return list(types) == [str(k) for k in range(len(types))]


def inverse_softplus(y: Tensor) -> Tensor:
    """x with softplus(x) = y; -inf where y is zero."""
    return y + torch.log(-torch.expm1(-y))


def log_softplus(x: Tensor) -> Tensor:
    """log softplus(x), which is x itself far below zero."""
    low = -15.0 if x.dtype == torch.float32 else -35.0
    return torch.where(x < low, x, F.softplus(x.clamp(min=low - 5)).log())
