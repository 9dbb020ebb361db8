"""Fit a model by its likelihood, or a smoother by a divergence: Adam, early stopping on dev, resumable.

    model = rd.fit(rd.NeuralHawkes, train, dev, directory="model")

A run writes into its directory: ``run.json`` (what is being fitted to what), ``metrics.csv`` (one row an
epoch), ``checkpoints/`` (to resume from, and the best so far), and in the end the
model itself, ``model.json`` and ``model.safetensors``. Killed at any time, the same call resumes after the
last whole epoch and ends with the same model as a run that was never interrupted.
"""

from __future__ import annotations

import contextlib
import logging
import os
import time
import warnings
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, cast

import pytorch_lightning as pl
import torch

from retrodict import _limits
from retrodict._sparing import Sparing
from retrodict.errors import DataNotice, ModelError, SuspicionNotice
from retrodict.events.fingerprint import fitted_to
from retrodict.events.stream_set import StreamSet
from retrodict.events.suspicion import warn_of
from retrodict.models.base import LONGEST, TIME_WAS_UP, Model
from retrodict.models.calendar_first import first_calendar
from retrodict.models.device import find_device
from retrodict.models.end import is_to_learn
from retrodict.models.end_fit import learn_end
from retrodict.models.model_folder import load_model
from retrodict.models.surprise import surprises
from retrodict.models.tensors import weights_digest
from retrodict.proposals.base import Proposal
from retrodict.proposals.proposal_folder import load_proposal
from retrodict.train.asked import (
    check_data,
    check_settings,
    check_training,
    folder_of_run,
    mechanism_config,
    rounded,
    streams_a_step,
)
from retrodict.train.checkpoint import SafetensorsCheckpoints
from retrodict.train.ddp import PlainSigterm, strategy_of
from retrodict.train.divergence import Divergence
from retrodict.train.module import Settings, TrainingModule
from retrodict.train.objective import Likelihood, Objective, dev_loss
from retrodict.train.progress import EpochProgress
from retrodict.train.run import Run
from retrodict.train.together import Team, gather, team, trains_together

MOST_EPOCHS = {"model": 2000, "proposal": 200}  # by default
_MUCH = 2 << 30  # bytes of memory worth a word beforehand


@trains_together
def fit(
    model: Model | Proposal | type[Model] | Callable[[StreamSet], Model],
    train: StreamSet,
    dev: StreamSet | None = None,
    *,
    directory: str | os.PathLike[str] | None = None,
    epochs: int | None = None,
    batch_size: int | None = None,
    learning_rate: float | None = None,
    weight_decay: float = 0.0,
    averaging: float = 0.995,
    patience: int = 12,
    seconds: float | None = None,
    seed: int = 0,
    resume: bool = True,
    device: str = "auto",
    progress: bool | Sparing = True,
    calendar: bool | None = None,
    covariates: Any = None,
    devices: int = 1,
    num_nodes: int = 1,
    **options: Any,
) -> Any:
    """Fit a model, or a smoothing proposal, to complete ``train`` streams and return it at its best on ``dev``.

    ``model`` is a model, which is trained in place, or a class (``rd.NeuralHawkes``), which is sized for the data, or a
    function that makes a model for the training streams. Without ``dev`` a tenth of ``train`` is set aside. Training
    stops after ``patience`` epochs without a better dev score, or after ``epochs`` (2,000 of a model, 200 of a
    proposal), or with the epoch in which ``seconds`` since the call are over. ``batch_size`` streams make a step, by
    default 50, or fewer where streams are long and few. With a ``directory`` everything is kept there and ``resume``
    goes on with what it finds; without one nothing is left behind. Further ``options`` are the objective's: for a
    proposal ``beta``, ``learn_from``, ``redraw``, ``fresh_masks``, ``draws`` (``train/divergence.py``), for a state
    space ``dropout``, the share of units that is hidden in a step. A model whose
    maximum can be computed (``Hawkes`` with several scales) takes no epochs: ``solve`` of the model does it. Where
    nearly all training streams end exactly at an event, a model also learns when streams end (``models/end.py``), after
    all else. ``calendar=True`` gives a model of dated streams hours of the day and days of the week
    (``models/calendar.py``) if that helps a Poisson process on dev, and ``calendar=False`` none. ``covariates`` is a
    table of dates and what is known in advance to hold from then on. ``devices`` processes, each on a GPU or on cores
    of its own, share every step; with ``num_nodes`` machines so many on each (``train/together.py``).
    """
    began = time.perf_counter()
    check_settings(epochs=epochs, batch_size=batch_size, patience=patience)
    check_training(learning_rate, seconds)
    if not (isinstance(train, StreamSet) and (dev is None or isinstance(dev, StreamSet))):
        raise ModelError("train and dev must be stream sets: build them with rd.StreamSet or rd.read_events.")
    find_device(device, devices)
    if not isinstance(model, Proposal):  # its model was fitted to such streams before
        warn_of(train, skip=("ends", "same number") if is_to_learn(train) else ())
    table = fitted_to(train)
    train, dev = check_data(train, dev, seed)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        fitted, train = model_for(model, train)
    learned: dict[str, Any] = {}
    if isinstance(fitted, Model):
        fitted.end_atom = None  # it is fitted last, by itself
        learned = give_calendar(fitted, train, fitted.matched(dev), calendar, covariates)
    capped, epochs = epochs is None, epochs or MOST_EPOCHS["proposal" if isinstance(fitted, Proposal) else "model"]
    batch_size = batch_size or streams_a_step(train, devices * num_nodes)
    _ask_memory(fitted.model if isinstance(fitted, Proposal) else fitted, train, batch_size)
    rate = fitted.learning_rate if learning_rate is None else learning_rate
    settings = Settings(batch_size, rate, patience, seed, weight_decay, averaging)
    objective: Objective
    if isinstance(fitted, Proposal):
        fitted.settle(train)
        objective = Divergence(fitted, train, fitted.model.matched(dev), seed=seed, **options)
    else:
        objective = Likelihood(fitted, train, fitted.matched(dev), **options)
    with folder_of_run(directory) as folder:
        about = {"kind": fitted.kind, "config": rounded(fitted.config()), **_given(fitted), **rounded(learned)}
        run = Run(folder, objective, settings, about)
        if resume and run.is_finished(epochs):
            warnings.warn(f"{folder}: this fit had finished; its model was loaded", DataNotice, stacklevel=3)
            if isinstance(fitted, Proposal):
                _become(fitted, load_proposal(folder, missing=fitted.missingness))
            else:
                _become(fitted, load_model(folder))
            return fitted
        done, converged = 0, isinstance(fitted, Model) and solve(fitted, objective, run, resume, batch_size)
        if not converged:
            left = None if seconds is None else max(seconds - (time.perf_counter() - began), 1e-3)
            how: dict[str, Any] = {"seconds": left, "resume": resume, "device": device, "progress": progress}
            fitting = train_objective(objective, settings, run, epochs=epochs, **how)
            done, converged = len(fitting.history), fitting.is_done()
            if capped and done >= epochs and not converged:
                remedy = f"give epochs={2 * epochs} and the same directory to go on"
                warnings.warn(
                    f"training ended after {epochs:,} epochs while dev improved: {remedy}", DataNotice, stacklevel=3
                )
        if isinstance(fitted, Model):
            fitted.training_record |= learned | learn_end(fitted, train, objective.dev) | table
        if directory is not None:
            fitted.save(folder)
            run.finish(done, stopped_early=converged)
    if isinstance(fitted, Model):
        for found in surprises(fitted, fitted.matched(dev)[:200]):
            warnings.warn(str(found), SuspicionNotice, stacklevel=3)
    return fitted


def give_calendar(
    model: Model, train: StreamSet, dev: StreamSet, calendar: bool | None, covariates: Any
) -> dict[str, Any]:
    """Give a model a first calendar, or none, or, for None, leave it as it is; what to record of it."""
    if calendar is False:
        model.calendar = None
    if not calendar and covariates is None:
        return {}
    model.calendar, record = first_calendar(model, train, dev, covariates)
    return record


def solve(model: Model, objective: Objective, run: Run, resume: bool, batch_size: int) -> bool:
    """Fit a model whose maximum can be computed; False for one that takes gradient steps."""
    began = time.perf_counter()
    how = model.solve(objective.train, objective.dev)
    if how is None:
        return False
    run.begin(resume)
    loss, events = dev_loss(objective, batch_size)
    model.training_record = {
        "dev_log_likelihood_per_event": -loss / max(events, 1.0),
        "train_streams": len(objective.train),
        "train_events": objective.train.num_events,
        LONGEST: float(objective.train.durations.max(initial=0.0)),
        "seconds": round(time.perf_counter() - began, 1),
        **how,
    }
    return True


def train_objective(
    objective: Objective,
    settings: Settings,
    run: Run,
    *,
    epochs: int,
    seconds: float | None = None,
    resume: bool = True,
    device: str = "auto",
    progress: bool | Sparing = True,
) -> TrainingModule:
    """Train whatever the objective holds, in place, ending with its best weights; the run keeps the files.

    The other processes of a team get all of it, and train along.
    """
    began, module, others = time.perf_counter(), objective.module, team()
    end = None if seconds is None else began + seconds
    home = next(module.parameters()).device
    last = run.begin(resume)
    checkpoint = None if last is None else SafetensorsCheckpoints().load_checkpoint(last)
    job = _Epochs(objective, settings, run, epochs, seconds is not None, device, checkpoint)
    packed = None if others is None else others.pack(job)
    with job.in_training():
        fitting = TrainingModule(objective, settings)
        if checkpoint is not None:
            fitting.on_load_checkpoint(checkpoint)
        if not fitting.is_done():
            callbacks: list[pl.Callback] = _shown(epochs, seconds, progress)
            with contextlib.nullcontext() if others is None or packed is None else others.at_work(packed):
                job.run(fitting, callbacks, end, others)
        _take_best(fitting, run.best, home)
    if isinstance(module, Model | Proposal):
        module.training_record = _record(fitting, epochs, time.perf_counter() - began)
    return fitting


def _shown(epochs: int, seconds: float | None, progress: bool | Sparing) -> list[pl.Callback]:
    """What shows the progress, if that is wanted."""
    if not progress:
        return []
    return [EpochProgress(epochs, seconds, progress if isinstance(progress, Sparing) else None)]


@dataclass(frozen=True)
class _Epochs:
    """Epochs of training, as each of the processes that train together runs them on its share of every step."""

    objective: Objective
    settings: Settings
    files: Run
    epochs: int
    timed: bool
    device: str
    checkpoint: dict[str, Any] | None

    def __call__(self, others: Team) -> None:
        """What a follower does."""
        with self.in_training():
            self.run(TrainingModule(self.objective, self.settings), [], float("inf"), others)

    def in_training(self) -> contextlib.AbstractContextManager[None]:
        """Inside, a model's parameters have the form in which steps move them."""
        module = self.objective.module
        return module.in_training(self.objective.train) if isinstance(module, Model) else contextlib.nullcontext()

    def run(
        self, fitting: TrainingModule, callbacks: list[pl.Callback], end: float | None, others: Team | None
    ) -> None:
        """Train, from the checkpoint if there is one, until the clock stands at ``end``."""
        if self.timed and end is not None:
            callbacks.append(_Deadline(end))
        how: dict[str, Any] = {"devices": 1}
        if others is not None:
            callbacks.append(PlainSigterm())
            how = {"devices": others.devices, "num_nodes": others.num_nodes, "strategy": strategy_of(others)}
        with _quiet():
            trainer = pl.Trainer(
                max_epochs=self.epochs,
                accelerator="gpu" if find_device(self.device) == "cuda" else "cpu",
                callbacks=[*callbacks, self.files.callback()],
                logger=False,
                plugins=[SafetensorsCheckpoints(self.checkpoint)],
                reload_dataloaders_every_n_epochs=1,
                num_sanity_val_steps=0,
                enable_progress_bar=False,
                enable_model_summary=False,
                use_distributed_sampler=False,  # the module shares batches out
                **how,
            )
            _run_trainer(trainer, fitting, None if self.checkpoint is None else self.files.last)


def _take_best(fitting: TrainingModule, file: Path, home: torch.device) -> None:
    """Give what was trained the weights of its best epoch."""
    module = fitting.trained
    module.to(home)
    best = SafetensorsCheckpoints().load_checkpoint(file)
    # The best epoch's checkpoint also has what gradient steps do not train: the start atom, rates learned by EM.
    prefix = "trained."
    module.load_state_dict({k.removeprefix(prefix): v for k, v in best["state_dict"].items() if k.startswith(prefix)})
    with torch.no_grad():
        for name, parameter in module.named_parameters():
            if name in best["average"]:
                parameter.copy_(best["average"][name])


class _Deadline(pl.Callback):
    """Ends training with the epoch in which time is up; the same call goes on from there."""

    def __init__(self, end: float) -> None:
        self.end = end

    def on_train_epoch_end(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> None:
        """Look at the clock: the leader's, where several processes train."""
        over = time.perf_counter() >= self.end
        if trainer.world_size > 1:
            over = any(gather(over))
        trainer.should_stop = trainer.should_stop or over


def model_for(
    model: Model | Proposal | type[Model] | Callable[[StreamSet], Model], train: StreamSet
) -> tuple[Model | Proposal, StreamSet]:
    """The model to train, sized and scaled for the streams, and the streams as it takes them."""
    if isinstance(model, Proposal):
        return model, model.model.matched(train)
    if isinstance(model, type) and issubclass(model, Model):
        made = model.from_streams(train)
    elif isinstance(model, Model):
        made, train = model, model.matched(train)
        made.adapt(train)
    elif callable(model):
        made = cast("Callable[[StreamSet], Model]", model)(train)
    else:
        raise ModelError(f"cannot fit a {type(model).__name__}. Give a model, or a class such as rd.NeuralHawkes.")
    return made, train


def _ask_memory(model: Model, train: StreamSet, batch_size: int) -> None:
    """Refuse a fit whose steps need more memory than there is; say so where they need much."""
    longest = int(train.lengths.max(initial=0))
    streams = min(batch_size, len(train))
    need = model.step_memory(streams, longest)
    what = f"a step of training on {streams} streams of up to {longest:,} events and {model.num_types:,} types"
    _limits.ask_memory(need, what, "use a smaller batch_size, fewer types or shorter streams")
    if need > _MUCH:
        warnings.warn(f"{what} takes about {_limits.size(need)} of memory", DataNotice, stacklevel=4)


def _run_trainer(trainer: pl.Trainer, fitting: TrainingModule, checkpoint: Path | None) -> None:
    try:
        trainer.fit(fitting, ckpt_path=checkpoint)
    except SystemExit as stop:
        # Lightning turns an interrupt into an exit; whoever called us should see the interrupt.
        raise KeyboardInterrupt("training interrupted; repeat the call to resume") from stop


def _record(fitting: TrainingModule, epochs: int, seconds: float) -> dict[str, Any]:
    """How the fit went, for the saved model."""
    best = min(fitting.history, key=lambda row: row["dev_loss"])
    done = len(fitting.history)
    why = "dev no longer improved" if fitting.is_done() else "all epochs done" if done >= epochs else TIME_WAS_UP
    return {
        "epochs": done,
        "ended": why,
        "best_epoch": int(best["epoch"]) + 1,
        "train_log_likelihood_per_event": -best["train_loss"],
        "dev_log_likelihood_per_event": -best["dev_loss"],
        "train_streams": len(fitting.objective.train),
        "train_events": fitting.objective.train.num_events,
        LONGEST: float(fitting.objective.train.durations.max(initial=0.0)),
        "seconds": round(seconds, 1),
        **asdict(fitting.settings),
        **fitting.objective.options(),
    }


def _given(fitted: Model | Proposal) -> dict[str, Any]:
    """What a proposal is fitted for and does not change: its mechanism and its model, a part of the run's identity."""
    if not isinstance(fitted, Proposal):
        return {}
    trained = {name for name, parameter in fitted.named_parameters() if parameter.requires_grad}
    given = {name: value for name, value in fitted.state_dict().items() if name not in trained}
    mechanism = mechanism_config(fitted.missingness)
    return {"model and mechanism": {"weights": weights_digest(given), "missingness": mechanism}}


def _become(model: Model | Proposal, loaded: Model | Proposal) -> None:
    """Give ``model`` the weights and the record of a saved one."""
    if isinstance(model, Model) and isinstance(loaded, Model):
        loaded.to(model.device)
        model.start_atom, model.end_atom, model.calendar = loaded.start_atom, loaded.end_atom, loaded.calendar
    model.load_state_dict(loaded.state_dict())
    model.training_record = loaded.training_record


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    """Keep Lightning's own hints out of the terminal."""
    loggers = [logging.getLogger(name) for name in ("pytorch_lightning", "lightning_fabric", "lightning.pytorch")]
    levels = [logger.level for logger in loggers]
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", module=r"(pytorch_lightning|lightning_fabric)\..*")
        warnings.filterwarnings("ignore", message=".*does not have many workers.*")
        for logger in loggers:
            logger.setLevel(logging.ERROR)
        try:
            yield
        finally:
            for logger, level in zip(loggers, levels, strict=True):
                logger.setLevel(level)
