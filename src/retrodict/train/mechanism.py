"""Learn how events go missing, with a model of complete streams that is known: Monte Carlo EM for the mechanism.

E-step: draws of the missing events under the current mechanism. M-step: each event of a completed stream was seen or
not, so the likelihood is that of coin tosses with known faces, Σ log ρ over missing and Σ log (1 - ρ) over observed
events. Rates by type are then shares of events; delays and networks are fitted by gradient steps. In the end rates by
type are taken to the top of the evidence, whose curvature there gives their standard errors (``train/rates.py``).
"""

from __future__ import annotations

import contextlib
import copy
import hashlib
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from retrodict.errors import ModelError, TrainingError
from retrodict.events.atomic import make_folder, write_json
from retrodict.events.batch import Batch, batches_by_length
from retrodict.events.combine import combine
from retrodict.events.lock import lock_folder
from retrodict.events.pairs import PackedPairs
from retrodict.events.plain import read_json
from retrodict.events.stream_set import StreamSet
from retrodict.missingness.base import Missingness
from retrodict.missingness.by_type import ByType
from retrodict.missingness.spec import build, describe, write_missing
from retrodict.proposals.base import Proposal
from retrodict.smc.impute import impute
from retrodict.smc.posterior import Posterior
from retrodict.smc.unlike import rates_on_trial
from retrodict.train.asked import check_settings
from retrodict.train.objective import add_streams
from retrodict.train.rates import RateEstimates, estimate_rates, learnable

_LEAST = 1e-6  # rates that are learned stay this far from 0 and 1


class Completion(NamedTuple):
    """Streams with draws of their missing events put in, and which events those are, [E]."""

    streams: StreamSet
    imputed: NDArray[np.bool_]


@dataclass
class Learned:
    """A mechanism, the log evidence per observed event before each round of EM, and rates by type with their errors."""

    missing: Missingness
    evidence: list[float] = field(default_factory=list)
    rates: RateEstimates | None = None


def learn_missing(
    proposal: Proposal,
    streams: StreamSet,
    *,
    missing: Missingness | None = None,
    rounds: int = 30,
    particles: int = 50,
    draws: int = 4,
    seed: int = 0,
    directory: str | Path | None = None,
    resume: bool = True,
    progress: Callable[[int, float], None] | None = None,
) -> Learned:
    """Learn the mechanism of a proposal from incomplete ``streams``, its model fixed.

    It starts from ``missing``, or from the mechanism that the proposal has; types whose rates are 0 or 1 keep them.
    Rates by type come with standard errors (``learned.rates``), and a notice names those that the streams do not tell.
    With a ``directory`` every round is kept there, and a call that finds some goes on after them. ``progress`` is
    called with the round and its evidence.
    """
    streams = proposal.model.matched(streams)
    proposal = proposal.ready(missing, streams)
    unit = streams.axis.unit
    given, start = proposal.missingness, copy.deepcopy(proposal.missingness).bind(streams.types, unit)
    if not (isinstance(start, ByType) or list(start.parameters())):
        raise ModelError(f"there is nothing to learn in a {type(start).__name__} mechanism.")
    if isinstance(start, ByType) and not learnable(start).any():
        raise ModelError("all missing rates are 0 or 1, which are kept. Give first guesses between them, such as 0.3.")
    check_settings(rounds=rounds, particles=particles, draws=draws)
    identity = _identity(proposal, streams, (particles, draws, seed))
    with contextlib.ExitStack() as stack:
        if directory is not None:
            stack.enter_context(lock_folder(directory))
        stack.callback(setattr, proposal, "missingness", given)
        learned = (_resume(directory, identity) if resume else None) or Learned(start)
        learned.missing = learned.missing.bind(streams.types, unit)
        for number in range(len(learned.evidence), rounds):
            proposal.missingness = learned.missing
            with rates_on_trial():
                posterior = impute(streams, proposal, particles, seed=seed * 1_000_003 + number, islands=1)
            evidence = float(posterior.log_evidence.sum()) / max(streams.num_events, 1)
            completed = completions(posterior, draws, seed * 1_000_003 + number)
            learned.missing = maximise(learned.missing, completed)
            learned.evidence.append(evidence)
            learned.rates = None
            _keep(directory, learned, identity)
            if progress is not None:
                progress(number, evidence)
        if learned.rates is None and isinstance(learned.missing, ByType):
            proposal.missingness = learned.missing
            learned.missing, learned.rates = estimate_rates(proposal, streams, particles=particles, seed=seed)
            _keep(directory, learned, identity)
    if learned.rates is not None:
        learned.rates.warn()
    return learned


def maximise(mechanism: Missingness, completed: list[Completion], steps: int = 20) -> Missingness:
    """The mechanism under which what went missing from completed streams is likeliest, or nearer to it."""
    if isinstance(mechanism, ByType):
        return _shares(mechanism, completed)
    parameters = list(mechanism.parameters())
    optimizer = torch.optim.Adam(parameters, lr=0.02)
    pairs = [
        packed.batch(index, torch.float64)
        for packed in (PackedPairs(*part) for part in completed)
        for index in batches_by_length(packed.complete.lengths, 512)
    ]
    batches = [(pair.complete, pair.missing) for pair in pairs]
    events = max(sum(c.streams.num_events for c in completed), 1)
    for parameter in parameters:
        parameter.requires_grad_(True)
    for _ in range(steps):
        optimizer.zero_grad()
        for batch in batches:
            (-_log_prob(mechanism, *batch) / events).backward()
        optimizer.step()
    for parameter in parameters:
        parameter.requires_grad_(False)
    return mechanism


def _shares(mechanism: ByType, completed: list[Completion]) -> ByType:
    """Of each type, the share of events that went missing."""
    types = completed[0].streams.types
    before = mechanism.rates(torch.zeros(())).numpy()
    missing = sum(np.bincount(c.streams.event_types[c.imputed], minlength=len(types)) for c in completed)
    events = sum(np.bincount(c.streams.event_types, minlength=len(types)) for c in completed)
    share = (missing + 0.5) / (events + 1)
    rates = np.where(learnable(mechanism), np.clip(share, _LEAST, 1 - _LEAST), before)
    return ByType(dict(zip(types, rates.tolist(), strict=True))).bind(types)


def _log_prob(mechanism: Missingness, batch: Batch, imputed: Tensor) -> Tensor:
    rates = mechanism.batch_rates(batch).clamp(_LEAST, 1 - _LEAST)
    logs = torch.where(imputed, rates.log(), torch.log1p(-rates))
    return torch.where(batch.mask, logs, 0.0).sum()


def completions(posterior: Posterior, count: int, seed: int) -> list[Completion]:
    """``count`` completions of all streams, drawn by weight."""
    return [Completion(*combine(posterior.observed, missing)) for missing in posterior.draws(count, seed, "full")]


def _identity(proposal: Proposal, streams: StreamSet, options: tuple[int, ...]) -> str:
    """A digest of what a run rests on, so that another one is not taken for it."""
    digest = hashlib.blake2b(repr((options, proposal.missingness)).encode(), digest_size=8)
    add_streams(digest, streams, "event_times", "event_types", "offsets", "ends")
    for parameter in proposal.parameters():
        digest.update(parameter.detach().cpu().numpy().tobytes())
    return digest.hexdigest()


def _keep(directory: str | Path | None, learned: Learned, identity: str) -> None:
    """``missing.yaml``, which ``--missing`` takes, and ``learned.json``, to go on from."""
    if directory is None:
        return
    folder = make_folder(directory)
    lines = [] if learned.rates is None else ["missing rates, learned", *learned.rates.lines()]
    write_missing(learned.missing, folder / "missing.yaml", comments=lines)
    content = {"run": identity, "evidence": learned.evidence, "missing": describe(learned.missing)}
    content["rates"] = None if learned.rates is None else learned.rates.to_dict()
    write_json(folder / "learned.json", content)


def _resume(directory: str | Path | None, identity: str) -> Learned | None:
    file = None if directory is None else Path(directory) / "learned.json"
    if file is None or not file.exists():
        return None
    try:
        content = read_json(file)
        is_same = content["run"] == identity
        rates = content.get("rates")
        known = None if rates is None else RateEstimates.from_dict(rates)
        learned = Learned(build(content["missing"]), content["evidence"], known)
    except (OSError, ValueError, LookupError, TypeError) as error:
        raise TrainingError(f"{file} is damaged ({error}). Delete it, or start anew with resume=False.") from error
    if not is_same:
        raise TrainingError(
            f"{directory} holds another run (other streams, model, start or settings). Use another directory, or start "
            "anew with resume=False."
        )
    return learned
