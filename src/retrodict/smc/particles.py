"""The particles of B streams: as Algorithm 1 carries them on, and as every engine gives them back."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import torch
from torch import Tensor

from retrodict.missingness.base import History
from retrodict.models.state import put, take
from retrodict.smc.resampling import log_mean

_PINNED = 1 << 30  # bytes that a run may have to be copied by way of pinned memory, which is kept


class Sample(NamedTuple):
    """The weighted particles of B streams, M each, with up to C missing events."""

    times: Tensor  # [B, M, C] float64: when the missing events happened, since the start of the stream
    types: Tensor  # [B, M, C] int64: their types
    counts: Tensor  # [B, M] int64: how many there are; times and types beyond mean nothing
    log_weights: Tensor  # [B, M] float64: log weights since the last resampling, not normalised
    log_evidence: Tensor  # [B] float64: the estimate of log p(x)


class Forest(NamedTuple):
    """All missing events ever drawn, by particles that died as well: each knows the one before it.

    A particle is the path that ends at its head, so that resampling copies heads alone.
    """

    times: Tensor  # [E] float64: since the start of the stream
    types: Tensor  # [E] int32
    before: Tensor  # [E] int32: the event before, of the same stream; -1 for none


class Trace(NamedTuple):
    """How a run went at S - 1 observed events and at the end; what lies beyond a stream's end means nothing.

    Everything is as it was before resampling: particle m drew segment s from ``parents[s - 1]`` [m]'s past.
    """

    ess: Tensor  # [B, S] float64: effective sample size; NaN beyond a stream's end
    parents: Tensor  # [B, S, M] int32: the particle that each particle was copied from; itself where it was not
    resampled: Tensor  # [B, S]: whether particles were resampled
    log_weights: Tensor  # [B, S, M] float64: since the last resampling, the observed event included
    heads: Tensor  # [B, S, M] int32: each particle's last event in the forest; -1 for none


class Result(NamedTuple):
    """What an engine gives back: everything that was drawn, who descends from whom, and the evidence."""

    forest: Forest
    trace: Trace
    log_evidence: Tensor  # [B] float64: the estimate of log p(x)

    def on_host(self) -> Result:
        """The same in the memory of the host, from a GPU by way of pinned memory unless that would be much."""
        parts = (*self.forest, *self.trace, self.log_evidence)
        pinned = self.log_evidence.is_cuda and sum(x.nbytes for x in parts) < _PINNED
        copies = [_copy_pinned(x) if pinned else x.cpu() for x in parts]
        if pinned:
            torch.cuda.current_stream(self.log_evidence.device).synchronize()
        return Result(Forest(*copies[:3]), Trace(*copies[3:-1]), copies[-1])

    @property
    def steps(self) -> Tensor:
        """The number of segments of each stream, [B]."""
        return (~torch.isnan(self.trace.ess)).sum(1)

    @property
    def sample(self) -> Sample:
        """The particles that are left at the end."""
        stream, last = torch.arange(len(self.log_evidence), device=self.log_evidence.device), self.steps - 1
        log_weights, heads = self.trace.log_weights[stream, last], self.trace.heads[stream, last]
        return Sample(*unroll(self.forest, heads), log_weights, self.log_evidence)


def _copy_pinned(x: Tensor) -> Tensor:
    """A copy on the host that is there once the stream of the GPU has got to it."""
    return torch.empty(x.shape, dtype=x.dtype, pin_memory=True).copy_(x, non_blocking=True)


def unroll(forest: Forest, heads: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """The events of paths that end at ``heads`` [B, M], in order of time: times, types [B, M, C] and counts [B, M]."""
    if not len(forest.times):
        empty = torch.zeros(*heads.shape, 1, dtype=torch.float64, device=heads.device)
        return empty, empty.long(), torch.zeros_like(heads, dtype=torch.int64)
    path, at = [], heads.long()
    while bool((at >= 0).any()):
        path.append(at)
        at = torch.where(at >= 0, forest.before[at.clamp(min=0)].long(), -1)
    backwards = torch.stack(path or [at], -1)
    counts = (backwards >= 0).sum(-1)
    place = (counts[..., None] - 1 - torch.arange(backwards.shape[-1], device=heads.device)).clamp(min=0)
    events = backwards.gather(-1, place).clamp(min=0)
    real = torch.arange(events.shape[-1], device=heads.device) < counts[..., None]
    return torch.where(real, forest.times[events], 0.0), torch.where(real, forest.types[events].long(), 0), counts


@dataclass
class Particles:
    """What Algorithm 1 carries on from one observed event to the next; changed in place.

    There are R = B M rows, row b M + m being particle m of stream b.
    """

    state: Any  # the model's state after each row's last event, observed or missing
    history: History  # the mechanism's summary of each row's events, a tuple of tensors [R, ...]
    drawn: list[Forest]  # the missing events drawn so far, in pieces
    heads: Tensor  # [R] int32: the last of each row's events in the forest; -1 for none
    counts: Tensor  # [R] int64: how many events each row has
    lengths: Tensor  # [R] int64: the same with observed ones, where the model's end atom asks for that
    log_weights: Tensor  # [R] float64: log weights since the last resampling
    log_evidence: Tensor  # [B] float64: log of the mean weights that resampling has replaced, added up
    now: Tensor  # [R] float64: how far each row has been looked through
    since: Tensor  # [R] float64: how far each row has been weighed
    rounds: Tensor  # [R] int64: how often each row was asked for its next event, which numbers its random draws
    window: Tensor  # [R] float64: how far the next thinning bound should reach
    size: int = 0  # how many events were drawn

    @classmethod
    def begin(cls, streams: int, particles: int, state: Any, history: History, device: torch.device) -> Particles:
        """Lines 2-3: M particles for each stream, all empty, with weight 1."""
        rows = streams * particles
        zeros = torch.zeros(rows, dtype=torch.float64, device=device)
        none = torch.zeros(rows, dtype=torch.int64, device=device)
        return cls(
            state=state,
            history=history,
            drawn=[],
            heads=torch.full_like(none, -1, dtype=torch.int32),
            counts=none,
            lengths=none.clone(),
            log_weights=zeros,
            log_evidence=torch.zeros(streams, dtype=torch.float64, device=device),
            now=zeros.clone(),
            since=zeros.clone(),
            rounds=none.clone(),
            window=torch.full_like(zeros, torch.inf),
        )

    def append(self, rows: Tensor, types: Tensor, times: Tensor) -> None:
        """Add a missing event to each of ``rows``."""
        if not len(rows):
            return
        self.drawn.append(Forest(times, types.to(torch.int32), self.heads[rows]))
        self.heads[rows] = self.size + torch.arange(len(rows), dtype=torch.int32, device=rows.device)
        self.counts[rows] += 1
        self.size += len(rows)

    def remember(self, rows: Tensor, state: Any, history: History) -> None:
        """Replace the states and summaries of ``rows``, after they have read an event."""
        self.state = put(self.state, rows, state)
        for field, new in zip(self.history, history, strict=True):
            field[rows] = new

    def copy_rows(self, rows: Tensor, parents: Tensor) -> None:
        """Let ``rows`` become copies of ``parents``: history, state and events move together."""
        self.state = put(self.state, rows, take(self.state, parents))
        self.heads[rows], self.counts[rows] = self.heads[parents], self.counts[parents]
        self.lengths[rows] = self.lengths[parents]
        self.window[rows] = self.window[parents]
        for field in self.history:
            field[rows] = field[parents]

    def forget(self) -> None:
        """Forget which events were drawn."""
        self.drawn, self.size = [], 0
        self.heads.fill_(-1)
        self.counts.zero_()

    @property
    def forest(self) -> Forest:
        """All events drawn so far."""
        if not self.drawn:
            return Forest(self.now[:0], self.heads[:0], self.heads[:0])
        self.drawn = [Forest(*map(torch.cat, zip(*self.drawn, strict=True)))]
        return self.drawn[0]

    def by_stream(self, field: Tensor) -> Tensor:
        """A field [R] as [B, M]."""
        return field.view(len(self.log_evidence), -1) if len(self.log_evidence) else field.view(0, 1)

    def sample(self) -> Sample:
        """The particles by stream, with the estimate of log p(x) so far."""
        weights = self.by_stream(self.log_weights)
        return Sample(*unroll(self.forest, self.by_stream(self.heads)), weights, self.log_evidence + log_mean(weights))
