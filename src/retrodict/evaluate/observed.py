"""Do a model and a mechanism together predict incomplete streams as they were observed?

Complete streams are drawn from the model over the same spans of time and censored by the mechanism: counts by type
and gaps between observed events should then be those of the incomplete streams. Complete streams cannot tell this:
their hidden events went missing as the mechanism says. Streams of a model with an end atom end by themselves.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from retrodict.evaluate.findings import Finding, legendre, mean_finding, worst
from retrodict.events.stream_set import StreamSet
from retrodict.missingness.base import Missingness
from retrodict.missingness.conflicts import always_missing
from retrodict.models.base import Model
from retrodict.models.first_dates import dates_of
from retrodict.models.simulate import simulate

PART = "observed"
IMPOSSIBLE = "always missing, yet observed"
_COUNTS, _COUNTS_BY_TYPE, _GAPS = 0.05, 0.1, 0.15  # how far counts (relative), and ranks of gaps, may be off
_FEWEST = 10.0  # events of a type for a finding about it


@dataclass(frozen=True)
class Observed:
    """``counts``, ``predicted`` [N, K]: observed events by type, and their mean over the draws of the same stream.

    ``variance`` [N, K + 1]: of a stream's counts in the draws, by type and, last, in all. ``complete`` [N, K]: events
    before the mechanism hid some. ``gap_ranks`` [G] and ``gap_owner`` [G]: where each observed gap falls among the
    drawn ones, and its stream. ``gap_squares`` [2, N]: mean squares, over the draws, of the sums of ``_gap_sums``.
    ``impossible``: observed events that the mechanism says are always missing.
    """

    types: tuple[str, ...]
    counts: NDArray[np.int64]
    predicted: NDArray[np.float64]
    variance: NDArray[np.float64]
    complete: NDArray[np.float64]
    gap_ranks: NDArray[np.float64]
    gap_owner: NDArray[np.int64]
    gap_squares: NDArray[np.float64]
    impossible: int = 0

    def findings(self) -> list[Finding]:
        """Counts in all and by type, and the distribution of gaps."""
        off = self.counts - self.predicted
        by_type = [
            mean_finding(
                PART, "events of a type, more than predicted", off[:, k], self.predicted[:, k],
                tolerance=_COUNTS_BY_TYPE, least=self.variance[:, k], of=self.types[k],
            )
            for k in range(len(self.types))
            if self.predicted[:, k].any() and max(self.counts[:, k].sum(), self.predicted[:, k].sum()) >= _FEWEST
        ]  # fmt: skip
        total = self.variance[:, -1]
        sums = _gap_sums(self.gap_ranks, self.gap_owner, len(self.counts))
        per = np.bincount(self.gap_owner, minlength=len(self.counts))
        return [
            *([Finding(PART, IMPOSSIBLE, self.impossible, 0.0, 0.0, 0.0, 0.0, 1)] if self.impossible else []),
            mean_finding(
                PART, "events, more than predicted", off.sum(1), self.predicted.sum(1), tolerance=_COUNTS, least=total
            ),
            *worst(by_type),
            *(
                mean_finding(PART, f"{name} of the gaps", rows, per, tolerance=_GAPS, least=squares)
                for name, rows, squares in zip(("centre", "spread"), sums, self.gap_squares, strict=True)
            ),
        ]  # fmt: skip

    def implied_rate(self, name: str | None) -> float:
        """The share of a type's events, or of all, that would have to go missing for the counts to agree."""
        which = slice(None) if name is None else self.types.index(name)
        complete = float(self.complete[:, which].sum())
        return 1.0 - float(self.counts[:, which].sum()) / complete if complete else float("nan")


def compare_observed(
    model: Model, missingness: Missingness, incomplete: StreamSet, *, draws: int = 10, seed: int = 0
) -> Observed:
    """Draw and censor streams over the spans of the incomplete ones, ``draws`` times, and compare."""
    incomplete = model.matched(incomplete)
    most = 1000 + 50 * int(incomplete.lengths.max(initial=0))
    whole, seen, gaps = [], [], []
    dates = None if model.calendar is None else dates_of(incomplete)
    for number in range(draws):
        drawn = simulate(model, len(incomplete), end=incomplete.durations if model.end_atom is None else None,
                         seed=seed + 7919 * (number + 1), max_events=most, start=dates)  # fmt: skip
        shift = np.repeat(incomplete.starts - drawn.starts, drawn.lengths)
        ends = incomplete.ends if model.end_atom is None else incomplete.starts + drawn.durations
        drawn = drawn.replace(
            event_times=drawn.event_times + shift, starts=incomplete.starts, ends=ends,
            ids=incomplete.ids, types=incomplete.types, axis=incomplete.axis,
        )  # fmt: skip
        left, _ = missingness.censor(drawn, seed=seed + 7919 * (number + 1))
        whole.append(_counts(drawn))
        seen.append(_counts(left))
        gaps.append(_gaps(left))
    counted, drawn_gaps = np.stack(seen), np.sort(np.concatenate([own for own, _ in gaps]))
    places = [np.searchsorted(drawn_gaps, own) + 0.5 for own, _ in gaps]
    sums = [
        _gap_sums(place / max(len(drawn_gaps), 1), owner, len(incomplete))
        for place, (_, owner) in zip(places, gaps, strict=True)
    ]
    counted = np.concatenate([counted, counted.sum(2, keepdims=True)], 2)
    own, owner = _gaps(incomplete)
    low, high = (np.searchsorted(drawn_gaps, own, side=side) for side in ("left", "right"))
    ties = np.random.default_rng(seed).random(len(own))
    ranks = (low + ties * (high - low + 1)) / (len(drawn_gaps) + 1)
    return Observed(
        types=incomplete.types,
        counts=_counts(incomplete),
        predicted=counted.mean(0)[:, :-1],
        variance=counted.var(0, ddof=1),
        complete=np.mean(whole, 0),
        gap_ranks=ranks,
        gap_owner=owner,
        gap_squares=np.square(sums).mean(0),
        impossible=int(always_missing(missingness, incomplete).sum()),
    )


def _gap_sums(ranks: NDArray[np.float64], owner: NDArray[np.int64], streams: int) -> NDArray[np.float64]:
    """The first two Legendre polynomials of ranks [G], summed over the gaps of each stream, [2, N]."""
    return np.stack([np.bincount(owner, value, streams) for value in legendre(ranks)])


def _counts(streams: StreamSet) -> NDArray[np.int64]:
    """Events of each stream and type, [N, K]."""
    cell = streams.stream_of_event * streams.num_types + streams.event_types
    return np.bincount(cell, minlength=len(streams) * streams.num_types).reshape(len(streams), streams.num_types)


def _gaps(streams: StreamSet) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """Times between consecutive events of a stream, and the stream of each, [G] each."""
    owner = streams.stream_of_event
    same = np.diff(owner) == 0
    return np.diff(streams.event_times)[same], owner[1:][same]
