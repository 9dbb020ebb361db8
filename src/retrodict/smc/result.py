"""What every engine gives back: weighted particles, and how the run went."""

from __future__ import annotations

from typing import NamedTuple

from torch import Tensor


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
