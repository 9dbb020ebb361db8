"""Streams as groups of times, one group for each stream and type: the form the kernels read."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from retrodict.errors import DataError
from retrodict.events.stream import EventStream


class Groups(NamedTuple):
    """Times [E] sorted by (stream, type, time); group ``stream * num_types + type`` owns ``offsets`` [G+1].

    ``place`` [E] is the place of each event within its own stream.
    """

    times: NDArray[np.float64]
    offsets: NDArray[np.int64]
    place: NDArray[np.int64]
    num_types: int


def count_types(*collections: Sequence[EventStream]) -> int:
    """One more than the largest type that occurs."""
    types = [s.types for streams in collections for s in streams]
    return int(np.concatenate(types).max(initial=-1)) + 1 if types else 0


def group(streams: Sequence[EventStream], num_types: int) -> Groups:
    """Sort the events of every stream by type, keeping their order in time."""
    lengths = np.array([len(s) for s in streams], dtype=np.int64)
    if not lengths.sum():
        offsets = np.zeros(len(streams) * num_types + 1, dtype=np.int64)
        return Groups(np.empty(0), offsets, np.empty(0, dtype=np.int64), num_types)
    stream = np.repeat(np.arange(len(streams)), lengths)
    key = stream * num_types + np.concatenate([s.types for s in streams])
    order = np.argsort(key, kind="stable")
    offsets = np.zeros(len(streams) * num_types + 1, dtype=np.int64)
    np.cumsum(np.bincount(key, minlength=len(offsets) - 1), out=offsets[1:])
    place = order - (np.cumsum(lengths) - lengths)[stream]
    return Groups(np.concatenate([s.times for s in streams])[order], offsets, place, num_types)


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
