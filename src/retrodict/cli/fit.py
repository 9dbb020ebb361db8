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
Teacher = StrEnum("Teacher", ["model", "data", "both"])  # whose streams, as in train/divergence.py
_MODEL = Teacher("model")
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
    incomplete: Annotated[
        bool, typer.Option("--incomplete", help="FILE has lost events as --missing says: fit by Monte Carlo EM.")
    ] = False,
    complete: Annotated[
        Path | None, typer.Option(help="With --incomplete: streams that are known to be complete.")
    ] = None,
    learn_missing: Annotated[
        bool, typer.Option("--learn-missing", help="With --incomplete: --missing is a first guess, and learned.")
    ] = False,
    known: Annotated[
        Path | None, typer.Option(help="With --learn-missing: a fitted model to keep as it is, instead of --complete.")
    ] = None,
    hidden: Annotated[int | None, typer.Option(help="LSTM cells; chosen from the data by default.", min=1)] = None,
    mixing: Annotated[
        int, typer.Option(help="With --missing: units of the smoother where past and future interact.", min=0)
    ] = 0,
    learn_from: Annotated[Teacher, typer.Option(help="With --missing: whose streams teach the smoother.")] = _MODEL,
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
    """Fit a model to complete streams, or to incomplete ones. Interrupted or killed, the same command goes on.

    [bold]Examples[/]

      retrodict fit trips.parquet -o model/

      retrodict fit trips.parquet -m 'pick-up*=0.5' -o model/

      retrodict fit trips.parquet -m outages.yaml -o model/

      retrodict fit patchy.csv --incomplete -m 0.3 -o model/

      retrodict fit patchy.csv --incomplete -m guess.yaml --learn-missing --known model/ -o missing/

      retrodict fit train.csv --dev dev.csv --stream driver --time when --type what --hidden 128 -o model/
    """
    columns = (stream, time, type, start, end, unit, timezone)
    train = common.read(file, *columns)
    dev_streams = None if dev is None else common.read(dev, *columns)
    if dev_streams is not None:
        types = [*train.types, *(name for name in dev_streams.types if name not in train.types)]
        train, dev_streams = train.with_types(types), dev_streams.with_types(types)

    if not incomplete and (complete or learn_missing or known):
        raise ModelError("--complete, --learn-missing and --known are for --incomplete streams: add that.")
    if incomplete and not missing:
        raise ModelError("--incomplete needs to know what goes missing: give --missing, such as --missing 0.3.")
    for option, given in {"--mixing": mixing, "--learn-from": learn_from != "model"}.items():
        if given and (incomplete or not missing):
            raise ModelError(f"{option} is for the smoother of complete streams: give --missing, and not --incomplete.")
    if known is not None:
        if complete or dev:
            raise ModelError("with a --known model only the mechanism is learned: leave out --complete and --dev.")
        _learn_missing(known, train, missing or [], learn_missing, output, {"seed": seed, "resume": resume})
        return

    from retrodict.train.fitting import fit as run

    settings: dict[str, Any] = {
        "epochs": epochs,
        "batch_size": batch_size,
        "patience": patience,
        "seed": seed,
        "resume": resume,
        "device": device,
    }
    if incomplete:
        whole = None if complete is None else common.read(complete, *columns)
        streams = (train, dev_streams, whole)
        more = {"learn_missing": learn_missing, "learning_rate": learning_rate, **settings}
        _fit_incomplete(_start(model, hidden), streams, missing or [], output, more)
        return
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
        _fit_smoother(
            fitted,
            mechanism,
            mixing,
            (train, dev_streams),
            output,
            {**settings, "learn_from": learn_from.value},
        )
    common.wrote(
        output,
        f"{escape(model.value)} model, {record['dev_log_likelihood_per_event']:.4f} nats per event on dev "
        f"(best epoch {record['best_epoch']} of {record['epochs']}, {record['seconds']:g} s)",
    )


def _fit_smoother(
    model: Model,
    missing: Missingness,
    mixing: int,
    streams: tuple[StreamSet, StreamSet | None],
    output: Path,
    settings: dict[str, Any],
) -> None:
    """Train a smoothing proposal for the model into the folder ``smoother``."""
    import torch

    from retrodict.proposals import Smoothing
    from retrodict.train.fitting import fit as run

    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(settings["seed"])
        proposal = Smoothing(model, missing, getattr(model, "hidden_size", 32), mixing)
    with common.notes(), _interruptible():
        run(proposal, *streams, directory=output / SMOOTHER, **settings)
    record = proposal.training_record
    dev = "streams drawn in place of dev" if record["learn_from"] == "model" else "dev"
    common.wrote(
        output / SMOOTHER,
        f"smoother, log q {record['dev_log_likelihood_per_event']:.4f} nats per missing event on {dev} "
        f"(best epoch {record['best_epoch']} of {record['epochs']}, {record['seconds']:g} s)",
    )


def _fit_incomplete(
    model: Any,
    streams: tuple[StreamSet, StreamSet | None, StreamSet | None],
    missing: list[str],
    output: Path,
    settings: dict[str, Any],
) -> None:
    """Monte Carlo EM on incomplete streams, with their dev and complete ones."""
    from retrodict.train.incomplete import fit_incomplete

    train, dev, complete = streams
    if complete is not None:
        types = [*train.types, *(name for name in complete.types if name not in train.types)]
        train, complete = train.with_types(types), complete.with_types(types)
        dev = None if dev is None else dev.with_types(types)
    mechanism = parse_missing(missing, train.types, train.axis.unit)
    with common.notes(), _interruptible():
        fitted = fit_incomplete(model, train, mechanism, dev, complete=complete, directory=output, **settings)
    best = min(fitted.history, key=lambda row: row["dev_loss"])
    common.wrote(
        output,
        f"{fitted.model.kind} model and smoother from incomplete streams, log evidence {-best['dev_loss']:.4f} nats "
        f"per observed event on dev (best epoch {int(best['epoch']) + 1} of {len(fitted.history)})",
    )


def _learn_missing(
    known: Path, train: StreamSet, missing: list[str], wanted: bool, output: Path, settings: dict[str, Any]
) -> None:
    """Learn how events go missing, for a model that stays as it is."""
    from retrodict.models.store import load_model
    from retrodict.proposals import Filtering
    from retrodict.train.mechanism import learn_missing

    if not wanted:
        raise ModelError("with a --known model there is only the mechanism to learn: add --learn-missing.")
    model = load_model(known)
    mechanism = parse_missing(missing, model.types or train.types, model.time_unit)

    def say(number: int, evidence: float) -> None:
        common.err.print(f"round {number + 1}: log evidence {evidence:.4f} nats per observed event", highlight=False)

    with common.notes(), _interruptible():
        learned = learn_missing(Filtering(model, mechanism), train, directory=output, progress=say, **settings)
    common.wrote(
        output / "missing.yaml",
        f"{learned.missing!r}, log evidence {learned.evidence[-1]:.4f} nats per observed event (use it with --missing)",
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
