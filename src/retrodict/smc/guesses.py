"""Weighted guesses of the missing events of a set of streams, as flat arrays."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from retrodict.events.stream import EventStream
from retrodict.events.stream_set import StreamSet
from retrodict.smc.threads import share_out


@dataclass(frozen=True, eq=False, repr=False)
class Guesses:
    """M weighted guesses of the missing events of each of N streams, with E events in all.

    They come from I islands, runs that know nothing of one another: guesses a M / I : (a + 1) M / I from island a.
    """

    event_times: NDArray[np.float64]  # [E]: when missing events happened
    event_types: NDArray[np.int64]  # [E]: their types
    offsets: NDArray[np.int64]  # [N M + 1]: guess m of stream i owns events offsets[i M + m] : offsets[i M + m + 1]
    weights: NDArray[np.float64]  # [N, M]: they add up to one for each stream
    families: NDArray[np.float64]  # [N, I, S]: effective families of each segment on each island; NaN beyond the end

    def __len__(self) -> int:
        return len(self.weights)

    @property
    def islands(self) -> int:
        """I."""
        return self.families.shape[1]

    @property
    def effective_families(self) -> NDArray[np.float64]:
        """N_i of each segment, all islands together, [N, S]."""
        N, M = self.weights.shape
        shares = self.weights.reshape(N, self.islands, M // self.islands).sum(2)
        # An island without weight has no say, whatever its families are.
        squares = (shares**2)[..., None] / np.where(shares[..., None] > 0, self.families, 1.0)
        with np.errstate(divide="ignore"):
            result = 1.0 / squares.sum(1)
        return np.where(np.isnan(self.families).all(1), np.nan, result)

    def guess_of_event(self) -> NDArray[np.int64]:
        """Which guess, of all N M, each event belongs to, [E]."""
        return np.repeat(np.arange(len(self.offsets) - 1), np.diff(self.offsets))

    def counts(self, keep: NDArray[np.bool_] | None = None) -> NDArray[np.int64]:
        """How many events, of those kept [E], each guess has, [N, M]."""
        if keep is None:
            return np.diff(self.offsets).reshape(self.weights.shape)
        return np.bincount(self.guess_of_event()[keep], minlength=self.weights.size).reshape(self.weights.shape)

    def of(self, observed: StreamSet, i: int) -> list[EventStream]:
        """The guesses of stream i."""
        i, M = range(len(self))[i], self.weights.shape[1]
        start, end = float(observed.starts[i]), float(observed.ends[i])
        return [
            EventStream.trusted(self.event_times[a:b], self.event_types[a:b], start, end, observed.ids[i])
            for a, b in pairwise(self.offsets[i * M : (i + 1) * M + 1])
        ]

    def take(self, guesses: NDArray[np.int64]) -> tuple[NDArray[np.float64], NDArray[np.int64], NDArray[np.int64]]:
        """Times, types and offsets of some of the N M guesses, in the order given."""
        counts = self.offsets[guesses + 1] - self.offsets[guesses]
        offsets = np.concatenate([[0], np.cumsum(counts)])
        events = np.repeat(self.offsets[guesses] - offsets[:-1], counts) + np.arange(offsets[-1])
        return self.event_times[events], self.event_types[events], offsets

    def owners(self, first: int, last: int) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.float64]]:
        """The stream, the guess and its weight of every event of streams ``first`` to ``last``, [E'] each."""
        from retrodict.smc.cells import name_owners  # loads Numba

        M = self.weights.shape[1]
        size = int(self.offsets[last * M] - self.offsets[first * M])
        stream, draw, weight = np.empty(size, np.int64), np.empty(size, np.int64), np.empty(size)
        given = self.offsets, self.weights, first, stream, draw, weight
        share_out(partial(name_owners, *given), last - first, size)
        return stream, draw, weight

    def of_streams(self, which: NDArray[np.int64], segments: int | None = None) -> Guesses:
        """The guesses of some of the streams, in the order given, which have up to this many segments."""
        M = self.weights.shape[1]
        rows = (which[:, None] * M + np.arange(M)).reshape(-1)
        return Guesses(*self.take(rows), self.weights[which], self.families[which, :, :segments])

    def halves(self) -> tuple[Guesses, Guesses]:
        """The guesses of the first and of the other half of the islands, with weights that add up to one again."""
        (N, M), middle = self.weights.shape, self.islands // 2
        own, weights = np.arange(M) >= self._middle, self._weights_of_halves()

        def half(mine: NDArray[np.bool_], islands: slice) -> Guesses:
            rows = (np.arange(N)[:, None] * M + np.flatnonzero(mine)).reshape(-1)
            return Guesses(*self.take(rows), weights[:, mine], self.families[:, islands])

        return half(~own, slice(None, middle)), half(own, slice(middle, None))

    @property
    def _middle(self) -> int:
        """The first guess of the second half."""
        return self.islands // 2 * (self.weights.shape[1] // self.islands)

    def _weights_of_halves(self) -> NDArray[np.float64]:
        """Weights that add up to one in either half of the islands, [N, M]."""
        result = np.empty_like(self.weights)
        for own in (slice(None, self._middle), slice(self._middle, None)):
            weights = self.weights[:, own]
            sums = weights.sum(1, keepdims=True)
            equal = 1.0 / max(weights.shape[1], 1)
            result[:, own] = np.where(sums > 0, weights / np.where(sums > 0, sums, 1.0), equal)
        return result

    def expected_counts(self, observed: StreamSet) -> NDArray[np.float64]:
        """Expected events in each segment between observed events, by type, [segments, K].

        Segments are those of stream 0, then of stream 1 and so on; types beyond the 64th share columns.
        """
        return self._add(observed, self.weights, 0)[1]

    def expected_counts_of_halves(self, observed: StreamSet) -> NDArray[np.float64]:
        """The expected counts of the first and of the other half of the islands, [2, segments, K]."""
        return self._add(observed, self._weights_of_halves(), self._middle)

    def _add(self, observed: StreamSet, weights: NDArray[np.float64], middle: int) -> NDArray[np.float64]:
        """Expected counts of the guesses before ``middle`` and of the others, [2, segments, K]."""
        from retrodict.smc.cells import add_events  # loads Numba

        cells = np.zeros((2, int(observed.offsets[-1]) + len(self), min(observed.num_types, 64)))
        own = self.event_times, self.event_types, self.offsets, weights, middle

        def add(first: int, stop: int) -> None:
            add_events(first, stop, *own, observed.event_times, observed.offsets, cells)

        share_out(add, len(self), len(self.event_times))
        return cells


def pick(weights: NDArray[np.float64], uniforms: NDArray[np.float64]) -> NDArray[np.int64]:
    """One guess of each stream, picked by its weights [N, M] and a number in [0, 1), [N]."""
    cumulative = weights.cumsum(1)
    return (cumulative <= uniforms[:, None] * cumulative[:, -1:]).sum(1).clip(max=weights.shape[1] - 1)


def join(parts: list[Guesses], order: NDArray[np.int64]) -> Guesses:
    """Guesses of parts of a set, put together in the order of the set; ``parts`` is emptied, to save memory."""
    if len(parts) == 1 and bool((order == np.arange(len(order))).all()):
        return parts.pop()
    from retrodict.smc.cells import copy_events  # loads Numba

    M, width = parts[0].weights.shape[1], max(p.families.shape[2] for p in parts)
    families = [
        np.pad(p.families, ((0, 0), (0, 0), (0, width - p.families.shape[2])), constant_values=np.nan) for p in parts
    ]
    counts = np.concatenate([np.diff(p.offsets) for p in parts]).reshape(-1, M)[order]
    offsets = np.concatenate([[0], np.cumsum(counts)])
    times, types = np.empty(offsets[-1]), np.empty(offsets[-1], np.int64)
    weights, place, later = np.concatenate([p.weights for p in parts])[order], np.argsort(order), len(order)
    while parts:
        part = parts.pop()
        later -= len(part)
        own, target = part.offsets[::M], offsets[place[later : later + len(part)] * M]
        events = part.event_times, part.event_types, own, target, times, types
        share_out(partial(copy_events, *events), len(part), len(part.event_times))
    return Guesses(times, types, offsets, weights, np.concatenate(families)[order])
