"""``retrodict fit``: learn what complete streams look like."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from retrodict._sparing import Sparing
from retrodict.cli import common
from retrodict.cli import fit_jobs as jobs
from retrodict.cli.check import on_dev
from retrodict.cli.clock import Clock
from retrodict.cli.fit_auto import fit_auto_model
from retrodict.cli.fit_words import say_next, say_read
from retrodict.cli.hold_out import refuse_place, set_aside, warn_unless_held_out
from retrodict.cli.training import Dev, Devices, From, Hidden, LearnFrom, Mixing, Nodes, Output, Scales, Training
from retrodict.errors import ModelError
from retrodict.events.atomic import check_folder
from retrodict.events.lock import lock_folder
from retrodict.missingness.anything import Anything
from retrodict.missingness.spec import parse_missing
from retrodict.models import MODELS, Hawkes, Model, NeuralHawkes
from retrodict.proposals import Proposal
from retrodict.train.together import trains_together

AUTO = "auto"
_KINDS = {kind: kind.replace("_", "-") for kind in reversed(MODELS)}
OneKind = StrEnum("OneKind", _KINDS)  # type: ignore[misc]
OneModel = Annotated[OneKind, typer.Option(help="What to fit.")]
Kind = StrEnum("Kind", {AUTO: AUTO, **_KINDS})  # type: ignore[misc]
_KIND = "What to fit: the best of all on dev, or one kind; --hidden alone means neural-hawkes, --scales hawkes."
ModelKind = Annotated[Kind, typer.Option(help=_KIND)]
_CALENDAR = (
    "Let dated streams follow hours of the day and days of the week; auto tries both by default, one kind neither."
)
UsesCalendar = Annotated[bool | None, typer.Option("--calendar/--no-calendar", help=_CALENDAR)]
_MISSING = "Train the smoother for this alone: NAME=RATE, PATTERN=RATE, RATE or a YAML file; by default for anything."
_HOLD_OUT = (
    "Hold a fifth of the streams (20 to 200) out of the fit, drawn at random into this file, for 'retrodict check'."
)
HoldOut = Annotated[Path | None, typer.Option(help=_HOLD_OUT)]
_ALONE = "Train no smoother."
Alone = Annotated[bool, typer.Option("--model-only", help=_ALONE, rich_help_panel="Smoother")]
Missing = Annotated[list[str] | None, typer.Option("--missing", "-m", help=_MISSING, rich_help_panel="Smoother")]


@trains_together
def fit(
    file: common.File,
    output: Output,
    dev: Dev = None,
    hold_out: HoldOut = None,
    model: ModelKind = Kind(AUTO),  # noqa: B008
    hidden: Hidden = None,
    scales: Scales = None,
    calendar: UsesCalendar = None,
    missing: Missing = None,
    mixing: Mixing = None,
    learn_from: From = LearnFrom("model"),  # noqa: B008
    model_only: Alone = False,
    devices: Devices = 1,
    num_nodes: Nodes = 1,
    *,
    training: Training,
    columns: common.Columns,
) -> None:
    """Fit a model to complete streams, and a smoother, which imputes. Interrupted, the same command goes on.

    By default the model is the best of several on dev: Poisson and Hawkes processes, which take seconds, and the better
    of two neural ones after trials of 20 seconds each, trained to its end. --model names one instead.

    The smoother is for whatever goes missing: 'retrodict impute -m' says what does. With --missing it is trained for
    that alone. --seconds is for everything from the start of the command: a tenth for the check, the rest in halves for
    the model and the smoother. A step ends with the epoch in which its time is over.

    [bold]Examples[/]

      retrodict fit trips.parquet -o model/

      retrodict fit trips.parquet -o model/ --hold-out held-out.parquet --seconds 3600

      retrodict fit trips.parquet -m outages.yaml -o model/

      retrodict fit log.csv --model hawkes -o model/

      retrodict fit train.csv --dev dev.csv --stream driver --time when --type what --hidden 128 -o model/
    """
    asked = {"--missing": missing, "--mixing": mixing is not None, "--learn-from": learn_from != "model"}
    for option, given in asked.items():
        if given and model_only:
            raise ModelError(f"{option} is for the smoother: leave out one of {option} and --model-only.")
    training.check(devices)
    kind = model.name
    if kind == AUTO and (hidden is not None or scales is not None):
        kind = Hawkes.kind if hidden is None else NeuralHawkes.kind
    if scales is None and hidden is None and kind == Hawkes.kind:
        scales = "auto"
    make = jobs.maker(NeuralHawkes.kind if kind == AUTO else kind, hidden, scales)
    check_folder(output)
    if hold_out is not None:
        refuse_place(hold_out, output, file, dev)
    train, dev_streams = jobs.read(columns, file, dev)
    held = None
    if hold_out is not None:
        how = {"seed": training["seed"], "resume": training["resume"]}
        train, held = set_aside(train, hold_out, output, columns, **how)
    if calendar and not train.axis.is_calendar:
        raise ModelError("--calendar is for streams with dates, and these have none.")
    smoother = None
    if not model_only:
        axis = train.axis
        mechanism = (
            parse_missing(missing, train.types, axis.unit, axis.timezone, columns["dates"])
            if missing
            else Anything().bind(train.types)
        )
        smoother = jobs.Smoother(mechanism, missing or ["any"], mixing, learn_from.value)
        jobs.rehearse(make, train, smoother)
    say_read(file, train, dev_streams, training["seed"], None if held is None else held.streams)
    with lock_folder(output), jobs.going_on() as stages:
        if held is None:
            warn_unless_held_out(output)
        else:
            held.write(output)
        clock = Clock(training["seconds"])
        clock.announce(quick=kind == AUTO)
        together = {"devices": devices, "num_nodes": num_nodes, "progress": Sparing(by_share=False)}
        stages.append(output)
        own = training | clock.share(1 if smoother is None else 2) | together | {"calendar": calendar}
        if kind == AUTO:
            fitted = fit_auto_model((train, dev_streams), output, own)
        else:
            fitted = jobs.fit_model(make, (train, dev_streams), output, own)
        trained: Model | Proposal = fitted
        if smoother is not None:
            own = training | clock.share(1) | together | {"learning_rate": None}
            trained = jobs.fit_smoother(fitted, smoother, (train, dev_streams), output, own, stages)
        jobs.warn_of_stale(output, fitted)
        how = {"seed": training["seed"], "device": training["device"], "left": clock.left()}
        on_dev(trained, stages[-1], (train, dev_streams), **how)
        say_next(output, hold_out, columns, missing, [fitted, trained])
