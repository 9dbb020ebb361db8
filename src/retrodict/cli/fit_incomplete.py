"""``retrodict fit-incomplete``: learn a model from streams that have lost events."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from retrodict.cli import common
from retrodict.cli import fit_jobs as jobs
from retrodict.cli.clock import Clock
from retrodict.cli.fit import OneKind, OneModel
from retrodict.cli.training import Dev, Hidden, Missing, Output, Training
from retrodict.errors import ModelError
from retrodict.events.atomic import check_folder
from retrodict.events.lock import lock_folder
from retrodict.missingness.spec import parse_missing

Complete = Annotated[Path | None, typer.Option(help="Streams that are known to be complete.")]
_LEARN_MISSING = "--missing is a first guess, and learned; this needs --complete."
LearnMissing = Annotated[bool, typer.Option("--learn-missing", help=_LEARN_MISSING)]
_TYPES = "A type of event that FILE may never show, as it always goes missing; may be repeated."
Types = Annotated[list[str] | None, typer.Option(help=_TYPES)]


def fit_incomplete(
    file: common.File,
    output: Output,
    missing: Missing,
    complete: Complete = None,
    learn_missing: LearnMissing = False,
    types: Types = None,
    dev: Dev = None,
    model: OneModel = OneKind("neural-hawkes"),  # noqa: B008
    hidden: Hidden = None,
    *,
    training: Training,
    columns: common.Columns,
) -> None:
    """Fit a model to streams that have lost events as --missing says, by Monte Carlo EM.

    Interrupted or killed, the same command goes on. To learn what goes missing for a model that is known, see
    [bold]learn-missing[/].

    [bold]Examples[/]

      retrodict fit-incomplete patchy.csv -m 0.3 -o model/

      retrodict fit-incomplete patchy.csv -m guess.yaml --learn-missing --complete whole.csv -o model/

      retrodict fit-incomplete arrivals.csv -m departure=1 --types departure -o model/
    """
    if learn_missing and complete is None:
        raise ModelError(
            "--learn-missing needs --complete: incomplete streams alone cannot tell rare events from events often "
            "missed. With a model that is known, use 'retrodict learn-missing'."
        )
    training.check()
    make = jobs.maker(model.name, hidden)
    check_folder(output)
    train, dev_streams, whole = jobs.read(columns, file, dev, complete, more=types)
    mechanism = parse_missing(missing, train.types, train.axis.unit, train.axis.timezone, columns["dates"])
    with lock_folder(output), jobs.going_on() as stages:
        stages.append(output)
        clock = Clock(training["seconds"], has_check=False)
        clock.announce()
        settings = training | clock.share(1) | {"learn_missing": learn_missing}
        fitted = jobs.fit_incomplete(make, (train, dev_streams, whole), mechanism, output, settings)
        jobs.warn_of_stale(output, fitted)
