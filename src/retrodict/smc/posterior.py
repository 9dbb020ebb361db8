"""The posterior over missing events: weighted particles per stream, and answers to questions about them.

Each particle is one guess of all the missing events of a stream; its weight says how much it is to be believed.
Everything here is a weighted average over particles (equation 4 of the paper).
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from retrodict.errors import DataError, DataNotice
from retrodict.events.combine import combine
from retrodict.events.io.moments import Moment, all_on_axis, on_axis
from retrodict.events.stream import EventStream
from retrodict.events.stream_set import StreamSet, describe_types
from retrodict.events.suspicion import Suspicion, beyond_edges
from retrodict.models.base import Model
from retrodict.models.simulate import simulate
from retrodict.models.surprise import surprises
from retrodict.smc.diagnostics import Diagnostics
from retrodict.smc.posterior_folder import read_posterior, save_posterior

if TYPE_CHECKING:
    import pandas as pd

_SOME = 50  # streams that are looked at for types that surprise the model


@dataclass(eq=False, repr=False)
class Posterior:
    """M weighted particles for each of N observed streams, with E missing events in all."""

    observed: StreamSet  # the N streams
    event_times: NDArray[np.float64]  # [E]: when missing events happened
    event_types: NDArray[np.int64]  # [E]: their types
    offsets: NDArray[np.int64]  # [N M + 1]: particle m of stream i owns events offsets[i M + m] : offsets[i M + m + 1]
    all_weights: NDArray[np.float64]  # [N, M]: they add up to one for each stream
    log_evidence: NDArray[np.float64]  # [N]: log p(observed)
    diagnostics: Diagnostics  # how far to trust it
    model: Model | None = None  # what to forecast with

    @property
    def num_particles(self) -> int:
        """M."""
        return self.all_weights.shape[1]

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
        i = range(len(self))[i]
        start, end = float(self.observed.starts[i]), float(self.observed.ends[i])
        spans = self.offsets[i * self.num_particles : (i + 1) * self.num_particles + 1]
        return [
            EventStream.trusted(self.event_times[a:b], self.event_types[a:b], start, end, self.observed.ids[i])
            for a, b in pairwise(spans)
        ]

    def weights(self, i: int) -> NDArray[np.float64]:
        """The weights of stream i's particles, [M]; they add up to one."""
        return self.all_weights[i]

    def expected_count(
        self, type: str | int | None = None, start: Moment | None = None, end: Moment | None = None
    ) -> NDArray[np.float64]:
        """Expected number of missing events of a type (any, if None) in [start, end], for each stream, [N].

        Here as in all questions, times of dated streams may be dates.
        """
        return (self.all_weights * self._counts(type, start, end)).sum(1)

    def probability(
        self, type: str | int | None = None, start: Moment | None = None, end: Moment | None = None
    ) -> NDArray[np.float64]:
        """Probability that at least one event of a type went missing in [start, end], for each stream, [N]."""
        return (self.all_weights * (self._counts(type, start, end) > 0)).sum(1)

    def intensity(self, grid: ArrayLike | Sequence[Moment]) -> NDArray[np.float64]:
        """Expected missing events per unit of time between consecutive grid times [G+1]: [N, G, K]."""
        edges = all_on_axis(grid, self.observed.axis, "a time of the grid")
        if edges.ndim != 1 or len(edges) < 2 or (np.diff(edges) <= 0).any():
            raise DataError("the grid is not an increasing list of times", remedy="pass e.g. np.linspace(0, 24, 97)")
        cell = np.searchsorted(edges, self.event_times, side="right") - 1
        inside = (cell >= 0) & (cell < len(edges) - 1)
        result = np.zeros((len(self), len(edges) - 1, self.observed.num_types))
        particle = self._particle_of_event()[inside]
        where = (particle // self.num_particles, cell[inside], self.event_types[inside])
        np.add.at(result, where, self.all_weights.reshape(-1)[particle])
        return result / np.diff(edges)[:, None]

    def distinct_histories(self, time: Moment | ArrayLike | Sequence[Moment]) -> NDArray[np.int64]:
        """How many different guesses there are of what is missing up to ``time`` (one, or one a stream), [N].

        Particles that share their early events say the same thing several times: where few are distinct, do not trust
        how sure they seem. (Guesses that nothing is missing there count as one; those of no weight do not count.)
        """
        given = all_on_axis(time, self.observed.axis, "time=")
        if given.shape not in ((), (len(self),)):
            raise DataError(
                f"{given.size} times were given for {len(self)} streams", remedy="give one, or one a stream"
            )
        until = np.broadcast_to(given, len(self))
        result = np.zeros(len(self), dtype=np.int64)
        for i in range(len(self)):
            spans = self.offsets[i * self.num_particles : (i + 1) * self.num_particles + 1]
            seen = set()
            for (a, b), weight in zip(pairwise(spans), self.all_weights[i], strict=True):
                if weight == 0:
                    continue
                early = a + int(np.searchsorted(self.event_times[a:b], until[i], side="right"))
                seen.add((self.event_times[a:early].tobytes(), self.event_types[a:early].tobytes()))
            result[i] = len(seen)
        return result

    def expectation(self, f: Callable[[EventStream], float]) -> NDArray[np.float64]:
        """E f(z), f being given the missing events of a particle, for each stream, [N] (equation 4)."""
        return np.array([self.weights(i) @ [float(f(z)) for z in self.particles(i)] for i in range(len(self))])

    def draws(self, count: int = 1, seed: int = 0) -> list[StreamSet]:
        """``count`` draws of the missing events of all streams, each equally likely: particles picked by weight."""
        generator = np.random.default_rng(seed)
        cumulative = self.all_weights.cumsum(1)
        sets = []
        for _ in range(count):
            u = generator.random((len(self), 1)) * cumulative[:, -1:]
            chosen = (cumulative <= u).sum(1).clip(max=self.num_particles - 1)
            sets.append(self._select(np.arange(len(self)) * self.num_particles + chosen))
        return sets

    def complete(self, missing: StreamSet) -> StreamSet:
        """Observed and missing events together."""
        return combine(self.observed, missing)[0]

    def forecast(self, until: Moment, seed: int = 0) -> tuple[StreamSet, NDArray[np.float64]]:
        """Continue each particle past the end of its stream to ``until``: new events, and weights [N, M].

        The streams come particle by particle, stream after stream, with ids "id/m".
        """
        end = on_axis(until, self.observed.axis, "until=")
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
        return simulate(self.model, history=history, end=end, seed=seed), self.all_weights

    def consensus(
        self,
        cost: float | tuple[float, float],
        method: Literal["exact", "local"] = "exact",
        *,
        progress: Callable[[int], None] | None = None,
        **options: Any,
    ) -> StreamSet:
        """One answer: for each stream the missing events of least expected distance to the truth (section 4).

        Each event carries columns ``probability``, ``earliest`` and ``latest``. Streams without evidence, whose
        particles mean nothing, get no events. ``progress`` is called with the number of streams done.
        """
        from retrodict.decode import consensus

        streams = []
        nothing = EventStream([], [], end=0.0)
        for i in range(len(self)):
            particles = self.particles(i) if self.is_possible[i] else [nothing] * self.num_particles
            decoded = consensus(particles, self.weights(i), cost, method=method, **options).stream
            span = float(self.observed.starts[i]), float(self.observed.ends[i])
            if progress is not None:
                progress(i + 1)
            streams.append(EventStream(decoded.times, decoded.types, *span, self.observed.ids[i], decoded.columns))
        return StreamSet(streams, types=self.observed.types, axis=self.observed.axis)

    def to_frame(self, start: int = 0, stop: int | None = None) -> pd.DataFrame:
        """One row for each event of each particle: stream, draw, weight, time, type; of streams ``start:stop``."""
        import pandas as pd

        first, last, _ = slice(start, stop).indices(len(self))
        spans = self.offsets[first * self.num_particles : last * self.num_particles + 1]
        events = slice(spans[0], spans[-1])
        particle = np.repeat(np.arange(first * self.num_particles, last * self.num_particles), np.diff(spans))
        ids = np.empty(len(self), dtype=object)
        ids[:] = self.observed.ids
        time: Any = self.event_times[events]
        if self.observed.axis.is_calendar:
            instants = pd.to_datetime(self.observed.axis.to_instants(time), utc=True)
            zone = self.observed.axis.timezone
            time = instants.tz_convert(zone) if zone else instants.tz_localize(None)
        return pd.DataFrame(
            {
                "stream": ids[particle // self.num_particles],
                "draw": particle % self.num_particles,
                "weight": self.all_weights.reshape(-1)[particle],
                "time": time,
                "type": pd.Categorical.from_codes(self.event_types[events], categories=pd.Index(self.observed.types)),
            }
        )

    def to_arviz(self, draws: int | None = None, seed: int = 0) -> Any:
        """An ArviZ InferenceData of what can be said of every draw: counts, and times of the first and last event.

        ArviZ knows no weights, so it is given ``draws`` (M by default) draws picked by weight. Needs the extra "arviz".
        """
        from retrodict.smc.to_arviz import to_arviz

        return to_arviz(self, self.num_particles if draws is None else draws, seed)

    def save(self, directory: str | os.PathLike[str]) -> Path:
        """Write the posterior into a folder of Parquet files (``smc/posterior_folder.py``)."""
        return save_posterior(self, directory)

    def suspicions(self) -> list[Suspicion]:
        """What is not imputed beyond the edges of streams, and types that surprise the model in some of them."""
        found = beyond_edges(self.observed, float(self.expected_count().sum()))
        if self.model is None or not len(self):
            return found
        return found + surprises(self.model, combine(self.observed[:_SOME], self.draws()[0][:_SOME])[0])

    def warn(self) -> None:
        """Say in words, as one notice each, what should keep you from trusting the answer."""
        for text in self.diagnostics.complaints(self.observed, self.log_evidence, self._past_is_thin()):
            warnings.warn(text, DataNotice, stacklevel=3)

    def _past_is_thin(self) -> NDArray[np.bool_]:
        """Whether fewer than 5 particles of halfway live on; after moves, whether fewer than 5 of them differ, [N]."""
        half = self.observed.starts + 0.5 * self.observed.durations
        particle = self._particle_of_event()
        early = particle[self.event_times <= half[particle // self.num_particles]]
        counts = np.bincount(early, minlength=self.all_weights.size).reshape(self.all_weights.shape)
        something = (self.all_weights * counts).sum(1) >= 1  # where nothing is missing, all guesses are alike
        moved = ~np.isnan(self.diagnostics.accepted)
        thin = np.where(moved, self.distinct_histories(half) < 5, self.diagnostics.middle_ancestors < 5)
        return something & thin & (self.num_particles >= 10)

    def _particle_of_event(self) -> NDArray[np.int64]:
        return np.repeat(np.arange(len(self.offsets) - 1), np.diff(self.offsets))

    def _counts(self, type: str | int | None, start: Moment | None, end: Moment | None) -> NDArray[np.int64]:
        """Events of a type in [start, end] in each particle, [N, M]."""
        keep = np.ones(len(self.event_times), dtype=bool)
        if type is not None:
            keep &= self.event_types == self._type_index(type)
        if start is not None:
            keep &= self.event_times >= on_axis(start, self.observed.axis, "start=")
        if end is not None:
            keep &= self.event_times <= on_axis(end, self.observed.axis, "end=")
        counts = np.bincount(self._particle_of_event()[keep], minlength=self.all_weights.size)
        return counts.reshape(self.all_weights.shape)

    def _type_index(self, type: str | int) -> int:
        types = self.observed.types
        if isinstance(type, str) and type in types:
            return types.index(type)
        if isinstance(type, int) and 0 <= type < len(types):
            return type
        raise DataError(f"unknown type {type!r}; known types are {describe_types(types)}", remedy="name one of these")

    def _select(self, particles: NDArray[np.int64]) -> StreamSet:
        """The streams made of one particle each."""
        counts = np.diff(self.offsets)[particles]
        offsets = np.concatenate([[0], np.cumsum(counts)])
        events = np.repeat(self.offsets[particles] - offsets[:-1], counts) + np.arange(offsets[-1])
        o = self.observed
        return StreamSet.trusted(
            self.event_times[events], self.event_types[events], offsets, o.starts, o.ends, o.ids, o.types, axis=o.axis
        )


def load_posterior(directory: str | os.PathLike[str]) -> Posterior:
    """Read a posterior that ``Posterior.save`` wrote; it has no model to forecast with until one is set."""
    return Posterior(*read_posterior(directory))


def concatenate(parts: Sequence[Posterior], observed: StreamSet, order: NDArray[np.int64]) -> Posterior:
    """Posteriors of parts of a set, put together in the order of the set."""
    M = parts[0].num_particles
    counts = np.concatenate([np.diff(p.offsets) for p in parts])
    starts = np.concatenate([[0], np.cumsum(counts)])[:-1]
    rows = (order[:, None] * M + np.arange(M)).reshape(-1)
    offsets = np.concatenate([[0], np.cumsum(counts[rows])])
    events = np.repeat(starts[rows] - offsets[:-1], counts[rows]) + np.arange(offsets[-1])
    return Posterior(
        observed,
        np.concatenate([p.event_times for p in parts])[events],
        np.concatenate([p.event_types for p in parts])[events],
        offsets,
        np.concatenate([p.all_weights for p in parts])[order],
        np.concatenate([p.log_evidence for p in parts])[order],
        Diagnostics.concatenate([p.diagnostics for p in parts], order),
        parts[0].model,
    )
