"""The columns that imputation adds to a table: imputed, probability, earliest and latest."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from retrodict.errors import DataError

if TYPE_CHECKING:
    from retrodict.events.stream_set import StreamSet

RESULTS = ("imputed", "probability", "earliest", "latest")
TIMES = ("earliest", "latest")


def times_among(columns: Mapping[str, Any]) -> tuple[str, ...]:
    """The extra columns that are times on the axis of the streams: the intervals of imputed events."""
    return TIMES if all(name in columns for name in RESULTS[1:]) else ()


def marks(column: NDArray[Any]) -> NDArray[np.bool_]:
    """Which events are imputed, [E], from a column ``imputed`` of any format."""
    return np.isin(column.astype(str), ("True", "true", "1", "1.0"))


def refuse_results(streams: StreamSet) -> None:
    """Raise where the user's own table has a column with the name of one that imputation adds."""
    source = streams.source
    names = {*streams.columns} | (set() if source is None else {name for name in source.names.values() if name})
    taken = [name for name in RESULTS if name in names]
    if taken:
        raise DataError(
            f"the table has a column {taken[0]!r} of its own, and imputation adds one of that name",
            remedy="rename the column or leave it out; if the table was imputed before, give the one that was observed",
        )
