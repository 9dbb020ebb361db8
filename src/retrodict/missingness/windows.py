"""Events of given types go unobserved in given windows of time: outages, off-shift hours."""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable, Mapping, Sequence
from typing import Any, Self

import torch
from torch import Tensor

from retrodict.errors import ModelError
from retrodict.missingness.arguments import check_probability, mask_of, names_in
from retrodict.missingness.base import Context
from retrodict.missingness.schedule import Scheduled, check_time, on_clock
from retrodict.random import stream_keys

Pairs = Iterable[Sequence[Any]]


class Windows(Scheduled):
    """Windows [from, to) in which events go missing with probability ``inside`` (1), and ``outside`` (0) of them.

    ``windows`` are the same for all streams; ``by_stream`` has more windows by stream id. Only events of ``types`` go
    missing, by default of all types. Times are numbers (in ``unit``, else the streams' own), dates, times of day, or
    weekdays with a time of day; None leaves a side open. With ``every`` ("day") windows recur, also across midnight.
    ``clock`` says whether times count from each stream's start ("stream") or on the axis of its dates ("axis"); by
    default dates and recurring windows are on the axis, and plain numbers count from the start. Dates without an
    offset, and times of day, are those of ``zone``, by default of the streams' own.

    >>> Windows([("22:00", "06:00")], types=["call"], every="day").bind(["call"], "hour").bounds.tolist()
    [[[22.0, 24.0], [0.0, 6.0]]]
    """

    kind = "windows"

    def __init__(
        self,
        windows: Pairs = (),
        types: str | Sequence[str] | None = None,
        *,
        by_stream: Mapping[Hashable, Pairs] | None = None,
        inside: float = 1.0,
        outside: float = 0.0,
        every: float | str | None = None,
        clock: str | None = None,
        unit: str | None = None,
        zone: str | None = None,
    ) -> None:
        self.windows = _checked(windows, "a window")
        if not isinstance(by_stream, Mapping | None):
            raise ModelError(f"by_stream is {by_stream!r}. Give a dict from stream ids to lists of windows.")
        self.by_stream = {id: _checked(pairs, f"a window of stream {id!r}") for id, pairs in (by_stream or {}).items()}
        if not (self.windows or any(self.by_stream.values())):
            raise ModelError("there are no windows. Give pairs of times, such as [(8, 17)].")
        self.types = names_in(types)
        self.inside = check_probability(inside, "the missing rate inside windows")
        self.outside = check_probability(outside, "the missing rate outside windows")
        pairs = [*self.windows, *(pair for own in self.by_stream.values() for pair in own)]
        super().__init__((time for pair in pairs for time in pair), every, clock, unit, zone, "a mechanism of windows")
        self.mask: Tensor | None = None
        self.keys, self.bounds = torch.zeros(0, dtype=torch.int64), torch.zeros(1, 0, 2, dtype=torch.float64)

    def config(self) -> dict[str, Any]:
        """As it was given."""
        own = {name: getattr(self, name) for name in ("windows", "types", "by_stream", "inside", "outside")}
        own["by_stream"] = {str(id): pairs for id, pairs in self.by_stream.items()}
        return own | super().config()

    def bind(self, types: Sequence[str], unit: str | None = None) -> Self:
        """Times in the streams' unit, as tables: row 0 for streams without windows of their own."""
        bound = super().bind(types, unit)
        bound.mask = mask_of(self.types, types, "to hide in windows")
        tables = [self._cut(pairs, bound.period, unit) for pairs in ([], *self.by_stream.values())]
        most = max(len(table) for table in tables)
        never = [(math.inf, math.inf)]
        table = torch.tensor([rows + never * (most - len(rows)) for rows in tables], dtype=torch.float64)
        bound.keys, order = stream_keys(0, self.by_stream).sort()
        bound.bounds = table.reshape(len(tables), most, 2)[torch.cat([torch.zeros(1, dtype=torch.int64), 1 + order])]
        return bound

    def meaning(self) -> Any:
        """Rates, types and windows by stream, in the streams' unit."""
        rates, types = [self.inside, self.outside], self._mask(self.bounds).tolist()
        windows = [sorted(rows) for rows in self.bounds.tolist()]
        return [self.kind, rates, types, self.clock, self.period, self.hours_of, self.keys.tolist(), windows]

    def _cut(self, own: list[list[Any]], every: float | None, unit: str | None) -> list[tuple[float, float]]:
        """Windows in the streams' unit; what recurs is cut where the period ends."""
        result = []
        for pair in [*self.windows, *own]:
            low, high = (
                side if value is None else self.in_unit(value, unit, f"the window {pair}")
                for value, side in zip(pair, (-math.inf, math.inf), strict=True)
            )
            if every is None:
                if not low < high:
                    raise ModelError(f"the window {pair} ends before it begins. Give two times in order.")
                result.append((low, high))
                continue
            length = high - low if low < high else high - low + every
            if not 0 < length <= every:
                raise ModelError(f"the window {pair} does not fit into every {self.every}.")
            low %= every
            result.append((low, min(low + length, every)))
            if low + length > every:
                result.append((0.0, low + length - every))
        return result

    def rates(self, t: Tensor, context: Context | None = None) -> Tensor:
        """``inside`` or ``outside`` for the types that go missing, [..., K]."""
        mask = self._mask(t)
        now = self.now(t, context)[..., None]
        low, high = self._bounds(t, context)
        inside = ((now >= low) & (now < high)).any(-1)
        return torch.where(inside[..., None], self.inside * mask, self.outside * mask)

    def bound(self, start: Tensor, stop: Tensor, context: Context | None = None) -> Tensor:
        """The larger of the rates that occur between, [..., K]."""
        mask = self._mask(start)
        a, b, slack = self.stretch(start, stop, context)
        low, high = self._bounds(start, context)
        if self.period is not None:
            low, high = torch.cat([low, low + self.period], -1), torch.cat([high, high + self.period], -1)
        touched = ((a < high + slack) & (b >= low - slack)).any(-1)
        anywhere = self.changes_clocks(start, stop, context)
        touched = touched | anywhere
        within = ((a >= low + slack) & (b < high - slack)).any(-1) & ~anywhere
        inside = torch.where(touched[..., None], self.inside * mask, 0.0)
        return torch.maximum(inside, torch.where(within[..., None], 0.0, self.outside * mask))

    def breaks(self, start: Tensor, stop: Tensor, context: Context | None = None) -> Tensor | None:
        """The ends of windows."""
        low, high = self._bounds(start, context)
        return self.recurring(torch.cat([low, high], -1), start, stop, context)

    def is_open(self, context: Context, ends: Tensor) -> bool:
        """Whether any window that does not recur lies in part between the start and the end of a stream, [N] each."""
        first = on_clock(torch.zeros_like(ends), context, self.clock)[..., None]
        low, high = self._bounds(ends, context)
        return bool(((first < high) & (first + ends[..., None] >= low)).any())

    def opened(self, context: Context, ends: Tensor) -> Tensor:
        """Which windows of all streams, [J], lie in part between the start and the end of a stream, [N] each."""
        first = on_clock(torch.zeros_like(ends), context, self.clock)[..., None]
        low, high = self.bounds[0, : len(self.windows)].unbind(-1)
        return ((first < high) & (first + ends[..., None] >= low)).any(0)

    def follow(self, context: Context, ends: Tensor, gap: float) -> Tensor:
        """Whether a window that does not recur is open where a stream ends, or opens at most a ``gap`` later, [N]."""
        last = on_clock(ends, context, self.clock)[..., None]
        low, high = self._bounds(ends, context)
        return ((last < high) & (last + gap >= low)).any(-1)

    def _mask(self, like: Tensor) -> Tensor:
        if self.mask is None:
            raise ModelError("windows need a vocabulary and a unit of time: call bind(types, unit) first.")
        return self.mask.to(like.device)

    def _bounds(self, like: Tensor, context: Context | None) -> tuple[Tensor, Tensor]:
        """Both ends of each row's windows, [J] or [..., J]."""
        table = self.bounds.to(like.device)
        if not len(self.keys):
            low, high = table[0].unbind(-1)
            return low, high
        if context is None:
            raise ModelError("windows by stream need to know which stream is asked about: give a context.")
        keys = self.keys.to(like.device)
        at = torch.searchsorted(keys, context.stream.contiguous()).clamp(max=len(keys) - 1)
        low, high = table[torch.where(keys[at] == context.stream, at + 1, 0)].unbind(-1)
        return low, high

    def __repr__(self) -> str:
        some = f"{len(self.windows)} for all streams, {len(self.by_stream)} streams with their own"
        return f"Windows({some}, types={self.types}, every={self.every})"


def _checked(windows: Pairs, what: str) -> list[list[Any]]:
    if isinstance(windows, str) or not isinstance(windows, Iterable):
        raise ModelError(f"the windows are {windows!r}. Give a list of pairs of times, such as [(8, 17)].")
    pairs = [list(pair) if isinstance(pair, Sequence) and not isinstance(pair, str) else [pair] for pair in windows]
    for pair in pairs:
        if len(pair) != 2:
            raise ModelError(f"{what} is {pair[0] if len(pair) == 1 else pair!r}. Give two times, from and to.")
    return [[None if time is None else check_time(time, what) for time in pair] for pair in pairs]
