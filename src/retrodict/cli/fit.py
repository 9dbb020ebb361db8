"""``retrodict fit``: learn what complete streams look like."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from enum import StrEnum
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.markup import escape

from retrodict.cli import common
from retrodict.errors import ModelError
from retrodict.events.stream_set import StreamSet
from retrodict.missingness import Missingness
from retrodict.missingness.parse import parse_missing
from retrodict.models import MODELS, Model, NeuralHawkes

Kind = StrEnum("Kind", {kind: kind.replace("_", "-") for kind in reversed(MODELS)})  # type: ignore[misc]
_USUAL = Kind("neural-hawkes")
SMOOTHER = "smoother"  # the folder, inside the model's, of the proposal trained for it


def fit(
    file: common.File,
    output: Annotated[Path, typer.Option("--output", "-o", help="Folder for the model, its logs and checkpoints.")],
    dev: Annotated[
        Path | None, typer.Option(help="Streams to stop early by; else a tenth of FILE is set aside.")
    ] = None,
    model: Annotated[Kind, typer.Option(help="What to fit.")] = _USUAL,
    missing: Annotated[
        list[str] | None,
        typer.Option(
            "--missing",
            "-m",
            help="Also train a smoother for what goes missing: NAME=RATE, PATTERN=RATE, RATE or a YAML file.",
        ),
    ] = None,
    hidden: Annotated[int | None, typer.Option(help="LSTM cells; chosen from the data by default.", min=1)] = None,
    epochs: Annotated[int, typer.Option(help="At most so many passes over the data.", min=1)] = 200,
    patience: Annotated[int, typer.Option(help="Stop after so many epochs without a better dev score.", min=1)] = 12,
    batch_size: Annotated[int, typer.Option(help="Streams a step.", min=1)] = 50,
    learning_rate: Annotated[float | None, typer.Option(help="Adam's step size; each model has its own.")] = None,
    device: Annotated[str, typer.Option(help="auto, cpu or cuda.")] = "auto",
    resume: Annotated[
        bool, typer.Option("--resume/--restart", help="Go on with what is in the folder, or not.")
    ] = True,
    seed: common.Seed = 0,
    stream: common.Stream = None,
    time: common.Time = None,
    type: common.Type = None,
    start: common.Start = None,
    end: common.End = None,
    unit: common.Unit = None,
    timezone: common.Timezone = None,
) -> None:
    """Fit a model to complete streams. Interrupted or killed, the same command goes on where it stopped.

    [bold]Examples[/]

      retrodict fit trips.parquet -o model/

      retrodict fit trips.parquet -m 'pick-up*=0.5' -o model/

      retrodict fit trips.parquet -m outages.yaml -o model/

      retrodict fit train.csv --dev dev.csv --stream driver --time when --type what --hidden 128 -o model/
    """
    columns = (stream, time, type, start, end, unit, timezone)
    train = common.read(file, *columns)
    dev_streams = None if dev is None else common.read(dev, *columns)
    if dev_streams is not None:
        types = [*train.types, *(name for name in dev_streams.types if name not in train.types)]
        train, dev_streams = train.with_types(types), dev_streams.with_types(types)

    from retrodict.train.fitting import fit as run

    settings: dict[str, Any] = {
        "epochs": epochs,
        "batch_size": batch_size,
        "patience": patience,
        "seed": seed,
        "resume": resume,
        "device": device,
    }
    with common.notes(), _interruptible():
        fitted = run(
            _start(model, hidden),
            train,
            dev_streams,
            directory=output,
            learning_rate=learning_rate,
            **settings,
        )
    record = fitted.training_record
    if missing:
        mechanism = parse_missing(missing, fitted.types or train.types, fitted.time_unit)
        _fit_smoother(fitted, mechanism, train, dev_streams, output, settings)
    common.wrote(
        output,
        f"{escape(model.value)} model, {record['dev_log_likelihood_per_event']:.4f} nats per event on dev "
        f"(best epoch {record['best_epoch']} of {record['epochs']}, {record['seconds']:g} s)",
    )


def _fit_smoother(
    model: Model, missing: Missingness, train: StreamSet, dev: StreamSet | None, output: Path, settings: dict[str, Any]
) -> None:
    """Train a smoothing proposal for the model into the folder ``smoother``."""
    import torch

    from retrodict.proposals import Smoothing
    from retrodict.train.fitting import fit as run

    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(settings["seed"])
        proposal = Smoothing(model, missing, getattr(model, "hidden_size", 32))
    with common.notes(), _interruptible():
        run(proposal, train, dev, directory=output / SMOOTHER, **settings)
    record = proposal.training_record
    common.wrote(
        output / SMOOTHER,
        f"smoother, log q {record['dev_log_likelihood_per_event']:.4f} nats per missing event on dev "
        f"(best epoch {record['best_epoch']} of {record['epochs']}, {record['seconds']:g} s)",
    )


def _start(kind: Kind, hidden: int | None) -> Any:
    """The class to fit, or a maker of neural models of the size that was asked for."""
    if hidden is None:
        return MODELS[kind.name]
    if kind.name != NeuralHawkes.kind:
        raise ModelError(f"--hidden is for neural models; a {kind.value} model has no hidden cells.")
    return partial(NeuralHawkes.from_streams, hidden_size=hidden)


@contextmanager
def _interruptible() -> Iterator[None]:
    """Say how to go on after Ctrl-C."""
    try:
        yield
    except KeyboardInterrupt:
        common.err.print("[yellow]interrupted[/]: run the same command again to go on after the last whole epoch")
        raise typer.Exit(130) from None
