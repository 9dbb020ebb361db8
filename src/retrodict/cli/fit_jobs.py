"""What ``retrodict fit`` can do: fit a model, train its smoother, learn from incomplete streams."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import typer

from retrodict.cli import common
from retrodict.cli.rates import show_rates
from retrodict.errors import ModelError, WriteError
from retrodict.events.stream_set import StreamSet
from retrodict.missingness.spec import parse_missing
from retrodict.models import MODELS, Model, NeuralHawkes

SMOOTHER = "smoother"  # the folder, inside the model's, of the proposal trained for it
Maker = Callable[[StreamSet], Model]


def maker(kind: str, hidden: int | None) -> Maker:
    """A function that makes a model of this kind for training streams, with ``hidden`` cells."""
    if hidden is None:
        return MODELS[kind].from_streams
    if kind != NeuralHawkes.kind:
        raise ModelError(f"--hidden is for neural models; a {kind.replace('_', '-')} model has no hidden cells.")
    return partial(NeuralHawkes.from_streams, hidden_size=hidden)


def fit_model(
    make: Maker, streams: tuple[StreamSet, StreamSet | None], output: Path, settings: dict[str, Any]
) -> Model:
    """Fit a model to complete training streams, with their dev streams, into the folder."""
    from retrodict.train.fitting import fit

    with common.notes():
        fitted: Model = fit(make, *streams, directory=output, **settings)
    record = fitted.training_record
    score = f"{record['dev_log_likelihood_per_event']:.4f} nats per event on dev"
    common.wrote(output, f"{fitted.kind.replace('_', '-')} model, {score} ({_effort(record)})")
    return fitted


def fit_smoother(
    model: Model,
    missing: list[str],
    mixing: int | None,
    streams: tuple[StreamSet, StreamSet | None],
    output: Path,
    settings: dict[str, Any],
) -> None:
    """Train a smoothing proposal for the model into the folder ``smoother``."""
    import torch

    from retrodict.proposals import Smoothing
    from retrodict.train.fitting import fit

    mechanism = parse_missing(missing, model.types or streams[0].types, model.time_unit)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(settings["seed"])
        proposal = Smoothing(model, mechanism, mixing=mixing)
    with common.notes():
        fit(proposal, *streams, directory=output / SMOOTHER, **settings)
    record = proposal.training_record
    dev = "streams drawn in place of dev" if record["learn_from"] == "model" else "dev"
    score = f"log q {record['dev_log_likelihood_per_event']:.4f} nats per missing event on {dev}"
    common.wrote(output / SMOOTHER, f"smoother, {score} ({_effort(record)})")


def fit_incomplete(
    make: Maker,
    streams: tuple[StreamSet, StreamSet | None, StreamSet | None],
    missing: list[str],
    output: Path,
    settings: dict[str, Any],
) -> None:
    """Monte Carlo EM on incomplete streams, with their dev streams and complete ones."""
    from retrodict.train.incomplete import fit_incomplete as run

    train, dev, complete = streams
    mechanism = parse_missing(missing, train.types, train.axis.unit)
    with common.notes():
        fitted = run(make, train, mechanism, dev, complete=complete, directory=output, **settings)
    if fitted.rates is not None:
        show_rates(fitted.rates)
    best = min(fitted.history, key=lambda row: row["dev_loss"])
    common.wrote(
        output,
        f"{fitted.model.kind} model and smoother from incomplete streams, log evidence {-best['dev_loss']:.4f} nats "
        f"per observed event on dev (best epoch {int(best['epoch']) + 1} of {len(fitted.history)})",
    )


def learn_mechanism(
    known: Path, train: StreamSet, missing: list[str], output: Path, *, seed: int, resume: bool
) -> None:
    """Learn how events go missing, for a model that stays as it is."""
    from retrodict.models.model_folder import load_model
    from retrodict.proposals import Filtering
    from retrodict.train.mechanism import learn_missing

    model = load_model(known)
    mechanism = parse_missing(missing, model.types or train.types, model.time_unit)

    def say(number: int, evidence: float) -> None:
        common.err.print(f"round {number + 1}: log evidence {evidence:.4f} nats per observed event", highlight=False)

    proposal = Filtering(model, mechanism)
    with common.notes():
        learned = learn_missing(proposal, train, directory=output, progress=say, seed=seed, resume=resume)
    if learned.rates is not None:
        show_rates(learned.rates)
    common.wrote(
        output / "missing.yaml",
        f"{learned.missing!r}, log evidence {learned.evidence[-1]:.4f} nats per observed event (use it with --missing)",
    )


def _effort(record: dict[str, Any]) -> str:
    return f"best epoch {record['best_epoch']} of {record['epochs']}, {record['seconds']:g} s"


@contextmanager
def going_on() -> Iterator[None]:
    """Say how to go on after an interrupt or a full disk."""
    go_on = "run the same command again to go on after the last whole epoch"
    try:
        yield
    except KeyboardInterrupt:
        common.err.print(f"[yellow]interrupted[/]: {go_on}")
        raise typer.Exit(130) from None
    except WriteError:
        common.err.print(f"[yellow]note:[/] what was finished is kept: when there is room, {go_on}")
        raise
