"""Extra columns: values that belong to events, are carried along and are given back."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

RESERVED = ("stream", "time", "type", "start", "end")


def column_from_list(values: Sequence[Any]) -> NDArray[Any]:
    """An array [E] of the simplest dtype that holds every value; None stays None, or NaN among floats."""
    kinds = {type(value) for value in values} - {type(None)}
    complete = not any(value is None for value in values)
    if complete and kinds in ({bool}, {int}):
        try:
            return np.array(values, dtype=bool if kinds == {bool} else np.int64)
        except OverflowError:
            return object_array(values)
    if kinds in ({float}, {int, float}):
        return np.array([np.nan if value is None else value for value in values], dtype=np.float64)
    return object_array(values)


def object_array(values: Sequence[Any]) -> NDArray[Any]:
    """An array [E] of Python objects, even where these are sequences."""
    return np.fromiter(values, dtype=object, count=len(values))


def free_name(name: str, taken: Sequence[str]) -> str:
    """The name, with as many underscores as it takes to differ from the others."""
    while name in taken:
        name += "_"
    return name
