"""Particles that follow a script: given missing events, read again instead of drawn.

Each row has a window of time in which q counts. A row whose window is ``drawn`` draws its events there afresh and
follows its script everywhere else; another follows it throughout. Either way a sweep then weighs the row by p of the
whole stream over q of the window alone: what moving a particle within a window has to know (``smc/rejuvenate.py``).
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from retrodict.smc.propose import Step


@dataclass(frozen=True)
class Script:
    """For R rows: ``times`` [R, C] (infinite beyond a row's events), ``types`` [R, C], and windows.

    ``left`` and ``right`` [R]: the window is (left, right], and the start instant too where left is 0; ``drawn`` [R].
    """

    times: Tensor
    types: Tensor
    left: Tensor
    right: Tensor
    drawn: Tensor

    def is_drawing(self, rows: Tensor, now: Tensor) -> Tensor:
        """Whether these rows, which have come to ``now``, draw what comes next."""
        return self.drawn[rows] & (now >= self.left[rows]) & (now < self.right[rows])

    def horizon(self, rows: Tensor, now: Tensor, right: Tensor) -> Tensor:
        """How far these rows may go in the same manner: to an edge of their window or to ``right``."""
        left, stop = self.left[rows], self.right[rows]
        edge = torch.where(now < left, left, torch.where(now < stop, stop, torch.inf))
        return torch.where(self.drawn[rows], torch.minimum(edge, right), right)

    def catch_up(self, rows: Tensor, followed: Tensor, now: Tensor) -> Tensor:
        """How many events of their scripts rows are done with; those of a window that was drawn are skipped, [R]."""
        left_behind = torch.searchsorted(self.times[rows], self.right[rows][:, None].contiguous(), right=True)[:, 0]
        past = self.drawn[rows] & (now >= self.right[rows])
        return torch.where(past, torch.maximum(followed, left_behind), followed)

    def step(self, rows: Tensor, followed: Tensor, right: Tensor, is_last: Tensor, window: Tensor) -> Step:
        """The next scripted event, or else ``right``.

        An event at the very time of an observed one comes after it, so one at ``right`` belongs to the next segment
        unless this ``is_last``.
        """
        column = followed.clamp(max=self.times.shape[1] - 1)
        time = torch.where(followed < self.times.shape[1], self.times[rows, column], torch.inf)
        found = torch.where(is_last, time <= right, time < right)
        stop = torch.where(found, time, right)
        return Step(found, stop, self.types[rows, column], stop, window)

    def at_start(self, rows: Tensor) -> Tensor:
        """What is scripted for the start instant: 0 for nothing, 1 + k for an event of type k, [R]."""
        return torch.where(self.times[rows, 0] == 0, 1 + self.types[rows, 0], 0)

    def counts_at(self, rows: Tensor, time: Tensor) -> Tensor:
        """Whether q of an event at ``time`` counts."""
        return (time > self.left[rows]) & (time <= self.right[rows])

    def clip(self, rows: Tensor, start: Tensor, stop: Tensor) -> tuple[Tensor, Tensor]:
        """The part of (start, stop] within each row's window; empty where there is none."""
        low = torch.minimum(torch.maximum(start, self.left[rows]), stop)
        return low, torch.maximum(torch.minimum(stop, self.right[rows]), low)
