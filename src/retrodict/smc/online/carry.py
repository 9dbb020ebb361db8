"""Particles carried on by the filter, from where they stand over what has arrived.

Segments end at observed events. A silence longer than the lag is cut into pieces of the lag, so that what is left to
do never grows; where it is cut follows from the events alone, not from how they were fed.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from retrodict.errors import DataError, ModelError
from retrodict.events.batch import Batch
from retrodict.models.base import Model
from retrodict.proposals.base import Proposal
from retrodict.proposals.filtering import Filtering
from retrodict.random import stream_keys
from retrodict.smc.engines.base import TorchEngine, Went
from retrodict.smc.engines.native import NativeEngine
from retrodict.smc.islands import settle
from retrodict.smc.online.arrivals import Arrival, Kept, Line, Mark, Name
from retrodict.smc.online.pool import Pool
from retrodict.smc.options import Options
from retrodict.smc.particles import Particles
from retrodict.smc.sampler import Begun

_MOST_PIECES = 100_000  # of one silence: a longer one is a mistake in the unit of time
SILENCE = -1  # in the place of a type: nothing happened up to then


class Ahead(NamedTuple):
    """The segments of one stream that are to be closed; times are since its start."""

    begin: float  # where they begin
    edges: list[float]  # their ends
    types: list[int]  # what happened there, or SILENCE
    end: float  # up to where is known what was observed

    def cut(self, due: float) -> tuple[Ahead, Ahead]:
        """The segments up to the first that ends at ``due`` or later, and the others."""
        last = int(np.searchsorted(self.edges, due)) + 1
        end = self.edges[min(last, len(self.edges)) - 1]
        first = Ahead(self.begin, self.edges[:last], self.types[:last], end)
        return first, Ahead(end, self.edges[last:], self.types[last:], self.end)


def segments(last: float, arrival: Arrival, lag: float) -> Ahead:
    """What is to be closed from ``last`` on: at every event, and after every lag of silence."""
    ahead = Ahead(last, [], [], arrival.until)

    def be_silent(until: float, is_over: bool) -> None:
        nonlocal last
        if until - last > _MOST_PIECES * lag:
            remedy = "check the unit of time, or close the stream and begin it anew"
            problem = f"nothing happened for more than {_MOST_PIECES:,} times the lag"
            raise DataError(problem, stream=arrival.name, remedy=remedy)
        while last + lag < until or (is_over and last + lag == until):
            last += lag
            ahead.edges.append(last)
            ahead.types.append(SILENCE)

    for time, kind in zip(arrival.times.tolist(), arrival.types.tolist(), strict=True):
        be_silent(time, is_over=False)
        ahead.edges.append(time)
        ahead.types.append(kind)
        last = time
    be_silent(arrival.until, is_over=True)
    return ahead


def make_batch(
    model: Model, names: Sequence[Name], lines: Sequence[Line], ahead: Sequence[Ahead], since_1970: float
) -> Batch:
    """What lies ahead of B streams; silences are not in the mask."""
    B, L = len(lines), max((len(a.edges) for a in ahead), default=0)
    begins, ends = (np.array([getattr(a, name) for a in ahead], dtype=np.float64) for name in ("begin", "end"))
    times, types = np.repeat(ends[:, None], L, 1), np.full((B, L), SILENCE)
    for b, own in enumerate(ahead):
        times[b, : len(own.edges)], types[b, : len(own.types)] = own.edges, own.types
    gaps = np.diff(np.concatenate([begins[:, None], times, ends[:, None]], 1), axis=1)
    starts = np.array([line.start for line in lines], dtype=np.float64) + since_1970
    return Batch(
        times=torch.tensor(times, device=model.device),
        types=torch.tensor(types, device=model.device).clamp(min=0),
        mask=torch.tensor(types >= 0, device=model.device),
        gaps=torch.tensor(gaps, device=model.device).to(model.dtype),
        durations=torch.tensor(ends, device=model.device),
        starts=torch.tensor(starts, device=model.device),
        index=torch.arange(B, device=model.device),
        ids=stream_keys(0, names).to(model.device),
        begins=torch.tensor(begins, device=model.device),
    )


def pick_engine(name: str, proposal: Proposal, options: Options) -> NativeEngine | TorchEngine:
    """What carries particles on: the native engine where it can and "torch" was not asked for.

    Missing rates that change are cut into pieces by compiled engines, which would depend on how events were fed.
    """
    native = NativeEngine()
    why = native.unavailable() or native.refuses(proposal, options)
    if why is None and not proposal.missingness.is_constant:
        why = "online, it knows missing rates that never change."
    if name == "native" and why is not None and isinstance(proposal, Filtering):
        raise ModelError(f"the native engine cannot do this: {why} Use engine='auto', which picks one that can.")
    return TorchEngine() if why is not None or name == "torch" else native


class Carried(NamedTuple):
    """What became of B streams, to be put in the place of what was."""

    names: list[Name]
    pools: Kept[Pool]  # of these streams alone, in this order
    marks: list[Kept[Mark]]  # where they stand


class Carrier:
    """Goes on with the particles of some streams; changes nothing of what it is given."""

    def __init__(
        self, engine: NativeEngine | TorchEngine, filtering: Proposal, options: Options, islands: int, seed: int,
        lag: float,
    ) -> None:  # fmt: skip
        self.engine, self.proposal, self.options, self.islands = engine, filtering, options, islands
        self.seed, self.lag = seed, lag

    def go_on(
        self, engine: NativeEngine | TorchEngine, proposal: Proposal, batch: Batch, names: Sequence[Name],
        particles: Particles, numbers: Sequence[int], counts: Sequence[int], ends: bool,
    ) -> tuple[Went, Tensor]:  # fmt: skip
        """Algorithm 1 on all islands of B streams, on from the particles given; also the runs' keys."""
        device = batch.durations.device
        settled, keys = settle(batch, stream_keys(self.seed, names).to(device), self.islands)
        behind, coming = (torch.tensor(x, device=device).repeat_interleave(self.islands) for x in (numbers, counts))
        return engine.go_on(settled, proposal, keys, self.options, Begun(particles, behind, coming), ends), keys

    @torch.no_grad()
    def carry(
        self, names: list[Name], lines: Sequence[Line], ahead: Sequence[Ahead], pools: Kept[Pool], since_1970: float
    ) -> Carried:
        """Close the segments ahead of B streams, which are in the pools; copies are made on the way, a lag apart."""
        device = self.proposal.model.device
        slots = torch.tensor([line.slot for line in lines], device=device)
        own, marks, rest = Kept(*(pool.part(slots) for pool in pools)), [line.marks for line in lines], list(ahead)
        while some := [b for b, own_rest in enumerate(rest) if own_rest.edges]:
            now = []
            for b in some:
                piece, rest[b] = rest[b].cut(marks[b].newer.time + self.lag)
                now.append(piece)
            self._close([names[b] for b in some], [lines[b] for b in some], now, [marks[b] for b in some],
                        own.head, torch.tensor(some, device=device), since_1970)  # fmt: skip
            due = []
            for b, piece in zip(some, now, strict=True):
                head = Mark(piece.end, marks[b].head.number + len(piece.edges))
                marks[b] = marks[b]._replace(head=head)
                if head.time >= marks[b].newer.time + self.lag:
                    marks[b] = Kept(head, head, marks[b].newer)
                    due.append(b)
            if due:
                turned = torch.tensor(due, dtype=torch.int64, device=device)
                own.older.copy(turned, own.newer)
                own.newer.copy(turned, own.head)
        return Carried(names, own, marks)

    def _close(
        self, names: list[Name], lines: list[Line], ahead: list[Ahead], marks: list[Kept[Mark]], pool: Pool,
        places: Tensor, since_1970: float,
    ) -> None:  # fmt: skip
        """Close segments of the streams at these places of the pool."""
        batch = make_batch(self.proposal.model, names, lines, ahead, since_1970)
        numbers, counts = [mark.head.number for mark in marks], [len(own.edges) for own in ahead]
        particles = pool.take(places, batch.begins)
        went, _ = self.go_on(self.engine, self.proposal, batch, names, particles, numbers, counts, ends=False)
        pool.put(places, pool.flatten(went.particles))
