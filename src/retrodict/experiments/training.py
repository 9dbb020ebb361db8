"""Train the models p and the smoothers q that the experiments measure; a fit that is ended goes on where it was."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch

from retrodict.datasets.folder import read_splits
from retrodict.datasets.synthetic import draw
from retrodict.events.stream_set import Splits, StreamSet
from retrodict.experiments.data import mechanism
from retrodict.experiments.place import Place
from retrodict.experiments.scale import AVERSE, DETERMINISTIC, LOOKAHEAD, Scale, kind_of
from retrodict.missingness import ByType
from retrodict.models.base import Model
from retrodict.models.neural_hawkes import NeuralHawkes
from retrodict.models.quadrature import GaussLegendre
from retrodict.proposals.base import Proposal
from retrodict.proposals.lookahead import Lookahead
from retrodict.proposals.smoothing import Smoothing

_GENTLY = {"learning_rate": 1e-3, "averaging": 0.998}  # how a trained smoother is trained further


def train_model(place: Place, device: str, dataset: str, seconds: float | None = None) -> dict[str, Any]:
    """Fit p, a neural Hawkes process, to the complete training streams; nats per event on dev and test."""
    splits, hidden = place.splits(dataset), place.scale.hidden[kind_of(dataset)]

    def make(train: StreamSet) -> Model:
        return NeuralHawkes.from_streams(train, hidden)

    folder = place.model_folder(dataset)
    model, record = _fit(make, place, dataset, splits, folder, device, place.scale.epochs_p[kind_of(dataset)], seconds)
    scores = {name: _nats(model, part) for name, part in (("dev", splits.dev), ("test", splits.test))}
    return {"hidden": hidden, **record, "nats_per_event": scores}


def train_smoother(
    place: Place, device: str, dataset: str, setting: str, way: str, seconds: float | None = None
) -> dict[str, Any]:
    """Fit q to be near the posterior in a setting; log q per missing event of the dev streams it is scored on.

    Ours: past and future interact, and q learns from streams that p draws. Taught by ``data``: the same from the
    training streams with fresh masks, joined by as many of p's where masks cannot vary; of a synthetic set from more
    streams that were drawn as its own were. With ``lookahead``: q asks the model what would follow, and learns from
    streams that are drawn as a synthetic set's own were, others every epoch; ``averse``, that q is damped and learns
    from more of them to lose to filtering seldom. The ``paper``'s: past and future add up, and q learns from one mask
    of the training streams.
    """
    scale, kind = place.scale, kind_of(dataset)
    splits = place.splits(dataset)
    model = place.model(dataset)
    if way == AVERSE:
        proposal = between(place.smoother(dataset, setting, LOOKAHEAD), scale.aversion)
    else:
        proposal = _untrained(scale, kind, way, model, mechanism(setting, dataset, splits.train.types))
    options: dict[str, Any] = {"learn_from": "model" if way == "ours" else "data"}
    if way == "paper":
        options["fresh_masks"] = False
    elif way in (LOOKAHEAD, AVERSE):
        options |= {"learn_from": _recipe(model, len(splits.train)), "patience": scale.patience_lookahead}
        if way == AVERSE:
            options |= {"aversion": scale.aversion, **_GENTLY}
    elif way == "data" and kind == "synthetic":
        splits = read_splits(place.more_folder(dataset))
    elif way == "data" and setting == DETERMINISTIC:
        options = {"learn_from": "both", "redraw": 20}
    folder = place.smoother_folder(dataset, setting, way)
    epochs = (scale.epochs_q if way in ("data", "paper") else scale.epochs_ours)[kind]
    smoother, record = _fit(proposal, place, dataset, splits, folder, device, epochs, seconds, **options)
    found = smoother.training_record
    if way == AVERSE:
        record["dev_risk"] = found["dev_risk_per_event"]
    else:
        record["dev_log_q"] = found["dev_log_likelihood_per_event"]
    return {"hidden": proposal.hidden_size, "mixing": proposal.mixing, **record}


def _untrained(scale: Scale, kind: str, way: str, model: Model, missing: ByType) -> Smoothing:
    """A smoother to be trained in one of several ways."""
    torch.manual_seed(scale.seed)
    hidden = scale.hidden[kind]
    if way == LOOKAHEAD:
        return Lookahead(model, missing, hidden, scale.lookahead[kind], scale.steps)
    return Smoothing(model, missing, hidden, 0 if way == "paper" else scale.mixing[kind])


def between(smoother: Proposal, aversion: float) -> Smoothing:
    """As far on the way from filtering to a smoother as the best one lies that is averse to losing (divergence.py)."""
    assert isinstance(smoother, Smoothing)
    return smoother.damped(1 / (1 + aversion))


def _recipe(model: Model, count: int) -> Callable[[int], StreamSet]:
    """What makes streams of a synthetic set's process that end as its own do: with an event."""
    assert isinstance(model, NeuralHawkes)

    def recipe(seed: int) -> StreamSet:
        return draw(model, count, seed)

    return recipe


def _fit(
    what: Proposal | Callable[[StreamSet], Model],
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

    began = time.perf_counter()
    fitted = fit(
        what,
        splits.train,
        splits.dev,
        directory=folder,
        epochs=epochs,
        batch_size=place.scale.batch_size[kind_of(dataset)],
        seconds=seconds,
        seed=place.scale.seed,
        device=device,
        progress=False,
        **{"patience": place.scale.patience, **options},
    )
    took = time.perf_counter() - began
    return fitted, {"train_seconds": took} | {k: fitted.training_record[k] for k in ("epochs", "best_epoch", "ended")}


@torch.no_grad()
def _nats(model: Model, streams: StreamSet) -> float:
    """Log-likelihood per event, with a precise integral."""
    total = sum(
        float(model.log_likelihood(streams[i : i + 50], integral=GaussLegendre(20)).double().sum())
        for i in range(0, len(streams), 50)
    )
    return total / streams.num_events
