"""A wide prior over mechanisms: each stream has one of its own, drawn by its id and a seed.

A smoother without a mechanism is trained on it, so that it can be given any mechanism later. Drawn are

- rates by type: one for all types, or types that are always hidden and others never, or some partly;
- windows: outages of any length at any place, of all types or of some;
- steps: rates that switch to and fro between two lists of rates by type;
- reporting delays, exponential or lognormal, on any scale;

one of the four, or several at work at once. Lengths of time are shares of the stream's duration. Types whose names have
a word in common (``pick-up:Bronx``, ``pick-up:Queens``) often go missing together.
"""

from __future__ import annotations

import copy
import itertools
import math
import re
from collections.abc import Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor

from retrodict.errors import ModelError
from retrodict.missingness.base import Context, Missingness
from retrodict.random import split, uniform

_ALONE = (0.4, 0.17, 0.1, 0.15)  # how often only rates by type, windows, steps or delays are at work; else several
_WINDOWS, _STEPS = 2, 5  # at most
_ONES, _EACH = 44, 12  # how many numbers a mechanism is drawn with: for itself, and for each type
_GROUPS = 64  # at most
_CUTS = (0.3, 1.5, 5.0)  # of a delay's scale, between which its survival is smooth


class _Drawn(NamedTuple):
    """One mechanism for each row: what never happens lies at infinity, or has rate 0.

    ``base`` [..., K]; windows ``low``, ``high`` [..., W] with rates ``inside`` [..., W, K]; ``knots`` [..., J] between
    which the rates ``odd`` and ``even`` [..., K] alternate; delays of ``scale`` and ``spread`` [...] (0 where they are
    exponential) for the types of ``late`` [..., K], until the stream's ``end`` [...].
    """

    base: Tensor
    low: Tensor
    high: Tensor
    inside: Tensor
    knots: Tensor
    odd: Tensor
    even: Tensor
    scale: Tensor
    spread: Tensor
    late: Tensor
    end: Tensor


class Anything(Missingness):
    """A mechanism of its own for each stream, drawn from a wide prior; ``redrawn`` gives others."""

    kind = "anything"

    def __init__(self) -> None:
        self.seed = 0
        self.groups: Tensor | None = None
        self._last: tuple[Tensor, Tensor, tuple[Any, ...], _Drawn] | None = None  # streams, ends, where they lie

    def config(self) -> dict[str, Any]:
        """Nothing: the seed is chosen where mechanisms are drawn."""
        return {}

    def bind(self, types: Sequence[str], unit: str | None = None) -> Anything:
        """The prior for these types."""
        bound = copy.copy(self)
        bound.groups, bound._last = _groups(types), None
        return bound

    def redrawn(self, seed: int) -> Anything:
        """Other mechanisms for all streams."""
        other = copy.copy(self)
        other.seed, other._last = seed, None
        return other

    def rates(self, t: Tensor, context: Context | None = None) -> Tensor:
        """1 - Π (1 - ρ) over what is at work, [..., K]."""
        m = self._draw(context)
        now = t[..., None]
        within = ((now >= m.low) & (now < m.high))[..., None]
        stepped = torch.where((now >= m.knots).sum(-1, keepdim=True) % 2 == 1, m.odd, m.even)
        return 1 - (1 - m.base) * (1 - m.inside * within).prod(-2) * (1 - stepped) * (1 - _delayed(m, t))

    def bound(self, start: Tensor, stop: Tensor, context: Context | None = None) -> Tensor:
        """The same of the largest rates between, [..., K]."""
        m = self._draw(context)
        touched = ((start[..., None] < m.high) & (stop[..., None] >= m.low))[..., None]
        stepped = torch.maximum(m.odd, m.even)
        delayed = _delayed(m, stop)  # later events are more likely missing
        most = 1 - (1 - m.base) * (1 - m.inside * touched).prod(-2) * (1 - stepped) * (1 - delayed)
        return (most * (1 + 1e-6) + 1e-12).clamp(max=1.0).expand(*start.shape, -1)

    def breaks(self, start: Tensor, stop: Tensor, context: Context | None = None) -> Tensor | None:
        """The ends of windows, the steps, and a few lengths of delay before the end: always the same number."""
        m = self._draw(context)
        delays = torch.stack([m.end - m.scale * cut for cut in _CUTS], -1)
        times, first, last = torch.broadcast_tensors(
            torch.cat([m.low, m.high, m.knots, delays], -1), start[..., None], stop[..., None]
        )
        return torch.where((times > first) & (times < last), times, last).sort(-1).values

    def _draw(self, context: Context | None) -> _Drawn:
        """The mechanism of each row's stream."""
        if context is None or context.end is None or self.groups is None:
            raise ModelError(
                "a prior over mechanisms needs to know types, streams and their ends: call bind(types), and give a "
                "context."
            )
        stream, end = torch.broadcast_tensors(_once(context.stream), _once(context.end))
        shape, stream, end = stream.shape, stream.reshape(-1), end.reshape(-1)
        place, last = (*_place(stream), *_place(end)), self._last
        if last is None or last[2] != place:  # a batch asks several times
            self._last = last = stream, end, place, self._draw_for(stream, end)
        return _Drawn(*(field.reshape(shape + field.shape[1:]) for field in last[3]))

    def _draw_for(self, stream: Tensor, end: Tensor) -> _Drawn:
        """The mechanisms of streams [R]."""
        assert self.groups is not None
        self.groups = self.groups.to(end.device)
        dice = _Dice(split(stream, self.seed), self.groups)
        lot = dice.one()
        which = torch.stack([lot >= edge for edge in itertools.accumulate(_ALONE)]).sum(0)
        by_type, windows, steps, delays = ((which == i) | ((which == 4) & (dice.one() < 0.5)) for i in range(4))
        nothing = ~(by_type | windows | steps | delays)
        base = torch.where((by_type | nothing)[..., None], dice.rates(), 0.0)
        low, high, inside = self._windows(dice, windows, end)
        count = torch.where(steps, 1 + (dice.one() * _STEPS).floor(), 0.0)
        knots = torch.stack([torch.where(j < count, dice.one() * end, torch.inf) for j in range(_STEPS)], -1)
        odd, even = (torch.where(steps[..., None], dice.rates(), 0.0) for _ in range(2))
        scale = torch.where(delays, end * 10 ** (2.3 * dice.one() - 2), -torch.inf)
        spread = torch.where(dice.one() < 0.5, 0.0, 0.3 + 1.2 * dice.one())
        late = torch.where(delays[..., None], dice.mask(), 0.0)
        return _Drawn(base, low, high, inside, knots, odd, even, scale, spread, late, end)

    @staticmethod
    def _windows(dice: _Dice, some: Tensor, end: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Both ends of up to two windows, [..., W] each, and the rates inside, [..., W, K]."""
        parts = []
        for number in range(_WINDOWS):
            there = some if number == 0 else some & (dice.one() < 0.4)
            length = end * 10 ** (-1.7 * dice.one())
            low = (end + length) * dice.one() - length
            rate = torch.where(dice.one() < 0.7, 1.0, dice.one())
            ends = (torch.where(there, time, torch.inf) for time in (low, low + length))
            parts.append((*ends, rate[..., None] * dice.mask()))
        lows, highs, rates = (list(field) for field in zip(*parts, strict=True))
        return torch.stack(lows, -1), torch.stack(highs, -1), torch.stack(rates, -2)

    def __repr__(self) -> str:
        return "Anything()"


class _Dice:
    """Uniform numbers for each row, one after the other: ``one`` [...], or ``each`` [..., K] by type."""

    def __init__(self, keys: Tensor, groups: Tensor) -> None:
        self.groups, num_types = groups, groups.shape[1]
        throws = torch.arange(_ONES + _EACH * num_types, device=keys.device)
        ones, each = uniform(keys[..., None], throws).split([_ONES, _EACH * num_types], -1)
        self._ones = iter(ones.unbind(-1))
        self._each = iter(each.unflatten(-1, (_EACH, num_types)).unbind(-2))

    def one(self) -> Tensor:
        """A number for each row."""
        return next(self._ones)

    def each(self) -> Tensor:
        """A number for each row and type."""
        return next(self._each)

    def some(self) -> Tensor:
        """Each type with a probability that is drawn too, or the types of a group: 1 or 0."""
        share, lot, group = self.one()[..., None], self.each(), self.one()
        chosen = (lot < share).double()
        if not len(self.groups):
            return chosen
        together = self.groups[(2 * group * len(self.groups)).long() % len(self.groups)]
        return torch.where(group[..., None] < 0.5, together, chosen)

    def mask(self) -> Tensor:
        """All types or some: 1 or 0."""
        return torch.where(self.one()[..., None] < 0.6, 1.0, self.some())

    def rates(self) -> Tensor:
        """One rate for all types, or for some; or some types hidden; or some hidden, some seen and some partly."""
        kind, rate, lot = self.one()[..., None], self.one()[..., None], self.each()
        partly = torch.where(lot < 0.35, 0.0, torch.where(lot < 0.6, 1.0, self.each()))
        some = self.some()
        few = torch.where(kind < 0.65, some, torch.where(kind < 0.8, rate * some, partly))
        return torch.where(kind < 0.35, rate, few)


def _groups(types: Sequence[str]) -> Tensor:
    """The sets of types, of two at least but not all, whose names have a word in common, [G, K]: 1 or 0."""
    words = [set(re.split(r"[^A-Za-z0-9]+", name)) for name in types]
    found = {tuple(word in own for own in words): None for word in sorted(set().union(*words)) if word}
    kept = [group for group in found if 2 <= sum(group) < len(types)][:_GROUPS]
    return torch.tensor(kept, dtype=torch.float64).reshape(len(kept), len(types))


def _delayed(m: _Drawn, t: Tensor) -> Tensor:
    """The probability that an event at t [...] was not reported by the end, [..., K]."""
    left = (m.end - t).clamp(min=0) / m.scale.clamp(min=1e-300)
    above = left.clamp(min=1e-300).log() / m.spread.clamp(min=1e-3)
    survival = torch.where(m.spread > 0, 0.5 * torch.erfc(above / math.sqrt(2)), torch.exp(-left))
    return survival[..., None] * m.late


def _place(x: Tensor) -> tuple[Any, ...]:
    """Where a tensor lies in memory and how often it was written to: as long as it is held, no other is the same."""
    written = object() if x.is_inference() else x._version  # which is not counted there: the same as no other
    return x.device, x.untyped_storage().data_ptr(), x.storage_offset(), x.shape, x.stride(), x.dtype, written


def _once(x: Tensor) -> Tensor:
    """The tensor without what ``expand`` repeats, to be broadcast again."""
    for dim, stride in enumerate(x.stride()):
        if stride == 0 and x.shape[dim] > 1:
            x = x.narrow(dim, 0, 1)
    return x
