"""What is really missing, where it is known: beside each stream, and how far an answer is from it."""

from __future__ import annotations

import numpy as np

from retrodict.decode.transport import align_groups, as_cost, group_by_type
from retrodict.errors import DataError
from retrodict.events.stream import EventStream
from retrodict.events.stream_set import StreamSet
from retrodict.report.page.content import Score


def match_truth(truth: StreamSet, observed: StreamSet) -> StreamSet:
    """What is really missing from each observed stream, in their order, types and unit; nothing where not told."""
    if truth.axis.is_calendar != observed.axis.is_calendar:
        has = ("dates", "numbers") if truth.axis.is_calendar else ("numbers", "dates")
        remedy = "give both as dates, or both as numbers"
        raise DataError(f"the truth has {has[0]} as times, the imputed streams {has[1]}", remedy=remedy)
    if None not in (truth.axis.unit, observed.axis.unit):
        truth = truth.with_axis(observed.axis)
    truth = truth.with_types(observed.types)
    position = {name: i for i, name in enumerate(truth.ids)}
    known = set(observed.ids)
    for name in truth.ids:
        if name not in known:
            remedy = "give the truth of the streams that were imputed"
            raise DataError("the truth has this stream, the imputation has not", stream=name, remedy=remedy)

    def of(i: int) -> EventStream:
        start, end, own = float(observed.starts[i]), float(observed.ends[i]), position.get(observed.ids[i])
        if own is None:
            return EventStream.trusted(np.zeros(0), np.zeros(0, np.int64), start, end, observed.ids[i])
        return EventStream.trusted(truth[own].times, truth[own].types, start, end, observed.ids[i])

    # An event outside of its stream cannot be missing from it: StreamSet refuses it.
    return StreamSet([of(i) for i in range(len(observed))], types=observed.types, axis=observed.axis)


def score_answer(answer: StreamSet, truth: StreamSet, cost: float) -> Score:
    """The distance of an answer to the truth and how many of its intervals hold it, as ``evaluate`` reports them.

    Both have the same streams and types in the same order; the answer has columns earliest and latest.
    """
    N, K = len(truth), truth.num_types
    guesses, actual = group_by_type(list(answer), K), group_by_type(list(truth), K)
    match = align_groups(guesses, actual, as_cost(cost))
    found = match >= 0
    cell = np.repeat(np.arange(N * K), np.diff(guesses.offsets))
    when = actual.times[match[found]]
    moved = np.bincount(cell[found], np.abs(guesses.times[found] - when), N * K).astype(np.float64)
    imputed, missing = np.diff(guesses.offsets), np.diff(actual.offsets)
    alone = imputed + missing - 2 * np.bincount(cell[found], minlength=N * K)
    distance = (cost * alone + moved).astype(np.float64)
    stream = cell[found] // max(K, 1)
    place = answer.offsets[stream] + guesses.place[found]
    low, high = (np.asarray(answer.columns[name], np.float64)[place] for name in ("earliest", "latest"))
    covered = np.bincount(stream[(low <= when) & (when <= high)], minlength=N)
    return Score(distance.reshape(N, K), missing.reshape(N, K), np.bincount(stream, minlength=N), covered)
