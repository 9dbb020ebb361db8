"""The optimal transport distance between two streams (section 4.1, Algorithm 2).

>>> from retrodict.events.stream import EventStream
>>> predicted = EventStream([1.0, 5.0], [0, 0], end=10.0)
>>> true = EventStream([1.5, 9.0], [0, 1], end=10.0)
>>> result = transport(predicted, true, cost=1.0)
>>> result.distance, result.moved, result.inserted, result.deleted
(2.5, 0.5, 1, 1)
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from retrodict.decode.align import align_groups
from retrodict.decode.cost import CostLike, as_cost
from retrodict.decode.grouped import check_streams, count_types, group
from retrodict.errors import DataError
from retrodict.events.stream import EventStream

_NO_MATCH = np.empty(0, dtype=np.int64)


class Transport(NamedTuple):
    """The cheapest edit of one stream into another.

    ``distance`` = C_insert * inserted + C_delete * deleted + moved (eq. decomp); ``alignment`` [A, 2] holds
    the indices of aligned events in the two streams, in the order of the first.
    """

    distance: float
    moved: float
    inserted: int
    deleted: int
    alignment: NDArray[np.int64]


def transport(a: EventStream, b: EventStream, cost: CostLike) -> Transport:
    """Edit the prediction ``a`` into the truth ``b``; only events of the same type are aligned.

    Events of ``a`` left unaligned are deleted, those of ``b`` inserted; ``cost`` is C, or the pair
    (C_insert, C_delete). Events further apart than C_insert + C_delete are never aligned.
    """
    a, b = check_streams([a, b], "streams")
    insert, delete = as_cost(cost)
    num_types = count_types([a, b])
    left, right = group([a], num_types), group([b], num_types)
    match = np.empty(len(a), dtype=np.int64)
    types = np.arange(num_types)
    pairs = np.stack([types, types], axis=1)
    align_groups(left.times, left.offsets, right.times, right.offsets, pairs, insert, delete, match)
    aligned = match >= 0
    moved = float(np.abs(left.times[aligned] - right.times[match[aligned]]).sum())
    alignment = np.stack([left.place[aligned], right.place[match[aligned]]], axis=1)
    alignment = alignment[np.argsort(alignment[:, 0], kind="stable")]
    inserted, deleted = len(b) - len(alignment), len(a) - len(alignment)
    return Transport(insert * inserted + delete * deleted + moved, moved, inserted, deleted, alignment)


def distances(a: Sequence[EventStream], b: Sequence[EventStream], cost: CostLike) -> NDArray[np.float64]:
    """Distance of each pair a[n], b[n], as an array [N]: one compiled call for all of them."""
    a, b = check_streams(a, "a"), check_streams(b, "b")
    if len(a) != len(b):
        raise DataError(f"{len(a)} streams in a but {len(b)} in b", remedy="pass as many of one as the other")
    streams = np.arange(len(a))
    return _pair_distances(a, b, np.stack([streams, streams], axis=1), cost)


def distance_matrix(a: Sequence[EventStream], b: Sequence[EventStream], cost: CostLike) -> NDArray[np.float64]:
    """Distance of every stream in ``a`` to every stream in ``b``, as an array [len(a), len(b)]."""
    a, b = check_streams(a, "a"), check_streams(b, "b")
    pairs = np.stack(np.meshgrid(np.arange(len(a)), np.arange(len(b)), indexing="ij"), axis=-1)
    return _pair_distances(a, b, pairs.reshape(-1, 2), cost).reshape(len(a), len(b))


def _pair_distances(
    a: list[EventStream], b: list[EventStream], pairs: NDArray[np.int64], cost: CostLike
) -> NDArray[np.float64]:
    insert, delete = as_cost(cost)
    num_types = count_types(a, b)
    left, right = group(a, num_types), group(b, num_types)
    groups = pairs[:, None, :] * num_types + np.arange(num_types)[:, None]
    result = align_groups(
        left.times,
        left.offsets,
        right.times,
        right.offsets,
        np.ascontiguousarray(groups.reshape(-1, 2)),
        insert,
        delete,
        _NO_MATCH,
    )
    return result.reshape(len(pairs), num_types).sum(axis=1)
