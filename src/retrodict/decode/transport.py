"""The optimal transport distance between two streams (section 4.1; appendix E, Algorithm 2).

A predicted stream is edited into the true one: an event moves for the time it is moved by, is deleted for
C_delete or inserted for C_insert, and only events of one type are aligned. The distance is the cost of the cheapest
edit, found for each type by dynamic programming over the two sequences of times.

>>> from retrodict.events.stream import EventStream
>>> predicted = EventStream([1.0, 5.0], [0, 0], end=10.0)
>>> true = EventStream([1.5, 9.0], [0, 1], end=10.0)
>>> result = transport(predicted, true, cost=1.0)
>>> result.distance, result.moved, result.inserted, result.deleted
(2.5, 0.5, 1, 1)
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, TypeAlias

import numpy as np
from numba import njit

from retrodict.decode.kernels import Bytes, Floats, Ints, entry_point, longest
from retrodict.errors import DataError
from retrodict.events.stream import EventStream

DELETE, MOVE, INSERT = np.int8(0), np.int8(1), np.int8(2)
LARGEST_SHARED = 1 << 16  # cells; the band of a larger table is much smaller than the table
_NO_MATCH = np.empty(0, dtype=np.int64)


class Cost(NamedTuple):
    """C_insert and C_delete: the price of a true event that was not predicted, and of the reverse."""

    insert: float
    delete: float


CostLike: TypeAlias = float | tuple[float, float] | Cost


class Transport(NamedTuple):
    """The cheapest edit of one stream into another.

    ``distance`` = C_insert * inserted + C_delete * deleted + moved (eq. decomp); ``alignment`` [A, 2] holds
    the indices of aligned events in the two streams, in the order of the first.
    """

    distance: float
    moved: float
    inserted: int
    deleted: int
    alignment: Ints


def transport(a: EventStream, b: EventStream, cost: CostLike) -> Transport:
    """Edit the prediction ``a`` into the truth ``b``; only events of the same type are aligned.

    Events of ``a`` left unaligned are deleted, those of ``b`` inserted; ``cost`` is C, or the pair
    (C_insert, C_delete). Events further apart than C_insert + C_delete are never aligned.
    """
    a, b = check_streams([a, b], "streams")
    price = as_cost(cost)
    num_types = count_types([a, b])
    left, right = group_by_type([a], num_types), group_by_type([b], num_types)
    match = align_groups(left, right, price)
    aligned = match >= 0
    moved = float(np.abs(left.times[aligned] - right.times[match[aligned]]).sum())
    alignment = np.stack([left.place[aligned], right.place[match[aligned]]], axis=1)
    alignment = alignment[np.argsort(alignment[:, 0], kind="stable")]
    inserted, deleted = len(b) - len(alignment), len(a) - len(alignment)
    distance = price.insert * inserted + price.delete * deleted + moved
    return Transport(distance, moved, inserted, deleted, alignment)


def distances(a: Sequence[EventStream], b: Sequence[EventStream], cost: CostLike) -> Floats:
    """Distance of each pair a[n], b[n], as an array [N]: one compiled call for all of them."""
    a, b = check_streams(a, "a"), check_streams(b, "b")
    if len(a) != len(b):
        raise DataError(f"{len(a)} streams in a but {len(b)} in b", remedy="pass as many of one as the other")
    return _pair_distances(a, b, _same_places(len(a)), cost)


def distance_matrix(a: Sequence[EventStream], b: Sequence[EventStream], cost: CostLike) -> Floats:
    """Distance of every stream in ``a`` to every stream in ``b``, as an array [len(a), len(b)]."""
    a, b = check_streams(a, "a"), check_streams(b, "b")
    pairs = np.stack(np.meshgrid(np.arange(len(a)), np.arange(len(b)), indexing="ij"), axis=-1)
    return _pair_distances(a, b, pairs.reshape(-1, 2), cost).reshape(len(a), len(b))


def _same_places(size: int) -> Ints:
    """The pairs [[0, 0], [1, 1], ...]."""
    return np.repeat(np.arange(size), 2).reshape(size, 2)


def _pair_distances(a: list[EventStream], b: list[EventStream], pairs: Ints, cost: CostLike) -> Floats:
    num_types = count_types(a, b)
    groups = pairs[:, None, :] * num_types + np.arange(num_types)[:, None]
    groups = np.ascontiguousarray(groups.reshape(-1, 2))
    result = _align_pairs(group_by_type(a, num_types), group_by_type(b, num_types), groups, as_cost(cost), _NO_MATCH)
    return result.reshape(len(pairs), num_types).sum(axis=1)


# --- what comes in -----------------------------------------------------------------------------------------


_LARGEST = 1e300  # a cost; sums of larger ones overflow


def as_cost(cost: CostLike) -> Cost:
    """One number C stands for C_insert = C_delete = C; a pair is (C_insert, C_delete)."""
    if isinstance(cost, float) and 0 < cost <= _LARGEST:
        return Cost(float(cost), float(cost))
    try:
        values = np.asarray(cost, dtype=np.float64)
    except (TypeError, ValueError):
        values = np.empty((0, 0))
    if values.shape not in ((), (2,)):
        raise DataError(
            f"a cost must be one number or a pair, not {cost!r}", remedy="pass cost=C, or cost=(C_insert, C_delete)"
        )
    insert, delete = np.broadcast_to(values, (2,)).tolist()
    if not (np.isfinite(insert) and np.isfinite(delete) and min(insert, delete) >= 0):
        raise DataError(
            f"costs must be finite and not negative, but are insert={insert:g}, delete={delete:g}",
            remedy="pass the time that an event may be moved for the price of one insertion or deletion",
        )
    if max(insert, delete) > _LARGEST:
        raise DataError(f"a cost of {max(insert, delete):g} is too large", remedy=f"pass at most {_LARGEST:g}")
    if insert + delete == 0:
        raise DataError("both costs are zero, so that every prediction would be perfect", remedy="pass a positive cost")
    return Cost(insert, delete)


def check_streams(streams: object, name: str) -> list[EventStream]:
    """The streams as a list, or an error that says which of them is not a stream."""
    if isinstance(streams, EventStream):
        raise DataError(f"{name} is a single EventStream", remedy=f"pass {name} as a list of streams")
    try:
        items = list(streams)  # type: ignore[call-overload]
    except TypeError as error:
        raise DataError(
            f"{name} must be a list of EventStream, not {type(streams).__name__}",
            remedy=f"pass {name} as a list of streams",
        ) from error
    for position, item in enumerate(items):
        if not isinstance(item, EventStream):
            raise DataError(
                f"{name}[{position}] is a {type(item).__name__}, not an EventStream",
                remedy="build each with rd.EventStream(times, types, end=T)",
            )
    return items


class Groups(NamedTuple):
    """Times [E] sorted by (stream, type, time); group ``stream * num_types + type`` owns ``offsets`` [G+1].

    ``place`` [E] is the place of each event within its own stream.
    """

    times: Floats
    offsets: Ints
    place: Ints


def count_types(*collections: Sequence[EventStream]) -> int:
    """One more than the largest type that occurs."""
    types = [s.types for streams in collections for s in streams]
    return int(np.concatenate(types).max(initial=-1)) + 1 if types else 0


def group_by_type(streams: Sequence[EventStream], num_types: int) -> Groups:
    """Sort the events of every stream by type, keeping their order in time."""
    offsets = np.zeros(len(streams) * num_types + 1, dtype=np.int64)
    lengths = np.array([len(s) for s in streams], dtype=np.int64)
    if not lengths.sum():
        return Groups(np.empty(0), offsets, np.empty(0, dtype=np.int64))
    stream = np.repeat(np.arange(len(streams)), lengths)
    key = stream * num_types + np.concatenate([s.types for s in streams])
    order = np.argsort(key, kind="stable")
    np.cumsum(np.bincount(key, minlength=len(offsets) - 1), out=offsets[1:])
    place = order - (np.cumsum(lengths) - lengths)[stream]
    return Groups(np.concatenate([s.times for s in streams])[order], offsets, place)


# --- Algorithm 2 (Align), for a single event type ----------------------------------------------------------
#
# The printed algorithm forgets to accumulate its first row and decrements indices before it uses them in the
# back-trace; both are right here. Two events further apart than C_insert + C_delete are never aligned, so row i
# of the table is only kept for the true events in that band around predicted event i.


class Workspace(NamedTuple):
    """Scratch memory of ``align``, so that many share one allocation; [I+1], [J+1], and cells of the table."""

    low: Ints
    high: Ints
    above: Floats
    row: Floats
    edits: Bytes


@njit
def workspace(predicted: int, true: int) -> Workspace:
    """Memory for at most this many predicted and true events."""
    return Workspace(
        np.empty(predicted + 1, np.int64),
        np.empty(predicted + 1, np.int64),
        np.empty(true + 1),
        np.empty(true + 1),
        np.empty(min(predicted * (true + 1), LARGEST_SHARED), np.int8),
    )


@njit
def _band(predicted: Floats, true: Floats, reach: float, low: Ints, high: Ints) -> int:
    """For each row, how many true events lie before (``low``) and up to the end of (``high``) its band.

    Returns the number of cells in all bands.
    """
    first = stop = cells = 0
    low[0] = high[0] = 0
    for i in range(1, len(predicted) + 1):
        while first < len(true) and true[first] < predicted[i - 1] - reach:
            first += 1
        while stop < len(true) and true[stop] <= predicted[i - 1] + reach:
            stop += 1
        low[i] = first
        high[i] = stop
        cells += stop - first + 1
    return cells


@njit
def align(predicted: Floats, true: Floats, cost: Cost, match: Ints, work: Workspace) -> float:
    """Distance L(predicted, true) of eq. (editdist); ``match`` [I] receives the aligned true index or -1.

    ``predicted`` [I] and ``true`` [J] are sorted. Among alignments of equal cost, moving is preferred.
    """
    insert, delete = cost.insert, cost.delete
    low, high, above, row = work.low, work.high, work.above, work.row
    edits = work.edits
    cells = _band(predicted, true, insert + delete, low, high)
    if cells > len(edits):
        edits = np.empty(cells, np.int8)
    above[0] = 0.0
    cell = 0
    for i in range(1, len(predicted) + 1):
        for j in range(high[i - 1] + 1, high[i] + 1):
            # Right of its band the row above goes on by insertions alone.
            above[j - low[i - 1]] = above[j - 1 - low[i - 1]] + insert
        time, within = predicted[i - 1], true[low[i] : high[i]]
        upper, lower, made = above[low[i] - low[i - 1] :], row[1:], edits[cell + 1 :]
        diagonal = upper[0]
        best = diagonal + delete
        row[0], edits[cell] = best, DELETE
        for j in range(len(within)):
            inserted = best + insert
            moved = diagonal + abs(time - within[j])
            diagonal = upper[j + 1]
            best, edit = diagonal + delete, DELETE
            if moved <= best:
                best, edit = moved, MOVE
            if inserted < best:
                best, edit = inserted, INSERT
            lower[j], made[j] = best, edit
        cell += len(within) + 1
        above, row = row, above
    i, j = len(predicted), len(true)
    distance = above[high[i] - low[i]] + (j - high[i]) * insert
    while i > 0:
        j = min(j, high[i])
        edit = edits[cell - (high[i] - j) - 1]
        if edit == INSERT:
            j -= 1
            continue
        cell -= high[i] - low[i] + 1
        i -= 1
        match[i] = -1
        if edit == MOVE:
            j -= 1
            match[i] = j
    return distance


@entry_point
def _align_pairs(predicted: Groups, true: Groups, pairs: Ints, cost: Cost, match: Ints) -> Floats:
    """Distances [P] of many pairs of groups at once; ``pairs`` [P, 2] index the two lists of groups.

    Where ``match`` is not empty it receives, pair after pair, the place among all true events (or -1) for each
    event of the predicted group.
    """
    distances = np.empty(len(pairs))
    largest = longest(predicted.offsets)
    work = workspace(largest, longest(true.offsets))
    scratch = np.empty(largest, np.int64)
    written = 0
    for pair in range(len(pairs)):
        a, b = pairs[pair]
        own = predicted.times[predicted.offsets[a] : predicted.offsets[a + 1]]
        start = true.offsets[b]
        distances[pair] = align(own, true.times[start : true.offsets[b + 1]], cost, scratch, work)
        if len(match) > 0:
            for i in range(len(own)):
                match[written + i] = -1 if scratch[i] < 0 else start + scratch[i]
            written += len(own)
    return distances


def align_groups(predicted: Groups, true: Groups, cost: Cost) -> Ints:
    """For each predicted event the event of the true group of the same number that is aligned to it, or -1."""
    match = np.empty(len(predicted.times), dtype=np.int64)
    _align_pairs(predicted, true, _same_places(len(predicted.offsets) - 1), cost, match)
    return match
