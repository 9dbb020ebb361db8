"""Fit a model to incomplete streams, by Monte Carlo EM (``train/expectation.py`` has the steps)."""

from __future__ import annotations

import copy
import os
from collections.abc import Callable
from dataclasses import dataclass

import torch

from retrodict.errors import ModelError
from retrodict.events.stream_set import StreamSet
from retrodict.events.suspicion import warn_of
from retrodict.missingness.base import Missingness
from retrodict.missingness.by_type import ByType
from retrodict.missingness.spec import write_missing
from retrodict.models.base import Model
from retrodict.models.device import find_device
from retrodict.proposals import Proposal, Smoothing
from retrodict.proposals.smoothers import SMOOTHER
from retrodict.train.asked import (
    check_data,
    check_settings,
    check_training,
    folder_of_run,
    mechanism_config,
    rounded,
)
from retrodict.train.expectation import ExpectationMaximisation, Learner
from retrodict.train.fitting import model_for, train_objective
from retrodict.train.module import Settings
from retrodict.train.rates import RateEstimates, estimate_rates, learnable
from retrodict.train.run import Run


@dataclass(frozen=True)
class Fitted:
    """What was learned from incomplete streams, and one row of metrics for each epoch.

    ``proposal`` is the smoother of the E-step (or filtering), ready for ``rd.impute``. ``rates`` are missing rates by
    type that were learned, with standard errors that take the model for right.
    """

    model: Model
    missing: Missingness
    proposal: Proposal
    history: list[dict[str, float]]
    rates: RateEstimates | None = None


def fit_incomplete(
    model: Model | type[Model] | Callable[[StreamSet], Model],
    streams: StreamSet,
    missing: Missingness,
    dev: StreamSet | None = None,
    *,
    complete: StreamSet | None = None,
    learn_missing: bool = False,
    filtering: bool = False,
    smoother_size: int | None = None,
    particles: int = 50,
    draws: int = 4,
    directory: str | os.PathLike[str] | None = None,
    epochs: int = 100,
    batch_size: int = 50,
    learning_rate: float | None = None,
    averaging: float = 0.995,
    patience: int = 12,
    seconds: float | None = None,
    seed: int = 0,
    resume: bool = True,
    device: str = "auto",
    progress: bool = True,
) -> Fitted:
    """Fit a model to incomplete ``streams``, whose events go missing by the mechanism ``missing``.

    Streams that are known to be ``complete`` help. ``dev`` are incomplete streams (a tenth of ``streams`` by default);
    training stops when their evidence no longer improves. With ``learn_missing`` the mechanism is a starting point and
    is learned too; that needs complete streams: incomplete ones alone cannot tell rare events from events often
    missed. To learn the mechanism for a model that is known, see ``rd.learn_missing``. The E-step takes ``particles`` a
    stream from a smoother with ``smoother_size`` cells (as many as the model's by default), or from ``filtering``. The
    rest is as in ``rd.fit``.
    """
    if learn_missing and complete is None:
        raise ModelError(
            "model and mechanism cannot both be learned from incomplete streams alone: few events seen may be few that "
            "happened or many that went missing. Give complete streams too, fix the mechanism, or fix the model and "
            "learn the mechanism alone."
        )
    check_settings(epochs=epochs, batch_size=batch_size, patience=patience, particles=particles, draws=draws)
    check_training(learning_rate, seconds)
    find_device(device)
    if isinstance(model, Proposal):
        raise ModelError("a proposal is fitted to complete streams, by rd.fit; give the model itself.")
    missing = copy.deepcopy(missing)  # what is learned of it is not the caller's
    warn_of(streams)
    train, dev = check_data(streams, dev, seed)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        fitted, _ = model_for(model, complete if complete is not None else train)
        assert isinstance(fitted, Model)
        fitted.end_atom = None  # whether an incomplete stream ended at an event is not known
        train, dev = fitted.matched(train), fitted.matched(dev)
        size = None if filtering else smoother_size or getattr(fitted, "hidden_size", 32)
        learner = Learner(fitted, missing.on(train), size)
    objective = ExpectationMaximisation(
        learner,
        train,
        dev,
        complete=None if complete is None else fitted.matched(complete),
        learn_missing=learn_missing,
        seed=seed,
        particles=particles,
        draws=draws,
    )
    rate = fitted.learning_rate if learning_rate is None else learning_rate
    settings = Settings(batch_size, rate, patience, seed, 0.0, averaging)
    with folder_of_run(directory) as folder:
        about = {"config": rounded(fitted.config()), "missingness": rounded(mechanism_config(missing))}
        run = Run(folder, objective, settings, {"kind": fitted.kind, **about})
        fitting = train_objective(
            objective, settings, run, epochs=epochs, seconds=seconds, resume=resume, device=device, progress=progress
        )
        proposal, rates = learner.refresh(), None
        if learn_missing and isinstance(proposal.missingness, ByType) and learnable(proposal.missingness).any():
            _, rates = estimate_rates(proposal, train, particles=particles, seed=seed, move=False)
            rates.warn()
        if directory is not None:
            fitted.save(folder)
            if isinstance(proposal, Smoothing):
                proposal.save(folder / SMOOTHER)
            if learn_missing:
                comments = [] if rates is None else ["missing rates, learned", *rates.lines()]
                write_missing(learner.missing, folder / "missing.yaml", comments)
            run.finish(len(fitting.history), stopped_early=fitting.is_done())
    return Fitted(fitted, learner.missing, proposal, fitting.history, rates)
