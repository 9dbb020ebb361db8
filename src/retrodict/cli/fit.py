"""``retrodict fit``: learn what complete streams look like."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer

from retrodict.cli import common
from retrodict.cli import fit_jobs as jobs
from retrodict.cli.check import on_dev
from retrodict.errors import ModelError
from retrodict.events.lock import lock_folder
from retrodict.events.stream_set import StreamSet
from retrodict.events.suspicion import refuse_unix_time
from retrodict.models import MODELS

Kind = StrEnum("Kind", {kind: kind.replace("_", "-") for kind in reversed(MODELS)})  # type: ignore[misc]
LearnFrom = StrEnum("LearnFrom", ["model", "data", "both"])  # as in train/streams.py, which is slow to import

Output = Annotated[Path, typer.Option("--output", "-o", help="Folder for the model, its logs and checkpoints.")]
Dev = Annotated[Path | None, typer.Option(help="Streams to stop early by; else a tenth of FILE is set aside.")]
ModelKind = Annotated[Kind, typer.Option(help="What to fit.")]
_MISSING = "Also train a smoother for what goes missing: NAME=RATE, PATTERN=RATE, RATE or a YAML file."
Missing = Annotated[list[str] | None, typer.Option("--missing", "-m", help=_MISSING)]
_INCOMPLETE = "FILE has lost events as --missing says: fit by Monte Carlo EM."
Incomplete = Annotated[bool, typer.Option("--incomplete", help=_INCOMPLETE)]
Complete = Annotated[Path | None, typer.Option(help="With --incomplete: streams that are known to be complete.")]
_LEARN_MISSING = "With --incomplete: --missing is a first guess, and learned."
LearnMissing = Annotated[bool, typer.Option("--learn-missing", help=_LEARN_MISSING)]
_KNOWN = "With --learn-missing: a fitted model to keep as it is, instead of --complete."
Known = Annotated[Path | None, typer.Option(help=_KNOWN)]
Hidden = Annotated[int | None, typer.Option(help="LSTM cells; chosen from the data by default.", min=1)]
_MIXING = "With --missing: units of the smoother in which past and future interact; 0 is the paper's form."
Mixing = Annotated[int | None, typer.Option(help=_MIXING, min=0)]
_LEARN_FROM = "With --missing: train the smoother on streams that the model draws, on the data, or on both."
From = Annotated[LearnFrom, typer.Option(help=_LEARN_FROM)]
Epochs = Annotated[int, typer.Option(help="Passes over the data, at most.", min=1)]
Patience = Annotated[int, typer.Option(help="Stop after this many epochs without a better dev score.", min=1)]
BatchSize = Annotated[int, typer.Option(help="Streams a step.", min=1)]
LearningRate = Annotated[float | None, typer.Option(help="Adam's step size; each model has its own.")]
Device = Annotated[str, typer.Option(help="auto, cpu or cuda.")]
Resume = Annotated[bool, typer.Option("--resume/--restart", help="Go on with what is in the folder, or not.")]


def fit(
    file: common.File,
    output: Output,
    dev: Dev = None,
    model: ModelKind = Kind("neural-hawkes"),  # noqa: B008
    missing: Missing = None,
    incomplete: Incomplete = False,
    complete: Complete = None,
    learn_missing: LearnMissing = False,
    known: Known = None,
    hidden: Hidden = None,
    mixing: Mixing = None,
    learn_from: From = LearnFrom("model"),  # noqa: B008
    epochs: Epochs = 200,
    patience: Patience = 12,
    batch_size: BatchSize = 50,
    learning_rate: LearningRate = None,
    device: Device = "auto",
    resume: Resume = True,
    seed: common.Seed = 0,
    *,
    columns: common.Columns,
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
    if incomplete:
        _check_incomplete(bool(missing), complete is not None, dev is not None, learn_missing, known is not None)
    elif complete or learn_missing or known:
        raise ModelError("--complete, --learn-missing and --known are for --incomplete streams: add that.")
    for option, given in (("--mixing", mixing is not None), ("--learn-from", learn_from != "model")):
        if given and (incomplete or not missing):
            raise ModelError(f"{option} is for the smoother of complete streams: give --missing, and not --incomplete.")
    train, dev_streams, whole = _read(columns, file, dev, complete)
    assert train is not None
    settings: dict[str, Any] = {"epochs": epochs, "batch_size": batch_size, "patience": patience}
    settings |= {"seed": seed, "resume": resume, "device": device}
    make = jobs.maker(model.name, hidden)
    with lock_folder(output), jobs.going_on():
        if known is not None:
            jobs.learn_mechanism(known, train, missing or [], output, seed=seed, resume=resume)
        elif incomplete:
            more = {"learn_missing": learn_missing, "learning_rate": learning_rate}
            jobs.fit_incomplete(make, (train, dev_streams, whole), missing or [], output, settings | more)
        else:
            streams = (train, dev_streams)
            fitted = jobs.fit_model(make, streams, output, settings | {"learning_rate": learning_rate})
            if missing:
                settings["learn_from"] = learn_from.value
                jobs.fit_smoother(fitted, missing, mixing, streams, output, settings)
            on_dev(output, train, dev_streams, seed=seed, device=device)


def _check_incomplete(missing: bool, complete: bool, dev: bool, learn_missing: bool, known: bool) -> None:
    """Which options --incomplete needs, and which do not go together."""
    if not missing:
        raise ModelError("--incomplete needs to know what goes missing: give --missing, such as --missing 0.3.")
    if known and (complete or dev):
        raise ModelError("with a --known model only the mechanism is learned: leave out --complete and --dev.")
    if known and not learn_missing:
        raise ModelError("with a --known model there is only the mechanism to learn: add --learn-missing.")


def _read(columns: common.Columns, *files: Path | None) -> list[StreamSet | None]:
    """The streams of each file, over the event types of all of them."""
    found = [None if file is None else columns.read(file) for file in files]
    for streams in found:
        if streams is not None:
            refuse_unix_time(streams)
    types = list(dict.fromkeys(name for streams in found if streams is not None for name in streams.types))
    return [None if streams is None else streams.with_types(types) for streams in found]
