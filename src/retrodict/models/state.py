"""What a model remembers of a history: a NamedTuple of tensors, one row per stream or particle.

The tensors have equal leading dimensions; ``time`` [...] is float64, when the last event was read. States are moved as
whole rows: ``take`` gathers rows (in resampling, or those still active) and ``put`` writes rows back.
"""

from __future__ import annotations

from typing import TypeVar

from torch import Tensor

S = TypeVar("S")


def take(state: S, rows: Tensor) -> S:
    """Rows of a state: ``rows`` holds indices or booleans over the first dimension."""
    return type(state)(*(field[rows] for field in state))  # type: ignore[attr-defined]


def put(state: S, rows: Tensor, new: S) -> S:
    """The state with ``rows`` replaced by ``new`` (a new state; the old one is left as it was)."""
    return type(state)(
        *(old.index_put((rows,), value) for old, value in zip(state, new, strict=True))  # type: ignore[call-overload]
    )
