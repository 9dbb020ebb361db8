"""Monte Carlo EM: learn a model from incomplete streams (the paper, section H).

E-step, at the start of every epoch: particles of the missing events of every incomplete stream, from the posterior
under the current model, by smoothing (the smoother is trained along) or filtering. M-step, the epoch itself: the
likelihood of the streams completed by weighted draws, together with streams that were complete to begin with.

    log p(x) >= E_q [log p(x, z) + log p_miss - log q(z)]                                 the ELBO, raised by both steps

What counts on dev is the evidence, log p(x) per observed event. The smoother is trained on the completed streams,
censored afresh, so that it follows the model. Where the mechanism is learned too, its rates follow from the same draws.
"""

from __future__ import annotations

import copy
import hashlib
from collections.abc import Hashable
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from retrodict.errors import ModelError
from retrodict.events.batch import batches_by_length
from retrodict.events.combine import join, observed_first
from retrodict.events.pairs import PackedPairs, PairBatch
from retrodict.events.stream_set import StreamSet
from retrodict.missingness.base import Missingness
from retrodict.missingness.by_type import ByType
from retrodict.models.base import Model
from retrodict.models.quadrature import GaussLegendre
from retrodict.models.start import first_types
from retrodict.proposals import Filtering, Proposal, Smoothing
from retrodict.smc.impute import impute
from retrodict.smc.posterior import Posterior
from retrodict.smc.unlike import rates_on_trial
from retrodict.train.mechanism import Completion, completions, maximise
from retrodict.train.objective import Objective, add_streams, epoch_seed

_DEV_SEED = 999_999_937


class Learner(nn.Module):
    """What is learned: a model, and the smoother of its E-step where there is one.

    The proposal works on a copy of the model that ``refresh`` brings up to date. What is learned of the mechanism is
    held here too, so that checkpoints have it.
    """

    rates: Tensor | None

    def __init__(self, model: Model, missing: Missingness, smoother_size: int | None) -> None:
        super().__init__()
        self.model = model
        own = copy.deepcopy(model)
        # The paper's form: every engine runs it, and each epoch samples all streams.
        self.proposal: Proposal = (
            Filtering(own, missing) if smoother_size is None else Smoothing(own, missing, smoother_size, mixing=0)
        )
        for parameter in (*own.parameters(), *self.proposal.missingness.parameters()):
            parameter.requires_grad_(False)
        mechanism = self.proposal.missingness
        self.mechanism_parameters = nn.ParameterList(mechanism.parameters())
        self.register_buffer(
            "rates", mechanism.rates(torch.zeros(())).clone() if isinstance(mechanism, ByType) else None
        )
        self.register_load_state_dict_post_hook(lambda module, keys: module._restore())

    def refresh(self) -> Proposal:
        """The proposal for the current model."""
        self.proposal.model.load_state_dict(self.model.state_dict())
        return self.proposal

    @property
    def missing(self) -> Missingness:
        """The current mechanism."""
        return self.proposal.missingness

    def learn_missing(self, completed: list[Completion]) -> None:
        """The mechanism's part of the M-step."""
        self.proposal.missingness = maximise(self.missing, completed)
        if self.rates is not None:
            self.rates.copy_(self.missing.rates(torch.zeros(())))

    def _restore(self) -> None:
        """Rates by type as a checkpoint left them."""
        mechanism = self.missing
        if self.rates is not None and isinstance(mechanism, ByType) and mechanism.types is not None:
            rates = dict(zip(mechanism.types, self.rates.tolist(), strict=True))
            self.proposal.missingness = ByType(rates).bind(mechanism.types)


@dataclass(frozen=True)
class Completed(PairBatch):
    """B completed streams, censored afresh, and how much each counts [B]."""

    weights: Tensor

    @property
    def num_events(self) -> int:
        """Events of the completed streams."""
        return self.complete.num_events


class ExpectationMaximisation(Objective):
    """Maximise log p(x) of incomplete streams, and log p of ``complete`` ones.

    ``particles`` a stream in the E-step, of which ``draws`` are drawn by weight for the M-step.
    """

    what = "model and smoother"
    unit = "nats per event, on dev the evidence per observed event"

    def __init__(
        self,
        learner: Learner,
        train: StreamSet,
        dev: StreamSet,
        *,
        complete: StreamSet | None = None,
        learn_missing: bool = False,
        seed: int = 0,
        particles: int = 50,
        draws: int = 4,
    ) -> None:
        self.module = self.learner = learner
        self.learns_missing = learn_missing
        self.train, self.dev, self.complete = train, dev, complete
        self.seed, self.particles, self.num_draws = seed, particles, draws
        self.evidence = float("nan")
        self._packed: PackedPairs | None = None
        self._names: tuple[Any, ...] = ()
        self._ready: tuple[int, list[NDArray[np.int64]]] | None = None  # the epoch of the last E-step, and its batches
        self._weights: NDArray[np.float64] = np.zeros(0)

    def options(self) -> dict[str, Any]:
        """What this objective is, for a run's identity."""
        return {
            "particles": self.particles,
            "draws": self.num_draws,
            "smoother": getattr(self.learner.proposal, "hidden_size", None),
            "learns_missing": self.learns_missing,
        }

    def fingerprint(self) -> str:
        """Of all streams, complete ones too."""
        digest = hashlib.blake2b(super().fingerprint().encode(), digest_size=8)
        if self.complete is not None:
            add_streams(digest, self.complete, "event_times", "event_types", "offsets", "ends")
        return digest.hexdigest()

    def metrics(self) -> dict[str, float]:
        """The evidence of the training streams in the last E-step, and the ELBO on dev."""
        posterior = self._impute(self.dev, min(self.particles, 10), _DEV_SEED + 1, resample=None)
        logs = np.log(np.maximum(posterior.all_weights * posterior.num_particles, 1e-300))
        elbo = posterior.log_evidence + logs.mean(1)
        per_event = max(self.dev.num_events, 1)
        return {"train_evidence": self.evidence, "dev_elbo": float(elbo.sum()) / per_event}

    def epoch_batches(self, batch_size: int, seed: int, epoch: int) -> list[NDArray[np.int64]]:
        """The E-step: complete the streams under the current model; a function of the weights, seed and epoch."""
        if self._ready is not None and self._ready[0] == epoch:
            return self._ready[1]
        number = epoch_seed(self.seed, epoch)
        self.learner.refresh()
        posterior = self._impute(self.train, self.particles, number)
        self._check(posterior)
        self.evidence = float(posterior.log_evidence.sum()) / max(self.train.num_events, 1)
        completed = completions(posterior, self.num_draws, number)
        if self.learns_missing:
            self.learner.learn_missing(completed)
        parts = [part.streams for part in completed]
        shares = [np.full(len(part), 1 / self.num_draws) for part in parts]
        if self.complete is not None:
            parts.append(self.complete)
            shares.append(np.ones(len(self.complete)))
        self._weights = np.concatenate(shares)
        streams = join(parts)
        self._names = streams.ids
        self._learn_start(streams)
        # Censored part by part, under the names they had: a mechanism may know streams by them.
        hidden = [self.learner.missing.hide(part, number + 1_000_003 * i) for i, part in enumerate(parts)]
        self._packed = PackedPairs(*observed_first(streams, np.concatenate(hidden)), self.device)
        groups = batches_by_length(streams.lengths, batch_size, np.random.default_rng([seed, epoch]))
        self._ready = epoch, groups
        return groups

    def _learn_start(self, streams: StreamSet) -> None:
        """What happens at the start instant, where the model has an atom there: shares of completed streams."""
        atom = self.learner.model.start_atom
        if atom is not None:
            counts = np.bincount(first_types(streams) + 1, self._weights, streams.num_types + 1) + 0.5
            atom.log_probs.copy_(torch.as_tensor(np.log(counts / counts.sum())))

    def batch(self, index: NDArray[np.int64], epoch: int | None) -> Completed | StreamSet:
        """Completed streams; dev streams as they are."""
        if epoch is None:
            return self.dev[index]
        assert self._packed is not None
        dtype = self.learner.model.dtype
        pairs = self._packed.batch(index, dtype)
        weights = torch.as_tensor(self._weights[index], dtype=dtype, device=self.device)
        return Completed(pairs.complete, pairs.missing, pairs.observed, weights)

    def loss(self, batch: Completed | StreamSet, training: bool) -> tuple[Tensor, Tensor]:
        """-log p of completed streams, and -log q of what was hidden from them anew; on dev, -log p(x)."""
        if isinstance(batch, StreamSet):
            self.learner.refresh()
            posterior = self._impute(batch, self.particles, _DEV_SEED)
            self._check(posterior)
            return -torch.as_tensor(posterior.log_evidence.sum()), torch.tensor(batch.num_events)
        integral, model = GaussLegendre(4), self.learner.model
        total = -(batch.weights * model.batch_log_likelihood(batch.complete, integral)).sum()
        if isinstance(self.learner.proposal, Smoothing):
            total = total - (batch.weights * self.learner.proposal.batch_log_prob(batch, integral)).sum()
        return total, (batch.weights[:, None] * batch.complete.mask).sum().round()

    def name_of(self, index: int) -> Hashable:
        """A stream's id, and the number of the draw that completes it; complete streams come last."""
        id, number = self._names[index]
        return f"{id} ({number})"

    def events_per_stream(self) -> float:
        """Of a completed stream, by what is observed of it; the unit of steps."""
        return super().events_per_stream() / self.num_draws

    def _check(self, posterior: Posterior) -> None:
        """Refuse streams that the model and the mechanism give no probability."""
        impossible = np.flatnonzero(~np.isfinite(posterior.log_evidence))
        if len(impossible):
            raise ModelError(
                f"stream {posterior.observed.ids[impossible[0]]!r} and {len(impossible) - 1} more cannot have been "
                "observed under this mechanism and model: a type that is always missing was seen, or one that the "
                "model does not know. Correct the mechanism, or leave these streams out."
            )

    def _impute(self, observed: StreamSet, particles: int, seed: int, resample: str | None = "systematic") -> Posterior:
        with rates_on_trial():
            return impute(observed, self.learner.proposal, particles, seed, resample, islands=1)
