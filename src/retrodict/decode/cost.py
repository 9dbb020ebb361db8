"""What it costs to insert or delete an event, against moving one by a unit of time (section 4.1)."""

from __future__ import annotations

from typing import NamedTuple, TypeAlias

import numpy as np

from retrodict.errors import DataError


class Cost(NamedTuple):
    """C_insert and C_delete: the price of a true event that was not predicted, and of the reverse."""

    insert: float
    delete: float


CostLike: TypeAlias = float | tuple[float, float] | Cost


def as_cost(cost: CostLike) -> Cost:
    """One number C stands for C_insert = C_delete = C; a pair is (C_insert, C_delete)."""
    if isinstance(cost, float) and 0 < cost < np.inf:
        return Cost(float(cost), float(cost))
    try:
        values = np.asarray(cost, dtype=np.float64)
    except (TypeError, ValueError):
        values = np.empty((0, 0))
    if values.shape not in ((), (2,)):
        raise DataError(
            f"a cost must be one number or a pair, not {cost!r}",
            remedy="pass cost=C, or cost=(C_insert, C_delete)",
        )
    insert, delete = (float(value) for value in np.broadcast_to(values, (2,)))
    if not (np.isfinite(insert) and np.isfinite(delete) and min(insert, delete) >= 0):
        raise DataError(
            f"costs must be finite and not negative, but are insert={insert:g}, delete={delete:g}",
            remedy="pass the time that an event may be moved for the price of one insertion or deletion",
        )
    if insert + delete == 0:
        raise DataError(
            "both costs are zero, so that every prediction would be perfect",
            remedy="pass a positive cost",
        )
    return Cost(insert, delete)
