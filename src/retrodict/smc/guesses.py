"""Weighted guesses of the missing events of a set of streams, as flat arrays."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from retrodict.events.stream import EventStream
from retrodict.events.stream_set import StreamSet


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
        counts = np.diff(self.offsets)[guesses]
        offsets = np.concatenate([[0], np.cumsum(counts)])
        events = np.repeat(self.offsets[guesses] - offsets[:-1], counts) + np.arange(offsets[-1])
        return self.event_times[events], self.event_types[events], offsets

    def halves(self) -> tuple[Guesses, Guesses]:
        """The guesses of the first and of the other half of the islands, with weights that add up to one again."""
        own = np.arange(self.weights.shape[1]).reshape(self.islands, -1)
        middle = self.islands // 2
        first, second = (self._some(own[a].reshape(-1), a) for a in (slice(None, middle), slice(middle, None)))
        return first, second

    def _some(self, own: NDArray[np.int64], islands: slice) -> Guesses:
        N, M = self.weights.shape
        weights = self.weights[:, own]
        sums = weights.sum(1, keepdims=True)
        weights = np.where(sums > 0, weights / np.where(sums > 0, sums, 1.0), 1.0 / len(own))
        rows = (np.arange(N)[:, None] * M + own).reshape(-1)
        return Guesses(*self.take(rows), weights, self.families[:, islands])

    def expected_counts(self, observed: StreamSet) -> NDArray[np.float64]:
        """Expected events in each segment between observed events, by type, [segments, K].

        Segments are those of stream 0, then of stream 1 and so on; types beyond the 64th share columns.
        """
        from retrodict.smc.cells import add_events  # loads Numba

        K = min(observed.num_types, 64)
        first = observed.offsets + np.arange(len(self) + 1)
        cells = np.zeros((int(first[-1]), K))
        own = self.event_times, self.event_types, self.offsets, self.weights
        add_events(*own, observed.event_times, observed.offsets, cells)
        return cells


def join(parts: Sequence[Guesses], order: NDArray[np.int64]) -> Guesses:
    """Guesses of parts of a set, put together in the order of the set."""
    if len(parts) == 1 and bool((order == np.arange(len(order))).all()):
        return parts[0]
    M, width = parts[0].weights.shape[1], max(p.families.shape[2] for p in parts)
    families = [
        np.pad(p.families, ((0, 0), (0, 0), (0, width - p.families.shape[2])), constant_values=np.nan) for p in parts
    ]
    whole = Guesses(
        np.concatenate([p.event_times for p in parts]),
        np.concatenate([p.event_types for p in parts]),
        np.concatenate([[0], np.cumsum(np.concatenate([np.diff(p.offsets) for p in parts]))]),
        np.concatenate([p.weights for p in parts])[order],
        np.concatenate(families)[order],
    )
    times, types, offsets = whole.take((order[:, None] * M + np.arange(M)).reshape(-1))
    return replace(whole, event_times=times, event_types=types, offsets=offsets)
