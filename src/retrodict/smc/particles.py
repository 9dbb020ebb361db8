"""The particles of B streams: as Algorithm 1 carries them on, and as every engine gives them back."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import torch
from torch import Tensor

from retrodict.missingness.base import History
from retrodict.models.state import put, take
from retrodict.smc.resampling import log_mean


class Sample(NamedTuple):
    """The weighted particles of B streams, M each, with up to C missing events."""

    times: Tensor  # [B, M, C] float64: when the missing events happened, since the start of the stream
    types: Tensor  # [B, M, C] int64: their types
    counts: Tensor  # [B, M] int64: how many there are; times and types beyond mean nothing
    log_weights: Tensor  # [B, M] float64: log weights since the last resampling, not normalised
    log_evidence: Tensor  # [B] float64: the estimate of log p(x)


class Trace(NamedTuple):
    """How a run went, only looked at: S - 1 observed events and the end."""

    ess: Tensor  # [B, S] float64: effective sample size there, before resampling; NaN beyond a stream's end
    parents: Tensor  # [B, S, M] int32: the particle that each particle was copied from there; itself where it was not
    resampled: Tensor  # [B, S]: whether particles were resampled there
    accepted: Tensor | None = None  # [B]: share of moves accepted, where particles were moved afterwards


class Result(NamedTuple):
    """What an engine gives back."""

    sample: Sample
    trace: Trace


@dataclass
class Particles:
    """What Algorithm 1 carries on from one observed event to the next; changed in place.

    There are R = B M rows, row b M + m being particle m of stream b.
    """

    state: Any  # the model's state after each row's last event, observed or missing
    history: History  # the mechanism's summary of each row's events, a tuple of tensors [R, ...]
    times: Tensor  # [R, C] float64: when the missing events drawn so far happened
    types: Tensor  # [R, C] int64: their types
    counts: Tensor  # [R] int64: how many there are
    log_weights: Tensor  # [R] float64: log weights since the last resampling
    log_evidence: Tensor  # [B] float64: log of the mean weights that resampling has replaced, added up
    now: Tensor  # [R] float64: how far each row has been looked through
    rounds: Tensor  # [R] int64: how often each row was asked for its next event, which numbers its random draws
    window: Tensor  # [R] float64: how far the next thinning bound should reach

    @classmethod
    def begin(cls, streams: int, particles: int, state: Any, history: History, device: torch.device) -> Particles:
        """Lines 2-3: M particles for each stream, all empty, with weight 1."""
        rows = streams * particles
        zeros = torch.zeros(rows, dtype=torch.float64, device=device)
        none = torch.zeros(rows, dtype=torch.int64, device=device)
        return cls(
            state=state,
            history=history,
            times=torch.zeros(rows, 8, dtype=torch.float64, device=device),
            types=torch.zeros(rows, 8, dtype=torch.int64, device=device),
            counts=none,
            log_weights=zeros,
            log_evidence=torch.zeros(streams, dtype=torch.float64, device=device),
            now=zeros.clone(),
            rounds=none.clone(),
            window=torch.full_like(zeros, torch.inf),
        )

    def append(self, rows: Tensor, types: Tensor, times: Tensor) -> None:
        """Add a missing event to each of ``rows``; buffers grow as needed."""
        if not len(rows):
            return
        at = self.counts[rows]
        if int(at.max()) >= self.times.shape[1]:
            self.times = torch.cat([self.times, torch.zeros_like(self.times)], 1)
            self.types = torch.cat([self.types, torch.zeros_like(self.types)], 1)
        self.times[rows, at], self.types[rows, at] = times, types
        self.counts[rows] += 1

    def remember(self, rows: Tensor, state: Any, history: History) -> None:
        """Replace the states and summaries of ``rows``, after they have read an event."""
        self.state = put(self.state, rows, state)
        for field, new in zip(self.history, history, strict=True):
            field[rows] = new

    def copy_rows(self, rows: Tensor, parents: Tensor) -> None:
        """Let ``rows`` become copies of ``parents``: history, state and events move together."""
        self.state = put(self.state, rows, take(self.state, parents))
        self.times[rows], self.types[rows] = self.times[parents], self.types[parents]
        self.counts[rows] = self.counts[parents]
        self.window[rows] = self.window[parents]
        for field in self.history:
            field[rows] = field[parents]

    def sample(self) -> Sample:
        """The particles by stream, with the estimate of log p(x) so far."""
        shape = (len(self.log_evidence), -1) if len(self.log_evidence) else (0, 1)
        times, types = (x.view(*shape, x.shape[1]) for x in (self.times, self.types))
        weights = self.log_weights.view(shape)
        return Sample(times, types, self.counts.view(shape), weights, self.log_evidence + log_mean(weights))
