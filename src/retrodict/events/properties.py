"""Columns that say something of whole streams, such as the depot of a driver, and so hold for imputed events too.

A column counts as one only if its value is the same on all events of every stream, and some stream has two or more: a
measurement is not, even where a stream happens to have only one value of it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from retrodict.events.stream_set import StreamSet


def properties(streams: StreamSet) -> frozenset[str]:
    """The extra columns that are properties of streams, as known of the whole source or as seen in these streams."""
    source = streams.source
    if source is not None and source.of_streams is not None:
        return source.of_streams
    return constant_columns(streams) if has_repeats(streams) else frozenset()


def has_repeats(streams: StreamSet) -> bool:
    """Whether some stream has two events or more, so that a constant column means something."""
    return bool((streams.lengths > 1).any())


def constant_columns(streams: StreamSet) -> frozenset[str]:
    """The extra columns of single values that are the same on all events of each stream."""
    first = np.repeat(streams.offsets[:-1], streams.lengths)
    columns = {name: values for name, values in streams.columns.items() if values.ndim == 1}
    return frozenset(name for name, values in columns.items() if _equal(values, values[first]))


def carry(observed: StreamSet, stream: NDArray[np.int64]) -> dict[str, NDArray[Any]]:
    """The properties of streams ``stream`` [V]: NaN or None where a stream has no event that tells its own."""
    known, at = observed.lengths[stream] > 0, observed.offsets[:-1][stream]
    columns = {name: observed.columns[name] for name in observed.columns if name in properties(observed)}
    if known.all():
        return {name: values[at] for name, values in columns.items()}
    return {name: spread(values[at[known]], known) for name, values in columns.items()}


def spread(values: NDArray[Any], mask: NDArray[np.bool_]) -> NDArray[Any]:
    """The values of the events in ``mask`` [E], and nothing for the others: NaN, NaT or None."""
    if values.dtype.kind in "mM":
        column = np.full(len(mask), "NaT", dtype=values.dtype)
        column[mask] = values
        return column
    numeric = np.issubdtype(values.dtype, np.number)
    column = np.full(len(mask), np.nan if numeric else None, dtype=np.float64 if numeric else object)
    column[mask] = values
    return column


def _equal(one: NDArray[Any], two: NDArray[Any]) -> bool:
    """Whether two columns hold the same values, where a missing value equals a missing value."""
    if one.dtype != object:
        missing = one.dtype.kind in "fcmM"
        return np.array_equal(one, two, equal_nan=missing)
    return all(_same(a, b) for a, b in zip(one.tolist(), two.tolist(), strict=True))


def _same(one: Any, two: Any) -> bool:
    if one is two or (one != one and two != two):
        return True
    return type(one) is type(two) and bool(np.all(one == two))
