"""A user's own function as a mechanism."""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
from torch import Tensor

from retrodict.errors import ModelError
from retrodict.missingness.arguments import check_probabilities, spread
from retrodict.missingness.base import Context, Missingness, between

Rate = Callable[[Tensor, Context | None], Tensor]
Over = Callable[[Tensor, Tensor, Context | None], Tensor]


class Custom(Missingness):
    """ρ is ``function(t, context)``: [..., K] for times t [...] since the start, or [...] if all types have the same.

    ``bound`` is an upper bound: a number, a dict by type, or a function of (start, stop, context). ``breaks`` are the
    times since the start where it jumps or bends, or a function of the same that gives them, [..., J]. The function
    is not saved with a proposal: give it again with ``load_proposal(folder, missing=...)``.

    >>> Custom(lambda t, context: 0.5 * torch.exp(-t), bound=0.5).bind(["a", "b"]).rates(torch.zeros(1)).tolist()
    [[0.5, 0.5]]
    """

    kind = "custom"

    def __init__(
        self, function: Rate, bound: float | Mapping[str, float] | Over = 1.0, *, breaks: Sequence[float] | Over = ()
    ) -> None:
        if not callable(function):
            raise ModelError(
                f"the mechanism's own function ({function}) is not saved with a proposal. Give it again: "
                "rd.load_proposal(folder, missing=rd.Custom(...))."
            )
        if not callable(bound):
            check_probabilities(bound, "the bound")
        self.function, self.given_bound, self.given_breaks = function, bound, breaks
        self.num_types = 0
        self.most: Tensor | None = None

    def config(self) -> dict[str, Any]:
        """The name of the function."""
        return {"function": getattr(self.function, "__qualname__", type(self.function).__name__)}

    def bind(self, types: Sequence[str], unit: str | None = None) -> Custom:
        """The function for the number of types."""
        bound = copy.copy(self)
        bound.num_types = len(types)
        if not callable(self.given_bound):
            bound.most = spread(self.given_bound, types)
        return bound

    def rates(self, t: Tensor, context: Context | None = None) -> Tensor:
        """The values of the function, [..., K]; a value that is no probability or above the bound is refused."""
        if not self.num_types:
            raise ModelError("a custom mechanism needs a vocabulary: call bind(types) first.")
        values = self.function(t, context)
        if values.shape == t.shape:
            values = values[..., None]
        values = values.expand(*t.shape, self.num_types).to(torch.float64)
        highest = torch.ones(()) if self.most is None else self.most
        if not bool(((values >= 0) & (values <= highest.to(values) * (1 + 1e-9))).all()):
            raise ModelError(
                f"the mechanism's own function gives rates from {float(values.min()):.4g} to "
                f"{float(values.max()):.4g}. They must lie between 0 and its bound, {highest.tolist()}."
            )
        return values

    def bound(self, start: Tensor, stop: Tensor, context: Context | None = None) -> Tensor:
        """The bound as it was given, [..., K]."""
        if callable(self.given_bound):
            values = self.given_bound(start, stop, context)
            values = values[..., None] if values.shape == start.shape else values
            return values.expand(*start.shape, self.num_types)
        assert self.most is not None
        return self.most.to(start.device).expand(*start.shape, self.num_types)

    def breaks(self, start: Tensor, stop: Tensor, context: Context | None = None) -> Tensor | None:
        """The breaks as they were given."""
        if callable(self.given_breaks):
            return between(self.given_breaks(start, stop, context), start, stop)
        return between(torch.tensor(list(self.given_breaks), dtype=start.dtype, device=start.device), start, stop)
