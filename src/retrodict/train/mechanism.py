"""Learn how events go missing, with a model of complete streams that is known: Monte Carlo EM for the mechanism.

E-step: draws of the missing events under the mechanism as it is. M-step: each event of a completed stream was seen or
not, so the likelihood is that of coin tosses with known faces, Σ log ρ over missing and Σ log (1 - ρ) over observed
events. Rates by type are then shares of events; delays and networks are fitted by gradient steps.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from retrodict.errors import ModelError
from retrodict.events.atomic import atomic_path, make_folder
from retrodict.events.batch import Batch, batches_by_length, make_batch
from retrodict.events.combine import combine
from retrodict.events.stream import EventStream
from retrodict.events.stream_set import StreamSet
from retrodict.missingness.base import Missingness
from retrodict.missingness.by_type import ByType
from retrodict.proposals.base import Proposal
from retrodict.smc.impute import impute
from retrodict.smc.posterior import Posterior

_LEAST = 1e-6  # rates that are learned stay this far from 0 and 1


@dataclass
class Learned:
    """A mechanism, and the log evidence per observed event before each round of EM."""

    missing: Missingness
    evidence: list[float] = field(default_factory=list)


def learn_missing(
    proposal: Proposal,
    streams: StreamSet,
    *,
    rounds: int = 30,
    particles: int = 50,
    draws: int = 4,
    seed: int = 0,
    directory: str | Path | None = None,
    progress: Callable[[int, float], None] | None = None,
) -> Learned:
    """Learn the mechanism of a proposal from incomplete ``streams``, its model fixed.

    It starts from the mechanism the proposal has; types whose rates are 0 or 1 keep them. With a ``directory`` every
    round is kept there, and a call that finds some goes on after them. ``progress`` is called with the round and its
    evidence.
    """
    streams = proposal.model.matched(streams)
    unit = streams.axis.unit
    given, start = proposal.missingness, proposal.missingness.bind(streams.types, unit)
    if not (isinstance(start, ByType) or list(start.parameters())):
        raise ModelError(f"there is nothing to learn in a {type(start).__name__} mechanism.")
    learned = _resume(directory) or Learned(start)
    learned.missing = learned.missing.bind(streams.types, unit)
    try:
        for number in range(len(learned.evidence), rounds):
            proposal.missingness = learned.missing
            posterior = impute(streams, proposal, particles, seed=seed * 1_000_003 + number)
            evidence = float(posterior.log_evidence.sum()) / max(streams.num_events, 1)
            completed, imputed = completions(posterior, draws, seed * 1_000_003 + number)
            learned.missing = maximise(learned.missing, completed, imputed)
            learned.evidence.append(evidence)
            _keep(directory, learned)
            if progress is not None:
                progress(number, evidence)
    finally:
        proposal.missingness = given
    return learned


def maximise(mechanism: Missingness, completed: StreamSet, imputed: NDArray[np.bool_], steps: int = 20) -> Missingness:
    """The mechanism under which what went missing from ``completed`` streams is likeliest, or nearer to it.

    ``imputed`` [E] says which events were not seen.
    """
    if isinstance(mechanism, ByType):
        return _shares(mechanism, completed, imputed)
    parameters = list(mechanism.parameters())
    optimizer = torch.optim.Adam(parameters, lr=0.02)
    batches = [_flagged(completed, imputed, index) for index in batches_by_length(completed.lengths, 512)]
    for parameter in parameters:
        parameter.requires_grad_(True)
    for _ in range(steps):
        optimizer.zero_grad()
        for batch in batches:
            (-_log_prob(mechanism, *batch) / max(completed.num_events, 1)).backward()
        optimizer.step()
    for parameter in parameters:
        parameter.requires_grad_(False)
    return mechanism


def _shares(mechanism: ByType, completed: StreamSet, imputed: NDArray[np.bool_]) -> ByType:
    """Of each type, the share of events that went missing."""
    K = completed.num_types
    before = mechanism.rates(torch.zeros(())).numpy()
    missing = np.bincount(completed.event_types[imputed], minlength=K)
    share = (missing + 0.5) / (np.bincount(completed.event_types, minlength=K) + 1)
    rates = np.where((before > 0) & (before < 1), np.clip(share, _LEAST, 1 - _LEAST), before)
    return ByType(dict(zip(completed.types, rates.tolist(), strict=True))).bind(completed.types)


def _flagged(completed: StreamSet, imputed: NDArray[np.bool_], index: NDArray[np.int64]) -> tuple[Batch, Tensor]:
    batch = make_batch(completed, index, dtype=torch.float64)
    where = completed.offsets[index][:, None] + np.arange(batch.mask.shape[1])
    flags = torch.as_tensor(imputed[np.minimum(where, max(len(imputed) - 1, 0))]) & batch.mask
    return batch, flags


def _log_prob(mechanism: Missingness, batch: Batch, imputed: Tensor) -> Tensor:
    rates = mechanism.batch_rates(batch).clamp(_LEAST, 1 - _LEAST)
    logs = torch.where(imputed, rates.log(), torch.log1p(-rates))
    return torch.where(batch.mask, logs, 0.0).sum()


def completions(posterior: Posterior, count: int, seed: int) -> tuple[StreamSet, NDArray[np.bool_]]:
    """``count`` completions of each stream, drawn by weight, and which of their events were imputed, [E]."""
    parts = [combine(posterior.observed, missing) for missing in posterior.draws(count, seed)]
    streams = [
        EventStream.trusted(s.times, s.types, s.start, s.end, f"{s.id} ({number})")
        for number, (part, _) in enumerate(parts)
        for s in part
    ]
    flags = np.concatenate([flag for _, flag in parts])
    return StreamSet(streams, types=posterior.observed.types, axis=posterior.observed.axis), flags


def _keep(directory: str | Path | None, learned: Learned) -> None:
    if directory is None:
        return
    kind, config = learned.missing.kind, learned.missing.config()
    content = {"kind": kind, "config": config, "evidence": learned.evidence}
    with atomic_path(make_folder(directory) / "missing.json") as side:
        Path(side).write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")


def _resume(directory: str | Path | None) -> Learned | None:
    from retrodict.missingness import MECHANISMS

    file = None if directory is None else Path(directory) / "missing.json"
    if file is None or not file.exists():
        return None
    content = json.loads(file.read_text(encoding="utf-8"))
    return Learned(MECHANISMS[content["kind"]].from_config(content["config"]), content["evidence"])
