"""Train the models p and the smoothers q that the experiments measure; a fit that is ended goes on where it was."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch

from retrodict.datasets.folder import read_splits
from retrodict.events.stream_set import Splits, StreamSet
from retrodict.experiments.data import mechanism
from retrodict.experiments.place import Place
from retrodict.experiments.scale import kind_of
from retrodict.models.base import Model
from retrodict.models.neural_hawkes import NeuralHawkes
from retrodict.models.quadrature import GaussLegendre
from retrodict.proposals.base import Proposal
from retrodict.proposals.smoothing import Smoothing

_PAPER = {"fresh_masks": False, "simulated": 0.0}  # one mask, the training streams alone
EPOCHS_AT_ONCE = 5  # between looks at the clock, where the time of a fit is limited


def train_model(place: Place, device: str, dataset: str, seconds: float | None = None) -> dict[str, Any]:
    """Fit p, a neural Hawkes process, to the complete training streams; nats per event on dev and test."""
    splits, hidden = place.splits(dataset), place.scale.hidden[kind_of(dataset)]

    def make() -> Callable[[StreamSet], Model]:
        return lambda train: NeuralHawkes.from_streams(train, hidden)

    folder = place.model_folder(dataset)
    model, record = _fit(make, place, dataset, splits, folder, device, place.scale.epochs_p[kind_of(dataset)], seconds)
    scores = {name: _nats(model, part) for name, part in (("dev", splits.dev), ("test", splits.test))}
    return {"hidden": hidden, **record, "nats_per_event": scores}


def train_smoother(
    place: Place, device: str, dataset: str, setting: str, way: str, seconds: float | None = None
) -> dict[str, Any]:
    """Fit q to be near the posterior in a setting, our way or the paper's; log q per missing dev event.

    Ours: past and future interact; masks are fresh, and where they cannot vary, simulated streams join. Where the model
    is the true process, q learns from streams drawn from it: the streams of the set end with an event, which q would
    learn and p knows nothing of, so that q would be far from p's posterior.
    """
    kind = kind_of(dataset)
    hidden, mixing = place.scale.hidden[kind], place.scale.mixing[kind] if way == "ours" else 0
    splits = place.splits(dataset)
    missing = mechanism(setting, dataset, splits.train.types)

    def make() -> Proposal:
        torch.manual_seed(place.scale.seed)
        return Smoothing(place.model(dataset), missing, hidden, mixing)

    options: dict[str, Any] = {"redraw": 20} if way == "ours" else _PAPER
    if kind == "synthetic" and way == "ours":
        splits, options = read_splits(place.simulated_folder(dataset)), {"simulated": 0.0}
    folder = place.smoother_folder(dataset, setting, way)
    smoother, record = _fit(
        make, place, dataset, splits, folder, device, place.scale.epochs_q[kind], seconds, **options
    )
    dev = smoother.training_record["dev_log_likelihood_per_event"]
    return {"hidden": hidden, "mixing": mixing, **record, "dev_log_q": dev}


def _fit(
    make: Callable[[], Any],
    place: Place,
    dataset: str,
    splits: Splits,
    folder: Path,
    device: str,
    epochs: int,
    seconds: float | None,
    **options: Any,
) -> tuple[Any, dict[str, Any]]:
    """Train until dev no longer improves, for at most so many epochs and so many seconds."""
    from retrodict.train.fitting import fit

    train, dev, _ = splits
    began, goal = time.perf_counter(), epochs if seconds is None else EPOCHS_AT_ONCE
    while True:
        fitted = fit(
            make(),
            train,
            dev,
            directory=folder,
            epochs=min(goal, epochs),
            batch_size=place.scale.batch_size[kind_of(dataset)],
            patience=place.scale.patience,
            seed=place.scale.seed,
            device=device,
            progress=False,
            **options,
        )
        done, took = fitted.training_record["epochs"], time.perf_counter() - began
        early = done < min(goal, epochs)
        if early or done >= epochs or (seconds is not None and took >= seconds):
            break
        goal = max(goal, done) + EPOCHS_AT_ONCE
    why = "dev no longer improved" if early else "all epochs done" if done >= epochs else "time was up"
    best = fitted.training_record["best_epoch"]
    return fitted, {"epochs": done, "best_epoch": best, "train_seconds": took, "ended": why}


@torch.no_grad()
def _nats(model: Model, streams: StreamSet) -> float:
    """Log-likelihood per event, with a precise integral."""
    total = sum(
        float(model.log_likelihood(streams[i : i + 50], integral=GaussLegendre(20)).double().sum())
        for i in range(0, len(streams), 50)
    )
    return total / streams.num_events
