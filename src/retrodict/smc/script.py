"""Particles that follow a script: given missing events, read again instead of drawn.

Each row has a window of time in which q counts. A row whose window is ``drawn`` draws its events there afresh and
follows its script everywhere else; another follows it throughout. Either way a sweep then weighs the row by p of the
whole stream over q of the window alone: what moving a particle within a window has to know (``smc/rejuvenate.py``).
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import torch
from torch import Tensor

from retrodict.events.batch import Batch
from retrodict.models.quadrature import Pieces, place_nodes
from retrodict.proposals.base import Proposal
from retrodict.proposals.intensity import Rates
from retrodict.smc.options import Options
from retrodict.smc.propose import Drawn
from retrodict.smc.sampler import Place, SequentialMonteCarlo


@dataclass(frozen=True)
class Script:
    """The missing events of R rows, and the windows in which q counts."""

    times: Tensor  # [R, C] float64: when the events happen, in order; infinite beyond a row's events
    types: Tensor  # [R, C] int64: their types
    left: Tensor  # [R] float64: the window is (left, right], with the start instant too where left is 0
    right: Tensor  # [R] float64: where the window ends
    drawn: Tensor  # [R]: whether the row draws its events in the window

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

    def step(self, rows: Tensor, followed: Tensor, right: Tensor, is_last: Tensor, window: Tensor) -> Drawn:
        """The next scripted event, or else ``right``.

        An event at the very time of an observed one comes after it, so one at ``right`` belongs to the next segment
        unless this ``is_last``.
        """
        column = followed.clamp(max=self.times.shape[1] - 1)
        time = torch.where(followed < self.times.shape[1], self.times[rows, column], torch.inf)
        found = torch.where(is_last, time <= right, time < right)
        stop = torch.where(found, time, right)
        return Drawn(found, stop, self.types[rows, column], stop, window)

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


class Replay(SequentialMonteCarlo):
    """Algorithm 1 with a script of B M rows, which they follow instead of drawing, outside of their windows."""

    def __init__(self, observed: Batch, proposal: Proposal, keys: Tensor, options: Options, script: Script) -> None:
        super().__init__(observed, proposal, keys, options)
        self.script = script
        self.followed = torch.zeros_like(self.stream)  # how many events of its script each row is done with
        self.is_last = torch.zeros_like(self.counts, dtype=torch.bool)  # whether streams are in their last segment

    def start_outcome(self, rows: Tensor, log_q: Tensor) -> tuple[Tensor, Tensor]:
        """As scripted, where the window does not begin with the start."""
        fresh, _ = super().start_outcome(rows, log_q)
        scripted, counts = self.script.at_start(rows), self.script.left[rows] <= 0
        self.followed[rows] = (scripted > 0).long()
        outcome = torch.where(counts & self.script.drawn[rows], fresh, scripted)
        return outcome, torch.where(counts, log_q.gather(1, outcome[:, None])[:, 0], 0.0)

    def draw_segment(self, i: int, streams: Tensor) -> None:
        """Knowing which streams are in their last segment."""
        self.is_last = self.counts == i
        super().draw_segment(i, streams)

    def next_event(self, at: Place) -> Drawn:
        """The next scripted event; inside of windows that are drawn, the next one from q."""
        rows, now, window = at.rows, self.particles.now[at.rows], self.particles.window[at.rows]
        reach = self.script.horizon(rows, now, at.right)
        self.followed[rows] = self.script.catch_up(rows, self.followed[rows], now)
        told = self.script.step(rows, self.followed[rows], reach, self.is_last[self.stream[rows]], window)
        drawing = self.script.is_drawing(rows, now)
        self.followed[rows] += (told.found & ~drawing).long()
        here = drawing.nonzero()[:, 0]
        if not len(here):
            return told
        fresh = super().next_event(self._some(at, here)._replace(right=reach[here]))
        return Drawn(*(old.index_put((here,), new) for old, new in zip(told[:5], fresh[:5], strict=True)))

    def of_q(self, at: Place, drawn: Drawn, rates: Rates, weights: Tensor, pieces: Pieces) -> tuple[Tensor, Tensor]:
        """Of what lies in the window alone."""
        stop = torch.where(drawn.found, drawn.time, at.right)
        _, log_q = super().of_q(at, drawn, rates, weights, pieces)
        start, stop_here = self.script.clip(at.rows, at.state.time, stop)
        times, weights = place_nodes(self.options.integral, replace(pieces, start=start, stop=stop_here))
        own = self.proposal.rates(at.state, at.ahead, times, at.context).proposal
        area = (own.sum(-1).double() * weights).sum(1)
        return area, torch.where(self.script.counts_at(at.rows, stop), log_q, 0.0)
