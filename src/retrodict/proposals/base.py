"""A proposal q(z | x): intensities to draw from (``intensity.py``), log q of complete streams, a form on disk.

    log q(z | x) = Σ_z log λ^q_k(t) - ∫ Σ_k λ^q_k(t) dt                                       eqn:logq

A new proposal is one new file with ``prepare``, ``ahead``, ``future_drive``, ``future_drive_bound`` and ``config``.
"""

from __future__ import annotations

import os
import warnings
from abc import abstractmethod
from pathlib import Path
from typing import Any, ClassVar, Self

import torch
from torch import Tensor

from retrodict.errors import DataNotice, ModelError
from retrodict.events.atomic import make_folder
from retrodict.events.batch import Batch
from retrodict.events.pairs import PairBatch, make_pairs
from retrodict.events.stream_set import StreamSet
from retrodict.missingness.anything import Anything
from retrodict.missingness.base import Context, Missingness
from retrodict.missingness.words import in_words
from retrodict.models.base import Model
from retrodict.models.end import last_events
from retrodict.models.quadrature import GaussLegendre, Integral, Nodes, cut_at, grade, is_graded
from retrodict.models.saved import Saved
from retrodict.proposals.intensity import Intensity

PROPOSAL_FILES, MODEL_FOLDER = Saved("proposal"), "model"
_MOST_FEATURES = 1 << 28  # bytes of the model's features that are worked on at once


class Proposal(Intensity):
    """q(z | x) for a frozen model and a missingness mechanism."""

    kind: ClassVar[str]
    learning_rate: ClassVar[float] = 3e-3

    def __init__(self, model: Model, missingness: Missingness) -> None:
        super().__init__(model, missingness)
        self.trained_for = self.missingness
        self.training_record: dict[str, Any] = {}

    def ready(self, missing: Missingness | None, streams: StreamSet | None = None) -> Self:
        """The proposal to impute with, for ``missing`` where that is given; refuses one that needs it.

        Dates of the mechanism without a zone are in that of ``streams``. Weights of particles are right for any
        mechanism: one that the proposal was not trained for is worth a notice.
        """
        if missing is not None:
            other = self.given(missing)
            other = other if streams is None else other.on(streams)
            if other.is_for_other():
                both = f"for {in_words(self.trained_for)} is used for {in_words(other.missingness)}"
                text = (
                    f"a smoother trained {both}: the weights of the particles allow for that, but fewer of them count"
                )
                warnings.warn(f"{text}. rd.Smoothing(model), trained without a mechanism, is for all", DataNotice, 3)
            return other
        if isinstance(self.missingness, Anything):
            raise ModelError(
                "this smoother was trained for all mechanisms, so it has to be told which events go missing: give "
                "missing=, such as missing=rd.ByType(0.5), or --missing on the command line."
            )
        return self if streams is None else self.on(streams)

    def settle(self, streams: StreamSet) -> None:
        """Read dates of the mechanism without a zone in that of the streams to train on, from now on."""
        there = self.missingness.in_zone(streams.axis.timezone)
        if there is not self.missingness:
            self._take(there)
            self.trained_for = self.missingness

    def is_for_other(self) -> bool:
        """Whether it has weights that were trained for another mechanism than the one it is used for."""
        if isinstance(self.trained_for, Anything) or not self.own_weights():
            return False
        try:
            return bool(self.trained_for.meaning() != self.missingness.meaning())
        except ModelError:  # one cannot be described
            return self.trained_for is not self.missingness

    @abstractmethod
    def config(self) -> dict[str, Any]:
        """The constructor's further arguments, as JSON can hold them."""

    @classmethod
    def from_config(cls, model: Model, missingness: Missingness, **config: Any) -> Proposal:
        """The proposal that ``config`` describes; its weights are loaded later."""
        return cls(model, missingness, **config)

    def save(self, directory: str | os.PathLike[str]) -> Path:
        """Write the proposal, its model and its mechanism into a directory (made if need be); returns it."""
        path = make_folder(directory)
        self.model.save(path / MODEL_FOLDER)
        about = {
            "kind": self.kind,
            "config": self.config(),
            "missingness": {"kind": self.missingness.kind, "config": self.missingness.config()},
            "model": self.model.digest(),
            "training": self.training_record,
        }
        return PROPOSAL_FILES.write(path, about, self.own_weights())

    def own_weights(self) -> dict[str, Tensor]:
        """The proposal's weights without its model's."""
        return {name: value for name, value in self.state_dict().items() if not name.startswith("model.")}

    def log_prob(self, missing: StreamSet, observed: StreamSet, *, integral: Integral | None = None) -> Tensor:
        """log q(z | x) for each stream, [N]: equation (C.2) of the paper."""
        observed, missing = self.model.matched(observed), self.model.matched(missing)
        pairs = make_pairs(observed, missing, dtype=self.model.dtype, device=self.model.device)
        return self.batch_log_prob(pairs, integral)

    def batch_log_prob(self, pairs: PairBatch, integral: Integral | None = None) -> Tensor:
        """log q(z | x) for each stream of a batch, [B]; ∫ λ^q is taken gap by gap, as ``integral`` says."""
        batch = pairs.complete
        rule = integral or GaussLegendre()
        positions, weights = rule.nodes(batch.gaps.shape, batch.gaps)
        with torch.no_grad():
            context = self.missingness.contexts(batch)
            if positions.dim() == 1:
                gaps = gap_ends(batch)
                speeds = self.model.batch_speeds(batch) if is_graded(rule) else None
                breaks = grade(rule, speeds, *gaps, self.breaks(*gaps, context))
                positions, weights = cut_at((positions, weights), *gaps, breaks)
        at_once = self._streams_at_once(batch, positions)
        if at_once < len(batch.gaps):
            nodes = Nodes(positions, weights)
            parts = [slice(i, i + at_once) for i in range(0, len(batch.gaps), at_once)]
            return torch.cat([self.batch_log_prob(pairs.rows(part), nodes.rows(part)) for part in parts])
        prepared, times = self.prepare(pairs.observed), _gap_times(batch, positions)
        at_events, inside = self._drives(pairs, prepared, positions, times)
        with torch.no_grad():  # the mechanism is given
            rho = self.missingness.rates(times, context.over(times)).to(inside.dtype)
            if self.model.calendar is not None:  # another factor of λ^q that does not depend on the past
                rho = rho * self.model.calendar.factor(times, batch.starts[:, None, None]).to(rho.dtype)
        rates = (rho[:, :, :-1] * self.model.activate(inside)).sum(-1)
        areas = (rates @ weights if weights.dim() == 1 else (rates * weights).sum(-1)) * batch.gaps
        own = at_events.gather(-1, batch.types[..., None])[..., 0]
        own_rho = rho[:, :-1, -1].gather(-1, batch.types[..., None])[..., 0]
        logs = self.model.log_activate(own, batch.types) + torch.where(pairs.missing, own_rho, 1.0).log()
        logs = torch.where(pairs.missing, logs, 0.0)
        if self.model.start_atom is not None:
            logs = self._score_start(logs, pairs, prepared)
        if self.model.end_atom is not None:
            # A missing event that ends its stream is at T for certain: it has the probability of its type, no density.
            total = (rho[:, :-1, -1] * self.model.activate(at_events)).sum(-1)
            logs = logs - torch.where(last_events(batch) & pairs.missing, total, 1.0).log()
        return logs.sum(1) - areas.sum(1)

    def _drives(self, pairs: PairBatch, prepared: Any, positions: Tensor, times: Tensor) -> tuple[Tensor, Tensor]:
        """The model's drive plus what the future adds, at events [B, L, K] and inside gaps [B, L+1, Q, K].

        ``times`` [B, L+1, Q+1] are those of the nodes at ``positions`` in each gap, then its end.
        """
        batch, past = pairs.complete, None
        with torch.no_grad():  # the model is given
            if self.reads_past:
                at_events, inside, features = self.model.drives_and_features(batch, positions)
                past = features.flatten(0, 1)
            else:
                at_events, inside = self.model.drives(batch, positions)
        seen = (batch.mask & ~pairs.missing).long().cumsum(1)
        segment = torch.cat([seen.new_zeros(len(seen), 1), seen], 1)  # [B, L+1]: which segment each gap is in
        stream = torch.arange(len(segment), device=segment.device)[:, None].expand_as(segment)
        ahead = self.ahead(prepared, stream.reshape(-1), segment.reshape(-1))
        extra = self.future_drive(ahead, times.flatten(0, 1), past)
        if extra is None:
            return at_events, inside
        extra = extra.unflatten(0, segment.shape)
        return at_events + extra[:, :-1, -1], inside + extra[:, :, :-1]

    def _streams_at_once(self, batch: Batch, positions: Tensor) -> int:
        """How many streams' features, where the proposal reads them, fit into a bounded memory.

        With gradients all of them are kept: then the batch bounds it.
        """
        if not self.reads_past:
            return len(batch.gaps)
        numbers = batch.gaps.shape[1] * (positions.shape[-1] + 1) * self.model.num_features
        return max(1, _MOST_FEATURES // (numbers * batch.gaps.element_size()))

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


def gap_ends(batch: Batch) -> tuple[Tensor, Tensor]:
    """Both ends of each gap, [B, L+1] float64."""
    ends = torch.cat([batch.times, batch.durations[:, None]], 1)
    return torch.cat([batch.begins[:, None], ends[:, :-1]], 1), ends


def _gap_times(batch: Batch, positions: Tensor) -> Tensor:
    """Times of the nodes of each gap and of its end, [B, L+1, Q+1] float64."""
    starts, ends = gap_ends(batch)
    fractions = torch.cat([positions.double(), torch.ones_like(positions[..., :1]).double()], -1)
    return starts[..., None] + (ends - starts)[..., None] * fractions
