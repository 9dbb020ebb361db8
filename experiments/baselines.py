"""What imputation is compared with: nothing at all, a constant rate, and the median time before each event."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from retrodict.evaluate import transport_score
from retrodict.events.stream import EventStream
from retrodict.events.stream_set import StreamSet
from retrodict.missingness import ByType
from retrodict.models.poisson import Poisson
from retrodict.proposals.filtering import Filtering


def nothing(missing: StreamSet) -> StreamSet:
    """No event in any stream."""
    return missing.keep(np.zeros(missing.num_events, dtype=bool))


def constant_rate(train: StreamSet, missing: ByType) -> Filtering:
    """The exact posterior of the most likely constant-rate process: missing events come at rate ρ_k λ_k."""
    return Filtering(Poisson.from_streams(train), missing)


class MedianRule(NamedTuple):
    """Before each seen event of type k comes a hidden one of type ``hidden[k]`` (-1: none), ``delay[k]`` earlier.

    ``after_previous``: never before the preceding seen event. ``first_at_start``: the first one at the stream's start.
    """

    delay: NDArray[np.float64]
    hidden: NDArray[np.int64]
    after_previous: bool
    first_at_start: bool

    def impute(self, observed: StreamSet) -> StreamSet:
        """The hidden events that the rule puts before the seen ones."""
        return StreamSet([self._one(stream) for stream in observed], observed.types, observed.axis)

    def _one(self, stream: EventStream) -> EventStream:
        some = self.hidden[stream.types] >= 0
        times = stream.times - self.delay[stream.types]
        previous = np.concatenate([[stream.start], stream.times[:-1]])
        times = np.maximum(times, previous if self.after_previous else stream.start)
        if self.first_at_start and len(times):
            times[0] = stream.start
        times, types = times[some], self.hidden[stream.types][some]
        order = np.argsort(times, kind="stable")
        return EventStream(times[order], types[order], stream.start, stream.end, stream.id)


def median_rules(train: StreamSet, missing: ByType) -> list[MedianRule]:
    """All variants of the rule: one median for all types or one each, bounded by the previous event or not."""
    types = np.arange(train.num_types)
    assert missing.vector is not None
    never_seen = missing.vector.numpy() == 1
    before, after = train.event_types[:-1], train.event_types[1:]
    pair = (np.diff(train.stream_of_event) == 0) & never_seen[before] & ~never_seen[after]
    gaps = np.diff(train.event_times)
    hidden, own = np.full(len(types), -1, dtype=np.int64), np.zeros(len(types))
    for k in np.unique(after[pair]):
        here = pair & (after == k)
        hidden[k] = np.bincount(before[here]).argmax()
        own[k] = np.median(gaps[here])
    common = np.full(len(types), np.median(gaps[pair]) if pair.any() else 0.0)
    starts = train.event_times[train.offsets[:-1][train.lengths > 0]] == train.starts[train.lengths > 0]
    at_start = [False, True] if starts.mean() > 0.5 else [False]
    return [MedianRule(d, hidden, p, s) for d in (common, own) for p in (False, True) for s in at_start]


def best_rules(
    rules: Sequence[MedianRule], observed: StreamSet, missing: StreamSet, costs: Sequence[float]
) -> list[MedianRule]:
    """For each cost the rule that comes nearest to what is missing from these (dev) streams."""
    answers = [rule.impute(observed) for rule in rules]
    distances = [[transport_score(missing, answer, cost).distance.sum() for answer in answers] for cost in costs]
    return [rules[int(np.argmin(row))] for row in distances]
