"""Train the models p and the smoothers q that the experiments measure; a fit that is ended goes on where it was."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch

from retrodict.events.stream_set import StreamSet
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
    model, record = _fit(make, place, dataset, folder, device, place.scale.epochs_p[kind_of(dataset)], seconds)
    scores = {name: _nats(model, part) for name, part in (("dev", splits.dev), ("test", splits.test))}
    return {"hidden": hidden, **record, "nats_per_event": scores}


def train_smoother(
    place: Place, device: str, dataset: str, setting: str, way: str, seconds: float | None = None
) -> dict[str, Any]:
    """Fit q to be near the posterior in a setting, our way or the paper's; log q per missing dev event."""
    hidden = place.scale.hidden[kind_of(dataset)]
    missing = mechanism(setting, dataset, place.splits(dataset).train.types)

    def make() -> Proposal:
        torch.manual_seed(place.scale.seed)
        return Smoothing(place.model(dataset), missing, hidden)

    folder = place.smoother_folder(dataset, setting, way)
    epochs = place.scale.epochs_q[kind_of(dataset)]
    # Ours: fresh masks, and simulated streams where masks cannot vary; synthetic streams are simulated ones anyway.
    ours = {"simulated": 0.0} if kind_of(dataset) == "synthetic" else {}
    options: dict[str, Any] = ours if way == "ours" else _PAPER
    smoother, record = _fit(make, place, dataset, folder, device, epochs, seconds, **options)
    return {"hidden": hidden, **record, "dev_log_q": smoother.training_record["dev_log_likelihood_per_event"]}


def _fit(
    make: Callable[[], Any],
    place: Place,
    dataset: str,
    folder: Path,
    device: str,
    epochs: int,
    seconds: float | None,
    **options: Any,
) -> tuple[Any, dict[str, Any]]:
    """Train until dev no longer improves, for at most so many epochs and so many seconds."""
    from retrodict.train.fitting import fit

    train, dev, _ = place.splits(dataset)
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
