"""The contract of a proposal q(z | x): the intensities from which missing events are drawn, left to right.

    lambda^q_k(t | history, future) for each type, always with the factor rho_k(t) (appendix C.6)

``prepare`` reads the observed streams once. ``ahead`` gathers, for each row, what is known of the future in one
segment (the stretch between two observed events); the sampler then asks for intensities and bounds given the
model's state and that. A new proposal is one new file with ``prepare``, ``ahead`` and ``future_drive``. What the
future adds may depend on the past: a proposal with ``reads_past`` is given the model's features too.
"""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from pathlib import Path
from typing import Any, ClassVar, NamedTuple

import torch
from torch import Tensor, nn

from retrodict.events.batch import Batch
from retrodict.events.pairs import PairBatch, make_pairs
from retrodict.events.stream_set import StreamSet
from retrodict.missingness.base import Context, Missingness
from retrodict.models.base import Model
from retrodict.models.quadrature import GaussLegendre, Integral, Nodes, split_at

_MOST_FEATURES = 1 << 28  # bytes of the model's features that are worked on at once


class Rates(NamedTuple):
    """λ^p and λ^q at the same times, [..., K] each, and ρ."""

    model: Tensor
    proposal: Tensor
    missing: Tensor


class Proposal(nn.Module, ABC):
    """q(z | x) for a frozen model and a missingness mechanism."""

    kind: ClassVar[str]
    learning_rate: ClassVar[float] = 3e-3

    def __init__(self, model: Model, missingness: Missingness) -> None:
        super().__init__()
        self.model = model
        self.given_missingness = missingness
        self.training_record: dict[str, Any] = {}
        names = model.types or tuple(str(k) for k in range(model.num_types))
        self.missingness = missingness.bind(names, model.time_unit)

    @abstractmethod
    def config(self) -> dict[str, Any]:
        """The constructor's further arguments, as JSON can hold them."""

    def save(self, directory: str | os.PathLike[str]) -> Path:
        """Write the proposal, its model and its mechanism into a directory."""
        from retrodict.proposals.store import save_proposal

        return save_proposal(self, directory)

    @abstractmethod
    def prepare(self, observed: Batch) -> Any:
        """What q needs to know of B whole observed streams."""

    @abstractmethod
    def ahead(self, prepared: Any, stream: Tensor, segment: Tensor) -> Any:
        """The same for R rows, each in one segment of one stream: a NamedTuple with leading dimension R."""

    @property
    def reads_past(self) -> bool:
        """Whether what the future adds depends on the model's features, which are then computed for it."""
        return False

    def future_drive(self, ahead: Any, t: Tensor, past: Tensor | None) -> Tensor | None:
        """What the future adds to the model's drive at t [R] or [R, N]: [R(, N), K]; None where nothing.

        ``past`` [R(, N), F] are the model's features at t; None unless ``reads_past``.
        """
        return None

    def future_drive_bound(
        self, ahead: Any, start: Tensor, stop: Tensor, past: tuple[Tensor, Tensor] | None
    ) -> Tensor | None:
        """A guaranteed upper bound of it over [start, stop], [R, K], with features within ``past``, [R, F] each."""
        return None

    def start_log_probs(self, ahead: Any, context: Context) -> Tensor:
        """log q of no event (index 0) or a missing one of type k (1 + k) at the start instant, [R, K+1].

        Asked only of streams whose model has a start atom and that have no observed event there.
        """
        assert self.model.start_atom is not None
        rates = self.missingness.rates(torch.zeros_like(context.start), context).to(self.model.dtype)
        joint = self.model.start_atom.log_probs + torch.cat([torch.zeros_like(rates[:, :1]), rates.log()], 1)
        tilt = self._start_tilt(ahead)
        return torch.log_softmax(joint if tilt is None else joint + tilt, -1)

    def _start_tilt(self, ahead: Any) -> Tensor | None:
        return None

    def rates(self, state: Any, ahead: Any, t: Tensor, context: Context | None = None) -> Rates:
        """λ^p_k and λ^q_k = ρ_k f_k(drive + what the future adds), at t [R] or [R, N]."""
        drive = self.model.drive(state, t)
        extra = self.future_drive(ahead, t, self.model.features(state, t) if self.reads_past else None)
        rho = self.missingness.rates(t, None if context is None else context.over(t)).to(drive.dtype)
        model = self.model.activate(drive)
        own = model if extra is None else self.model.activate(drive + extra)
        return Rates(model, rho * own, rho)

    def floor(self, state: Any, t: Tensor, start: Tensor, stop: Tensor, context: Context) -> Tensor:
        """λ^p_k at t [R, N] times the bound of ρ_k over [start, stop] [R, N]: zero where nothing can go missing."""
        rho = self.missingness.bound(start, stop, context.over(start))
        return self.model.intensity(state, t) * rho.to(self.model.dtype)

    def bound(self, state: Any, ahead: Any, start: Tensor, stop: Tensor, context: Context | None = None) -> Tensor:
        """A guaranteed upper bound of λ^q_k over [start, stop] [R] if nothing happens there, [R, K]."""
        rho = self.missingness.bound(start, stop, context)
        past = self.model.feature_range(state, start, stop) if self.reads_past else None
        extra = self.future_drive_bound(ahead, start, stop, past)
        if extra is None:
            return rho.to(self.model.dtype) * self.model.bound(state, start, stop)
        reach = self.model.drive_bound(state, start, stop) + extra
        slack = 16 * torch.finfo(self.model.dtype).eps
        return rho.to(reach.dtype) * self.model.activate(reach + slack * (1 + reach.abs().clamp(max=1e6))) * (1 + slack)

    def log_prob(self, missing: StreamSet, observed: StreamSet, *, integral: Integral | None = None) -> Tensor:
        """log q(z | x) for each stream, [N]: equation (C.2) of the paper."""
        observed, missing = self.model.matched(observed), self.model.matched(missing)
        pairs = make_pairs(observed, missing, dtype=self.model.dtype, device=self.model.device)
        return self.batch_log_prob(pairs, integral)

    def batch_log_prob(self, pairs: PairBatch, integral: Integral | None = None) -> Tensor:
        """log q(z | x) for each stream of a batch, [B]."""
        batch = pairs.complete
        positions, weights = (integral or GaussLegendre()).nodes(batch.gaps.shape, batch.gaps)
        with torch.no_grad():
            context = self.missingness.contexts(batch)
            positions, weights = self._between_breaks(batch, context, positions, weights)
        at_once = self._streams_at_once(batch, positions)
        if at_once < len(batch.gaps):
            nodes = Nodes(positions, weights)
            parts = [slice(i, i + at_once) for i in range(0, len(batch.gaps), at_once)]
            return torch.cat([self.batch_log_prob(pairs.rows(part), nodes.rows(part)) for part in parts])
        past = None
        with torch.no_grad():  # the model is given
            if self.reads_past:
                at_events, inside, features = self.model.drives_and_features(batch, positions)
                past = features.flatten(0, 1)
            else:
                at_events, inside = self.model.drives(batch, positions)
        prepared = self.prepare(pairs.observed)
        seen = (batch.mask & ~pairs.missing).long().cumsum(1)
        segment = torch.cat([seen.new_zeros(len(seen), 1), seen], 1)  # [B, L+1]: which segment each gap is in
        times = _gap_times(batch, positions)  # [B, L+1, Q+1]: the nodes, then the end of the gap
        stream = torch.arange(len(segment), device=segment.device)[:, None].expand_as(segment)
        ahead = self.ahead(prepared, stream.reshape(-1), segment.reshape(-1))
        extra = self.future_drive(ahead, times.flatten(0, 1), past)
        if extra is not None:
            extra = extra.unflatten(0, segment.shape)
            inside = inside + extra[:, :, :-1]
            at_events = at_events + extra[:, :-1, -1]
        with torch.no_grad():  # the mechanism is given: q does not teach it
            rho = self.missingness.rates(times, context.over(times)).to(inside.dtype)
        rates = rho[:, :, :-1] * self.model.activate(inside)
        rates = rates.sum(-1)
        areas = (rates @ weights if weights.dim() == 1 else (rates * weights).sum(-1)) * batch.gaps
        own = at_events.gather(-1, batch.types[..., None])[..., 0]
        own_rho = rho[:, :-1, -1].gather(-1, batch.types[..., None])[..., 0]
        logs = self.model.log_activate(own, batch.types) + torch.where(pairs.missing, own_rho, 1.0).log()
        logs = torch.where(pairs.missing, logs, 0.0)
        if self.model.start_atom is not None:
            logs = self._score_start(logs, pairs, prepared)
        return logs.sum(1) - areas.sum(1)

    def _streams_at_once(self, batch: Batch, positions: Tensor) -> int:
        """So many that the model's features, where they are read, fit into a bounded memory.

        With gradients all of them are kept: then the batch bounds it.
        """
        if not self.reads_past:
            return len(batch.gaps)
        numbers = batch.gaps.shape[1] * (positions.shape[-1] + 1) * self.model.num_features
        return max(1, _MOST_FEATURES // (numbers * batch.gaps.element_size()))

    def _between_breaks(
        self, batch: Batch, context: Context, positions: Tensor, weights: Tensor
    ) -> tuple[Tensor, Tensor]:
        """A rule's nodes for every gap, [Q] each, cut where the missing rates jump or bend: then [B, L+1, Q'] each."""
        if positions.dim() > 1:
            return positions, weights  # random points need no cuts
        start, stop = _gaps(batch)
        breaks = self.missingness.breaks(start, stop, context)
        if breaks is None:
            return positions, weights
        shares = (breaks - start[..., None]) / (stop - start)[..., None].clamp(min=1e-300)
        cut = split_at(positions.double(), weights.double(), shares.clamp(0, 1))
        return cut[0].to(positions.dtype), cut[1].to(weights.dtype)

    def _score_start(self, logs: Tensor, pairs: PairBatch, prepared: Any) -> Tensor:
        """Replace the density of a missing event at the start instant by its probability, and score "none"."""
        batch = pairs.complete
        rows = torch.arange(len(batch.durations), device=logs.device)
        ahead = self.ahead(prepared, rows, torch.zeros_like(rows))
        empty = self.missingness.initial(rows.shape, rows.device)
        start = self.start_log_probs(ahead, Context(batch.starts, batch.ids, None, batch.durations, empty))
        if not logs.shape[1]:
            return start[:, :1]
        at_start = batch.mask[:, 0] & (batch.times[:, 0] == 0)
        drawn = start[rows, 1 + batch.types[:, 0]]
        # A missing event tied with an observed one at the start comes after it in the complete stream.
        first = torch.where(at_start & pairs.missing[:, 0], drawn, torch.where(at_start, 0.0, logs[:, 0] + start[:, 0]))
        return torch.cat([first[:, None], logs[:, 1:]], 1)


def _gaps(batch: Batch) -> tuple[Tensor, Tensor]:
    """Both ends of each gap, [B, L+1] float64."""
    ends = torch.cat([batch.times, batch.durations[:, None]], 1)
    return torch.cat([torch.zeros_like(ends[:, :1]), ends[:, :-1]], 1), ends


def _gap_times(batch: Batch, positions: Tensor) -> Tensor:
    """Times of the nodes of each gap and of its end, [B, L+1, Q+1] float64."""
    starts, ends = _gaps(batch)
    fractions = torch.cat([positions.double(), torch.ones_like(positions[..., :1]).double()], -1)
    return starts[..., None] + (ends - starts)[..., None] * fractions
