"""Several mechanisms at work: an event is seen only if it survives all of them."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from functools import reduce
from typing import Any

import torch
from torch import Tensor, nn

from retrodict.errors import ModelError
from retrodict.missingness.base import Context, History, Missingness, between


class Either(Missingness):
    """ρ = 1 - Π (1 - ρ_i): an event goes missing for one reason or another, independently; also written a * b."""

    kind = "either"

    def __init__(self, *parts: Missingness) -> None:
        if not parts or not all(isinstance(part, Missingness) for part in parts):
            raise ModelError("Either takes mechanisms, such as Either(ByType(0.1), Windows([(8, 9)])).")
        self.parts: tuple[Missingness, ...] = tuple(
            p for part in parts for p in (part.parts if isinstance(part, Either) else (part,))
        )
        self.sizes = [len(part.initial((1,))) for part in self.parts]

    def config(self) -> dict[str, Any]:
        """The kinds and arguments of its parts."""
        return {"parts": [{"kind": part.kind, "config": part.config()} for part in self.parts]}

    @classmethod
    def from_config(cls, config: dict[str, Any]) -> Either:
        """The mechanism from the kinds and arguments of its parts."""
        from retrodict.missingness import MECHANISMS

        return cls(*(MECHANISMS[part["kind"]].from_config(part["config"]) for part in config["parts"]))

    def bind(self, types: Sequence[str], unit: str | None = None) -> Either:
        """The mechanism with every part bound."""
        return Either(*(part.bind(types, unit) for part in self.parts))

    @property
    def is_constant(self) -> bool:
        """Whether all parts are constant."""
        return all(part.is_constant for part in self.parts)

    def parameters(self) -> Iterator[nn.Parameter]:
        """The parameters of its parts."""
        return itertools.chain.from_iterable(part.parameters() for part in self.parts)

    def rates(self, t: Tensor, context: Context | None = None) -> Tensor:
        """1 - Π (1 - ρ_i), [..., K]."""
        return self._together(context, lambda part, own: part.rates(t, own))

    def bound(self, start: Tensor, stop: Tensor, context: Context | None = None) -> Tensor:
        """1 - Π (1 - bound_i), [..., K]."""
        return self._together(context, lambda part, own: part.bound(start, stop, own).clamp(max=1.0)) * (1 + 1e-12)

    def breaks(self, start: Tensor, stop: Tensor, context: Context | None = None) -> Tensor | None:
        """The breaks of all parts."""
        each = [part.breaks(start, stop, own) for part, own in self._contexts(context)]
        some = [times for times in each if times is not None]
        return between(torch.cat(some, -1), start, stop) if some else None

    def initial(self, shape: Sequence[int], device: torch.device | str = "cpu") -> History:
        """The summaries of the parts, one after the other."""
        return tuple(field for part in self.parts for field in part.initial(shape, device))

    def update(self, history: History, type: Tensor, time: Tensor) -> History:
        """Every part updates its own summary."""
        own = self._split(history)
        return tuple(f for part, h in zip(self.parts, own, strict=True) for f in part.update(h, type, time))

    def _together(self, context: Context | None, ask: Callable[[Missingness, Context | None], Tensor]) -> Tensor:
        seen = (1 - ask(part, own) for part, own in self._contexts(context))
        return 1 - reduce(torch.mul, seen)

    def _contexts(self, context: Context | None) -> list[tuple[Missingness, Context | None]]:
        if context is None:
            return [(part, None) for part in self.parts]
        own = self._split(context.history)
        return [(part, context._replace(history=h)) for part, h in zip(self.parts, own, strict=True)]

    def _split(self, history: History) -> list[History]:
        fields = iter(history)
        return [tuple(itertools.islice(fields, size)) for size in self.sizes]

    def __repr__(self) -> str:
        return " * ".join(repr(part) for part in self.parts)
