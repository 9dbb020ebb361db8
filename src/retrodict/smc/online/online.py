"""Imputation of streams that are still going on: events are fed as they arrive, questions are answered at any time.

Particles are carried on by the filter (section 3.1): an update draws the missing events up to the new one, weighs,
perhaps resamples, and forgets everything but what model and mechanism remember. Its cost does not depend on how long
the past is. Copies of the particles are kept from at least one lag ago. A question about the recent past starts from
them and imputes anew what happened since, with the proposal that was given: a smoother then reads all that was observed
up to now. A question about the future goes on from the particles themselves.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from retrodict.errors import DataError, ModelError, show
from retrodict.events.batch import batches_by_length
from retrodict.events.io.moments import Moment
from retrodict.events.stream import EventStream
from retrodict.events.stream_set import StreamSet
from retrodict.events.time_axis import TimeAxis
from retrodict.missingness.base import Context, Missingness
from retrodict.proposals.base import Proposal
from retrodict.proposals.filtering import Filtering
from retrodict.smc.engines.base import TorchEngine
from retrodict.smc.online.arrivals import Arrival, Checker, Events, Kept, Line, Name
from retrodict.smc.online.carry import Carried, Carrier, pick_engine, segments
from retrodict.smc.online.folder import read_online, save_online
from retrodict.smc.online.forecast import Forecast, look_ahead
from retrodict.smc.online.pool import Pool
from retrodict.smc.online.window import look_back, look_now
from retrodict.smc.options import Options
from retrodict.smc.posterior import Posterior


class Online:
    """Particles of streams that are still going on.

    ``proposal`` is a ``Filtering``, or a ``Smoothing`` with which the recent past is imputed anew when it is asked
    for. The recent past is the last ``lag`` units of time (those of the model). Times are numbers in the model's unit;
    with ``axis=streams.axis`` of dated streams they may be dates. Other options are those of ``rd.impute``;
    ``max_events`` bounds the missing events between two observed ones.

    A stream that is fed has not ended: what a model knows of ends (its end atom) is left out here.

    A stream's answers depend on its name, the seed and what was fed of it: not on the other streams, nor on how many
    events were fed at once.

    >>> import retrodict as rd
    >>> missing = rd.ByType([1.0, 0.0])
    >>> filtering = rd.Filtering(rd.Hawkes([0.2, 0.1], [[0.0, 0.9], [0.0, 0.0]], 2.0), missing)
    >>> online = rd.Online(filtering, lag=10.0, particles=1000)
    >>> online.feed({"a": [(3.0, 1)], "b": []}, until=5.0, start=0.0)
    >>> online.feed({"a": [(7.0, 1)]})
    >>> [f"{p:.1f}" for p in online.posterior().probability(0, start=2.0, end=3.0)]
    ['0.4', '0.1']
    >>> future = online.forecast(ahead=1.0)
    >>> [f"{p:.1f}" for p in future.observed.probability(1)]
    ['0.4', '0.2']
    """

    def __init__(
        self,
        proposal: Proposal,
        lag: float,
        particles: int = 200,
        seed: int = 0,
        resample: str | None = "systematic",
        ess_threshold: float = 0.5,
        engine: str = "auto",
        *,
        missing: Missingness | None = None,
        axis: TimeAxis | None = None,
        islands: int | None = None,
        max_events: int = 100_000,
    ) -> None:
        if isinstance(lag, bool) or not isinstance(lag, int | float) or not (np.isfinite(lag) and lag > 0):
            raise ModelError(f"lag must be a positive number, in the model's unit of time, but is {lag!r}.")
        Options.of(particles, resample, ess_threshold, None, None, max_events)
        islands = (2 if particles % 2 == 0 else 1) if islands is None else islands
        if not (isinstance(islands, int) and islands > 0 and particles % islands == 0):
            raise ModelError(f"islands must divide the {particles} particles evenly, but is {islands!r}.")
        options = Options.of(particles // islands, resample, ess_threshold, None, None, max_events)
        proposal = proposal.endless().ready(missing)
        model = proposal.model
        axis = axis or TimeAxis()
        self.axis = TimeAxis(model.time_unit or axis.unit, axis.origin, axis.timezone)
        if model.calendar is not None and not self.axis.is_calendar:
            raise ModelError(
                "the model knows hours and days: say which dates times stand for, with axis=streams.axis of dated "
                "streams."
            )
        there = proposal.missingness.in_zone(self.axis.timezone)
        self.proposal = proposal if there is proposal.missingness else proposal.given(there)
        _refuse_ends(self.proposal)
        filtering = proposal if isinstance(proposal, Filtering) else Filtering(model, self.proposal.missingness)
        self.lag, self.particles, self.islands, self.seed = float(lag), particles, islands, int(seed)
        self.resample, self.ess_threshold, self.max_events = resample, ess_threshold, max_events
        if engine not in ("auto", "native", "torch"):
            raise ModelError(f"unknown engine {engine!r}. Choose one of auto, native, torch.")
        carrying = pick_engine(engine, filtering, options)
        self.engine = carrying.name
        self._carrier = Carrier(carrying, filtering, options, islands, self.seed, self.lag)
        self._pools = Kept(*(Pool(model, filtering.missingness, islands, options.particles) for _ in range(3)))
        self._lines: dict[Name, Line] = {}
        self._free: list[int] = []
        self._lock = threading.RLock()

    def feed(
        self,
        events: Events | StreamSet | EventStream | None = None,
        *,
        until: Moment | Mapping[Name, Moment] | None = None,
        start: Moment | Mapping[Name, Moment] | None = None,
    ) -> None:
        """Take in what was observed, in the order in which it happened; all of it, or nothing where it is refused.

        ``events`` are pairs of time and type by the name of the stream, ``{"taxi-7": [(9.5, "pick-up")]}``, or streams.
        ``until`` says that nothing more has happened up to then: in all streams, or by name. ``start`` says when new
        streams began to be watched. Streams say both by their own starts and ends. Events have to come later than what
        is known of their stream.
        """
        self._take(events or {}, until, start, lambda _: None)

    def _take(self, events: Any, until: Any, start: Any, before: Callable[[list[Arrival]], None]) -> list[Arrival]:
        """Take in what was observed once all is worked out and ``before`` has not raised; returns what is new."""
        with self._lock:
            arrivals = Checker(self.proposal.model, self.axis, self._lines).read(events, until, start)
            lines = [self._lines.get(arrival.name) or Line(arrival.start) for arrival in arrivals]
            ahead = [
                segments(line.marks.head.time, arrival, self.lag) for line, arrival in zip(lines, arrivals, strict=True)
            ]
            free = self._room(lines)
            some = np.array([i for i, own in enumerate(ahead) if own.edges], dtype=np.int64)
            carried = []
            for group in batches_by_length(np.array([len(ahead[i].edges) for i in some]), self._at_once):
                which = some[group]
                names = [arrivals[i].name for i in which]
                now = self._carrier.carry(
                    names, [lines[i] for i in which], [ahead[i] for i in which], self._pools, self.axis.since_1970
                )
                carried.append(now)
            before(arrivals)
            self._settle(arrivals, lines, carried, free)
            return arrivals

    def posterior(self, names: Iterable[Name] | None = None) -> Posterior:
        """The missing events of the last lag of each stream (all, or those named), given all that is known now.

        Its streams reach from one lag before now, or their starts, to now; ``log_evidence`` is that of all events
        since the start. It is the posterior of ``rd.impute`` given the same events, restricted to the lag: the
        particles that a lag begins with are those of the filter.
        """
        with self._lock:
            return look_back(self, self._asked(names))

    def forecast(self, ahead: float, names: Iterable[Name] | None = None, seed: int = 0) -> Forecast:
        """What will happen in the next ``ahead`` units of time of each stream: all events, and those to be observed.

        Both answer what a posterior answers: ``forecast.observed.expected_count("pick-up")``,
        ``forecast.complete.probability("drop-off", end=...)``.
        """
        if isinstance(ahead, bool) or not isinstance(ahead, int | float) or not (np.isfinite(ahead) and ahead > 0):
            raise DataError(f"ahead= is {show(ahead)}", remedy="give a positive number, in the model's unit of time")
        with self._lock:
            asked = self._asked(names)
            return look_ahead(self, asked, self._parts(asked), float(ahead), seed)

    def log_evidence(self, names: Iterable[Name] | None = None) -> NDArray[np.float64]:
        """The log evidence of all that is known of each stream, [N]: an unbiased estimate of p(observed), as a log."""
        with self._lock:
            parts = [look_now(self, part).log_evidence for part in self._parts(self._asked(names))]
            return np.concatenate([np.zeros(0), *parts])

    def now(self, name: Name) -> float:
        """Up to when a stream is known, on its own axis."""
        (line,) = self._asked([name]).values()
        return line.start + line.until

    def close(self, names: Iterable[Name]) -> None:
        """Forget streams that have ended."""
        with self._lock:
            for name, line in self._asked(names).items():
                self._free.append(line.slot)
                del self._lines[name]

    def save(self, directory: str | os.PathLike[str]) -> Path:
        """Write all into a folder (made if need be), or leave it as it was; ``rd.load_online`` reads it."""
        with self._lock:
            return save_online(self, directory)

    @property
    def names(self) -> list[Name]:
        """The streams that are known, in the order in which they came."""
        return list(self._lines)

    def __len__(self) -> int:
        return len(self._lines)

    def __contains__(self, name: object) -> bool:
        return name in self._lines

    def __iter__(self) -> Iterator[Name]:
        return iter(self.names)

    def __repr__(self) -> str:
        return f"<Online: {len(self)} streams, {self.particles} particles each, lag {self.lag:g}>"

    def _size(self, new: int) -> int:
        """Bytes of the particles once there are so many streams more."""
        slots = len(self._lines) + max(new, len(self._free))
        return sum(pool.size(slots) for pool in self._pools)

    @property
    def _at_once(self) -> int:
        """How many streams are worked on at once."""
        return max(1, TorchEngine().rows_at_once(self.proposal) // self.particles)

    def _parts(self, lines: dict[Name, Line]) -> list[dict[Name, Line]]:
        """As many streams as are worked on at once."""
        own = list(lines.items())
        return [dict(own[i : i + self._at_once]) for i in range(0, len(own), self._at_once)]

    def _asked(self, names: Iterable[Name] | None) -> dict[Name, Line]:
        """The streams of these names, or all."""
        if names is None:
            return dict(self._lines)
        names = [names] if isinstance(names, str | int) else list(names)
        for name in names:
            if name not in self._lines:
                remedy = "feed it first, with start="
                raise DataError("this stream is not known", stream=name, remedy=remedy)
        lines: dict[Name, Line] = {}
        for name in names:
            if name in lines:  # an answer has a place for each name
                raise DataError("this stream is named twice", stream=name, remedy="name each stream once")
            lines[name] = self._lines[name]
        return lines

    def _room(self, lines: Sequence[Line]) -> list[int]:
        """Give new streams a slot with empty particles; returns the slots that stay free."""
        new = [line for line in lines if line.slot < 0]
        used = len(self._lines) + len(self._free)
        free = self._free + list(range(used, used + len(new) - len(self._free)))
        for line, slot in zip(new, free, strict=False):
            line.slot = slot
        if new:
            slots = torch.tensor([line.slot for line in new], device=self.proposal.model.device)
            for pool in self._pools:
                pool.grow(max(free) + 1)
                pool.begin(slots)
        return free[len(new) :]

    def _settle(
        self, arrivals: Sequence[Arrival], lines: Sequence[Line], carried: Sequence[Carried], free: list[int]
    ) -> None:
        """Take over what became of the streams."""
        own = {arrival.name: line for arrival, line in zip(arrivals, lines, strict=True)}
        for arrival, line in zip(arrivals, lines, strict=True):
            line.times += arrival.times.tolist()
            line.types += arrival.types.tolist()
            line.is_told |= bool(len(arrival.times)) or arrival.until > line.until
            line.until = arrival.until
        for part in carried:
            slots = torch.tensor([own[name].slot for name in part.names], device=self.proposal.model.device)
            for pool, new in zip(self._pools, part.pools, strict=True):
                pool.put(slots, new.tensors)
            for name, marks in zip(part.names, part.marks, strict=True):
                own[name].marks = marks
                own[name].forget()
        self._lines |= own
        self._free = free


def load_online(directory: str | os.PathLike[str], proposal: Proposal, *, missing: Missingness | None = None) -> Online:
    """Read a run that ``Online.save`` wrote, to go on with it exactly; model and mechanism have to be the same.

    A proposal with another smoother may be given: particles are carried on without it.
    """
    return read_online(directory, partial(Online, proposal, missing=missing))


def _refuse_ends(proposal: Proposal) -> None:
    """Refuse a mechanism that asks for the end of the stream, which nobody knows yet."""
    model, mechanism = proposal.model, proposal.missingness
    zero = torch.zeros(1, dtype=torch.float64, device=model.device)
    rates = []
    for end in (zero, zero + 1e12):
        history = mechanism.initial((1,), model.device)
        context = Context(zero, zero.long(), model.initial((1,)), end, history)
        rates.append(mechanism.rates(zero, context))
    if not torch.equal(*rates):
        raise ModelError(
            f"{mechanism!r} depends on when the stream ends, which is not known while it goes on. Feed what has been "
            "reported for certain, and impute the rest by rd.impute, with the mechanism, up to now."
        )
