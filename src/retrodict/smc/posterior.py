"""The posterior over missing events: weighted particles per stream, and answers to questions about them.

Each particle is one guess of all the missing events of a stream; its weight says how much it is to be believed.
Everything here is a weighted average over particles (equation 4 of the paper).
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray

from retrodict.errors import DataError, DataNotice
from retrodict.events.combine import combine
from retrodict.events.io.moments import Moment, all_on_axis, on_axis, stretch
from retrodict.events.stream import EventStream
from retrodict.events.stream_set import StreamSet, describe_types
from retrodict.events.suspicion import Suspicion, beyond_edges
from retrodict.models.base import Model
from retrodict.models.simulate import simulate
from retrodict.models.surprise import surprises
from retrodict.smc.choice import NEAR_ENOUGH, is_lagged_better, squared_errors
from retrodict.smc.diagnostics import Diagnostics, complaints
from retrodict.smc.guesses import Guesses, pick
from retrodict.smc.posterior_folder import read_posterior, save_posterior
from retrodict.smc.reliability import Reliability
from retrodict.smc.totals import LEVEL, Total, check_level, intervals, total_of
from retrodict.smc.tracing import FIRST, Traced

if TYPE_CHECKING:
    from retrodict.decode.transport import CostLike
    from retrodict.report.style import Picture
    from retrodict.smc.decision import Decision, Judged


@dataclass(eq=False, repr=False)
class Posterior:
    """M weighted particles for each of N observed streams.

    ``full`` are the particles of Algorithm 1. Where few of them differ in a segment, they seem surer than they are;
    ``lagged`` then knows better: it takes less of the future into account, but never few different guesses
    (``smc/genealogy.py``). Questions about a window of time are answered by whichever of the two an independent run
    finds more plausible (``chosen``); questions about whole streams, such as ``expectation`` and ``forecast``, by
    ``full``, whose guesses are never put together from several.
    """

    observed: StreamSet  # the N streams
    full: Guesses  # the particles of Algorithm 1, weighed at the end
    lagged: Guesses  # equally weighted guesses, each stretch of time weighed while families last
    log_evidence: NDArray[np.float64]  # [N]: log p(observed)
    diagnostics: Diagnostics  # how far to trust it
    model: Model | None = None  # what to forecast with
    about: dict[str, Any] = field(default_factory=dict)  # how it was made: model, mechanism, seed, versions ...

    @classmethod
    def later(
        cls, observed: StreamSet, trace: Callable[[], Traced], log_evidence: NDArray[np.float64], model: Model
    ) -> Posterior:
        """A posterior whose ensembles and diagnostics are worked out when they are first asked for."""
        posterior = cls.__new__(cls)
        known = {"observed": observed, "log_evidence": log_evidence, "model": model, "about": {}}
        posterior.__dict__ |= known | {"_trace": trace}
        return posterior

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any:
            """What is still to be worked out."""
            trace = self.__dict__.get("_trace")
            if trace is None or name not in Traced._fields:
                raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
            self.__dict__ |= trace()._asdict()
            return self.__dict__[name]

    def __getstate__(self) -> dict[str, Any]:
        """What is pickled: the ensembles, worked out."""
        ensembles = {name: getattr(self, name) for name in Traced._fields}
        return {name: value for name, value in self.__dict__.items() if name != "_trace"} | ensembles

    @property
    def num_particles(self) -> int:
        """M."""
        return self.full.weights.shape[1]

    @property
    def event_times(self) -> NDArray[np.float64]:
        """When missing events happened, in ``full``, [E]."""
        return self.full.event_times

    @property
    def event_types(self) -> NDArray[np.int64]:
        """Their types, [E]."""
        return self.full.event_types

    @property
    def offsets(self) -> NDArray[np.int64]:
        """Particle m of stream i owns events offsets[i M + m] : offsets[i M + m + 1] of ``full``, [N M + 1]."""
        return self.full.offsets

    @property
    def all_weights(self) -> NDArray[np.float64]:
        """The weights of ``full``, [N, M]; they add up to one for each stream."""
        return self.full.weights

    @cached_property
    def chosen(self) -> Guesses:
        """``full`` or ``lagged``: what expected counts of one island fit those of the other better (cross-fit)."""
        return self.lagged if self.full.islands < 2 or is_lagged_better(self.errors) else self.full

    @cached_property
    def errors(self) -> NDArray[np.float64]:
        """What of each stream says which ensemble is ``chosen``, [N, 2] (``smc/choice.py``)."""
        if self.full.islands < 2:  # nothing to judge by: ``lagged`` is taken for the better one
            return np.zeros((len(self), 2))
        return squared_errors(self.full, self.lagged, self.observed)

    @property
    def is_possible(self) -> NDArray[np.bool_]:
        """Whether what was observed has some probability, [N]; elsewhere particles mean nothing."""
        return np.isfinite(self.log_evidence)

    def __len__(self) -> int:
        return len(self.observed)

    def __repr__(self) -> str:
        return f"<Posterior: {len(self)} streams, {self.num_particles} particles each, {len(self.event_times)} events>"

    def particles(self, i: int) -> list[EventStream]:
        """The missing events of stream i according to each particle."""
        return self.full.of(self.observed, i)

    def weights(self, i: int) -> NDArray[np.float64]:
        """The weights of stream i's particles, [M]; they add up to one."""
        return self.full.weights[i]

    def expected_count(
        self, type: str | int | None = None, start: Moment | None = None, end: Moment | None = None
    ) -> NDArray[np.float64]:
        """Expected number of missing events of a type (any, if None) in [start, end], for each stream, [N].

        Here as in all questions, times of dated streams may be dates. Where the model knows when streams end, numbers
        of whole streams are those of ``full``: what the end tells of them, ``lagged`` does not know.
        """
        counts, weights = self._weighted_counts(type, start, end)
        return (weights * counts).sum(1)

    def count_interval(
        self,
        type: str | int | None = None,
        start: Moment | None = None,
        end: Moment | None = None,
        *,
        level: float = LEVEL,
    ) -> NDArray[np.int64]:
        """From how many to how many events are missing with probability ``level``, for each stream, [N, 2].

        The ends are weighted quantiles of the count that ``expected_count`` averages, and belong to the interval.
        """
        return intervals(*self._weighted_counts(type, start, end), check_level(level))

    def total_count(
        self,
        type: str | int | None = None,
        start: Moment | None = None,
        end: Moment | None = None,
        *,
        level: float = LEVEL,
    ) -> Total:
        """How many events are missing in all streams together: ``expected``, and from ``low`` to ``high``.

        Of several streams the interval is a normal approximation with the sum of their variances, never below 0; it
        does not contain what the model itself may have wrong. Streams without probability are left out.
        """
        counts, weights = self._weighted_counts(type, start, end)
        return total_of(counts[self.is_possible], weights[self.is_possible], check_level(level))

    def probability(
        self, type: str | int | None = None, start: Moment | None = None, end: Moment | None = None
    ) -> NDArray[np.float64]:
        """Probability that at least one event of a type went missing in [start, end], for each stream, [N].

        Without ``start`` and ``end`` this is a question about whole streams, which ``full`` answers.
        """
        guesses = self.full if start is None and end is None else self.chosen
        return (guesses.weights * (self._counts(guesses, type, start, end) > 0)).sum(1)

    def intensity(self, grid: ArrayLike | Sequence[Moment]) -> NDArray[np.float64]:
        """Expected missing events per unit of time between consecutive grid times [G+1]: [N, G, K]."""
        edges = all_on_axis(grid, self.observed.axis, "a time of the grid")
        if edges.ndim != 1 or len(edges) < 2 or (np.diff(edges) <= 0).any():
            raise DataError("the grid is not an increasing list of times", remedy="pass e.g. np.linspace(0, 24, 97)")
        guesses = self.chosen
        cell = np.searchsorted(edges, guesses.event_times, side="right") - 1
        inside = (cell >= 0) & (cell < len(edges) - 1)
        result = np.zeros((len(self), len(edges) - 1, self.observed.num_types))
        guess = guesses.guess_of_event()[inside]
        where = (guess // self.num_particles, cell[inside], guesses.event_types[inside])
        np.add.at(result, where, guesses.weights.reshape(-1)[guess])
        return result / np.diff(edges)[:, None]

    def expectation(self, f: Callable[[EventStream], float]) -> NDArray[np.float64]:
        """E f(z), f being given the missing events of a particle, for each stream, [N] (equation 4)."""
        return np.array([self.weights(i) @ [float(f(z)) for z in self.particles(i)] for i in range(len(self))])

    def draws(
        self, count: int = 1, seed: int = 0, ensemble: Literal["chosen", "full", "lagged"] = "chosen"
    ) -> list[StreamSet]:
        """``count`` draws of the missing events of all streams, each equally likely: guesses picked by weight."""
        generator = np.random.default_rng(seed)
        return [_draw(getattr(self, ensemble), self.observed, generator) for _ in range(count)]

    def complete(self, missing: StreamSet) -> StreamSet:
        """Observed and missing events together."""
        return combine(self.observed, missing)[0]

    def forecast(self, until: Moment, seed: int = 0) -> tuple[StreamSet, NDArray[np.float64]]:
        """Continue each particle past the end of its stream to ``until``: new events, and weights [N, M].

        The streams come particle by particle, stream after stream, with ids "id/m".
        """
        end = on_axis(until, self.observed.axis, "until=")
        if "lag" in self.about:
            remedy = "ask the online run itself: online.forecast(ahead=...)"
            raise DataError("this posterior knows but the last lag of its streams", remedy=remedy)
        if self.model is None:
            raise DataError("this posterior has no model to go on with", remedy="set posterior.model, or impute again")
        histories = []
        for i in range(len(self)):
            for m, z in enumerate(self.particles(i)):
                times = np.concatenate([self.observed[i].times, z.times])
                order = np.argsort(times, kind="stable")
                types = np.concatenate([self.observed[i].types, z.types])
                name = f"{self.observed.ids[i]}/{m}"
                histories.append(EventStream.trusted(times[order], types[order], z.start, z.end, name))
        history = StreamSet(histories, types=self.observed.types, axis=self.observed.axis)
        return simulate(self.model, history=history, end=end, seed=seed), self.full.weights

    def consensus(
        self, cost: CostLike, method: Literal["exact", "local"] = "exact", *, level: float = 0.9, **options: Any
    ) -> StreamSet:
        """One answer: for each stream the missing events of least expected distance to the truth (section 4).

        Each event carries columns ``probability``, that an event of its type happened where it is (so near that the
        two are aligned, within the cost of an insertion and a deletion at most), and ``earliest`` and ``latest``, which
        hold its time with probability ``level`` if it did. ``options`` are those of ``decide``.
        """
        from retrodict.smc.decision import answer  # loads Numba

        options = self._search() | {"method": method, "level": level} | options
        streams = answer(self._judged(), cost, options.pop("ensemble", None), options.pop("progress", None), **options)
        return self._calibrated(streams, cost)

    def decide(
        self,
        costs: Sequence[CostLike],
        ensemble: Literal["full", "lagged"] | None = None,
        *,
        progress: Callable[[int], None] | None = None,
        **options: Any,
    ) -> list[Decision]:
        """The consensus at each cost with its risk, judged by an independent run (``smc/decision.py``).

        ``ensemble`` names the guesses to decode; by default the independent run chooses (for all streams alike, by at
        most 1,000 of them). Streams without evidence, whose particles mean nothing, get no events. ``progress`` is
        called with the number of streams done. ``options`` are those of ``rd.consensus``; an objective proven to be
        within 1 % of the least is near enough, since 200 guesses say less than that.
        """
        from retrodict.smc.decision import decide  # loads Numba

        found = decide(self._judged(), costs, ensemble, progress, **self._search() | options)
        return [replace(d, streams=self._calibrated(d.streams, c)) for d, c in zip(found, costs, strict=True)]

    def _calibrated(self, imputed: StreamSet, cost: CostLike) -> StreamSet:
        """Imputed events with the probabilities that a check suggests, where that was wanted (``Check.calibrate``)."""
        kept = self.about.get("calibration")
        if kept is None:
            return imputed
        from retrodict.decode.transport import as_cost

        probability = Reliability.kept(kept)(imputed.columns["probability"], as_cost(cost).delete)
        return imputed.replace(columns={**imputed.columns, "probability": probability})

    def _judged(self) -> Judged:
        from retrodict.smc.decision import Judged  # loads Numba

        return Judged(self.full, self.lagged, self.observed, self.is_possible)

    def _search(self) -> dict[str, Any]:
        return {"tolerance": NEAR_ENOUGH, "threads": torch.get_num_threads()}

    def to_frame(self, start: int = 0, stop: int | None = None, library: str = "pandas") -> Any:
        """One row for each event of each particle: stream, draw, weight, time, type; of streams ``start:stop``.

        ``library`` is "pandas" or "polars".
        """
        import pandas as pd

        from retrodict.events.io.tables_out import in_library  # loads Arrow

        rows, ids = self.rows(start, stop), np.empty(len(self), dtype=object)
        ids[:] = self.observed.ids
        time: Any = rows["time"]
        if self.observed.axis.is_calendar:
            instants = pd.to_datetime(time, utc=True)
            zone = self.observed.axis.timezone
            time = instants.tz_convert(zone) if zone else instants.tz_localize(None)
        types = pd.Categorical.from_codes(rows["type"], categories=pd.Index(self.observed.types))
        frame = pd.DataFrame(rows | {"stream": ids[rows["stream"]], "time": time, "type": types})
        return in_library(frame, library)

    def rows(self, start: int = 0, stop: int | None = None) -> dict[str, NDArray[Any]]:
        """The columns of ``to_frame``: streams and types by number, dates in nanoseconds since 1970."""
        guesses, M = self.chosen, self.num_particles
        first, last, _ = slice(start, stop).indices(len(self))
        spans = guesses.offsets[first * M : last * M + 1]
        events = slice(spans[0], spans[-1])
        time = guesses.event_times[events]
        stream, draw, weight = guesses.owners(first, last)
        return {
            "stream": stream,
            "draw": draw,
            "weight": weight,
            "time": self.observed.axis.to_instants(time) if self.observed.axis.is_calendar else time,
            "type": guesses.event_types[events],
        }

    def to_arviz(self, draws: int | None = None, seed: int = 0) -> Any:
        """What can be said of every draw, for ArviZ: counts, and times of the first and last event.

        An InferenceData, or with ArviZ 1.x a DataTree.

        ArviZ knows no weights, so it is given ``draws`` (M by default) draws picked by weight. Needs the extra "arviz".
        """
        from retrodict.smc.to_arviz import to_arviz

        return to_arviz(self, self.num_particles if draws is None else draws, seed)

    def save(self, directory: str | os.PathLike[str]) -> Path:
        """Write the posterior into a folder of Parquet files (``smc/posterior_folder.py``)."""
        return save_posterior(self, directory)

    def plot(
        self,
        i: int = 0,
        path: str | os.PathLike[str] | None = None,
        *,
        cost: float | None = None,
        truth: StreamSet | None = None,
        title: str | None = None,
        draws: int = 20,
    ) -> Picture:
        """A Matplotlib figure of stream i: what was observed, what is believed and the consensus; also as a file.

        ``cost`` is that of the consensus, half a gap by default; ``truth`` has the events that are really missing.
        """
        from retrodict.smc.show import plot_stream

        return plot_stream(self, i, path, cost, truth, title, draws)

    def plot_tradeoff(
        self,
        path: str | os.PathLike[str] | None = None,
        *,
        costs: Sequence[float] | None = None,
        truth: StreamSet | None = None,
    ) -> Picture:
        """A Matplotlib figure of the risk of the consensus, and of its events, against the cost; also as a file."""
        from retrodict.smc.show import plot_tradeoff

        return plot_tradeoff(self, path, costs, truth)

    def report(
        self,
        path: str | os.PathLike[str],
        *,
        cost: float | None = None,
        costs: Sequence[float] | None = None,
        truth: StreamSet | None = None,
        check: Any = None,
        title: str = "What was imputed",
        progress: Callable[[int], None] | None = None,
    ) -> Path:
        """Write one HTML page to look at all streams with, which needs no network and no other file.

        Its slider goes through ``costs``, by default from a quarter of ``cost`` (half a gap) to four times that. It
        shows a ``check`` (what ``rd.check`` gave) and the ``truth`` where these are given.
        """
        from retrodict.smc.show import write_report

        return write_report(self, path, cost, costs, truth, check, title, progress)

    def suspicions(self, draw: StreamSet | None = None) -> list[Suspicion]:
        """What is not imputed beyond the edges of streams, and types that surprise the model in the first of them.

        ``draw`` is one guess of these, if it is at hand before the ensembles are. Nothing comes after the end that a
        model with an end atom knows.
        """
        found = beyond_edges(self.observed, lambda: float(self.expected_count().sum()))
        if self.model is not None and self.model.end_atom is not None:
            found = [edge for edge in found if edge.kind != "end"]
        if self.model is None or not len(self):
            return found
        some = self.observed[:FIRST]
        draw = _draw(self.full, some, np.random.default_rng(0)) if draw is None else draw
        return found + surprises(self.model, combine(some, draw)[0])

    def warn(self) -> None:
        """Say in words, as one notice each, what should keep you from trusting the answer."""
        for text in complaints(self):
            warnings.warn(text, DataNotice, stacklevel=3)

    @property
    def counting(self) -> Guesses:
        """The ensemble that counts the events of whole streams: the full one where the model knows when these end."""
        return self.full if "ends" in self.about else self.chosen

    def _weighted_counts(
        self, type: str | int | None, start: Moment | None, end: Moment | None
    ) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        """Events of a type in [start, end] in each guess of the ensemble that counts, and its weights, [N, M] each."""
        guesses = self.counting if start is None and end is None else self.chosen
        return self._counts(guesses, type, start, end), guesses.weights

    def _counts(
        self, guesses: Guesses, type: str | int | None, start: Moment | None, end: Moment | None
    ) -> NDArray[np.int64]:
        """Events of a type in [start, end] in each guess, [N, M]."""
        if type is None and start is None and end is None:
            return guesses.counts()
        keep = np.ones(len(guesses.event_times), dtype=bool)
        if type is not None:
            keep &= guesses.event_types == self._type_index(type)
        first, last = stretch(start, end, self.observed.axis)
        keep &= (guesses.event_times >= first) & (guesses.event_times <= last)
        return guesses.counts(keep)

    def _type_index(self, type: str | int) -> int:
        types = self.observed.types
        if isinstance(type, str) and type in types:
            return types.index(type)
        if isinstance(type, int) and 0 <= type < len(types):
            return type
        raise DataError(f"unknown type {type!r}; known types are {describe_types(types)}", remedy="name one of these")


def _draw(guesses: Guesses, observed: StreamSet, generator: np.random.Generator) -> StreamSet:
    """One guess of each observed stream, which are the first ones of the guesses, picked by weight."""
    o, M = observed, guesses.weights.shape[1]
    picked = pick(guesses.weights[: len(o)], generator.random(len(o)))
    events = guesses.take(np.arange(len(o)) * M + picked)
    return StreamSet.trusted(*events, o.starts, o.ends, o.ids, o.types, axis=o.axis)


def part_of(whole: Posterior, which: NDArray[np.int64], observed: StreamSet) -> Posterior:
    """The posterior of some of the streams, ``observed``, as if they had been imputed alone."""
    segments = int(observed.lengths.max(initial=0)) + 1
    full, lagged = (guesses.of_streams(which, segments) for guesses in (whole.full, whole.lagged))
    diagnostics = whole.diagnostics.of_streams(which, segments)
    return Posterior(observed, full, lagged, whole.log_evidence[which], diagnostics, whole.model, dict(whole.about))


def load_posterior(directory: str | os.PathLike[str]) -> Posterior:
    """Read a posterior that ``Posterior.save`` wrote; it has no model to forecast with until one is set."""
    return Posterior(*read_posterior(directory))
