"""Train the models p and the smoothers q; a fit that ran out of time goes on where it was."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch

import retrodict as rd
from experiments.data import mechanism
from experiments.sizes import Kind
from experiments.store import Run, read_json, record_of
from retrodict.models.quadrature import GaussLegendre

OUT_OF_TIME = "time was up"
REDRAW = 5  # epochs on the same streams of p: on a GPU drawing others takes longer than an epoch


def fit_model(run: Run, dataset: str, device: str, seconds: float | None) -> dict[str, Any] | None:
    """Fit p, a neural Hawkes process, to the complete training streams; None if it ran out of time.

    No smoother can be trained for a p that is not finished, so there is no record of one either.
    """
    splits, kind = run.splits(dataset), run.kind(dataset)
    model, record = _fit(
        lambda train: rd.NeuralHawkes.from_streams(train, kind.hidden),
        run, dataset, run.model(dataset), device, kind.epochs[0], seconds,
    )  # fmt: skip
    if record["ended"] == OUT_OF_TIME:
        return None
    return {**record, "nats_per_event": {"dev": _nats(model, splits.dev), "test": _nats(model, splits.test)}}


def fit_smoother(run: Run, dataset: str, setting: str, form: str, device: str, seconds: float | None) -> dict[str, Any]:
    """Fit q to the posterior of a setting.

    ``ours``: past and future interact, trained on streams that p draws. ``paper``: past and future add up, trained on
    one mask of each training stream.
    """
    kind = run.kind(dataset)
    model = rd.load_model(run.model(dataset))
    missing = mechanism(setting, dataset, run.splits(dataset).train.types)
    torch.manual_seed(0)
    if form == "ours":
        smoother, epochs, options = ours(model, missing, kind), kind.epochs[1], {"redraw": REDRAW}
    else:
        smoother, epochs = rd.Smoothing(model, missing, kind.hidden, mixing=0, told=False), kind.epochs[2]
        options = {"learn_from": "data", "fresh_masks": False}
    folder = run.model(dataset, f"{form}-{setting}")
    smoother, record = _fit(smoother, run, dataset, folder, device, epochs, seconds, **options)
    return {**record, "dev_log_q": smoother.training_record["dev_log_likelihood_per_event"]}


def ours(model: rd.Model, missing: rd.ByType, kind: Kind) -> rd.Smoothing:
    """The smoother of this package, untrained."""
    return rd.Smoothing(model, missing, kind.hidden)


def _fit(
    what: Any, run: Run, dataset: str, folder: Path, device: str, epochs: int, seconds: float | None, **options: Any
) -> tuple[Any, dict[str, Any]]:
    """Train until dev no longer improves, for at most so many epochs and, in this call, so many seconds."""
    file = record_of(folder)
    before = read_json(file)["train_seconds"] if file.exists() else 0.0
    splits = run.splits(dataset)
    fitted = rd.fit(
        what,
        splits.train,
        splits.dev,
        directory=folder,
        epochs=epochs,
        batch_size=run.kind(dataset).batch,
        patience=run.scale.patience,
        seconds=seconds,
        device=device,
        progress=False,
        **options,
    )
    record = fitted.training_record
    kept = {name: record[name] for name in ("epochs", "best_epoch", "ended")}
    return fitted, {**kept, "train_seconds": before + record["seconds"]}


@torch.no_grad()
def _nats(model: rd.Model, streams: rd.StreamSet) -> float:
    """Log-likelihood per event, with a precise integral."""
    total = sum(
        float(model.log_likelihood(streams[i : i + 50], integral=GaussLegendre(20), score_end=False).double().sum())
        for i in range(0, len(streams), 50)
    )
    return total / streams.num_events
