"""``retrodict smoother``: train a smoother for a model that is fitted already."""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated

import typer

from retrodict._sparing import Sparing
from retrodict.cli import common
from retrodict.cli import fit_jobs as jobs
from retrodict.cli.check import on_dev
from retrodict.cli.clock import Clock
from retrodict.cli.training import Dev, Devices, From, LearnFrom, Mixing, Nodes, Training
from retrodict.events.atomic import check_folder
from retrodict.events.lock import lock_folder
from retrodict.missingness.anything import Anything
from retrodict.missingness.spec import parse_missing
from retrodict.train.together import trains_together

_MISSING = "What goes missing: NAME=RATE, PATTERN=RATE, RATE or a YAML file; may be repeated. By default anything."
Missing = Annotated[list[str] | None, typer.Option("--missing", "-m", help=_MISSING)]
_NAME = "What to call it; by default as --missing says. 'impute --smoother' takes this name."
Name = Annotated[str | None, typer.Option(help=_NAME, rich_help_panel="Smoother")]


@trains_together
def smoother(
    model: common.Folder,
    file: common.File,
    missing: Missing = None,
    dev: Dev = None,
    name: Name = None,
    mixing: Mixing = None,
    learn_from: From = LearnFrom("model"),  # noqa: B008
    devices: Devices = 1,
    num_nodes: Nodes = 1,
    *,
    training: Training,
    columns: common.Columns,
) -> None:
    """Train another smoother on a fitted model, for certain missing events. FILE has complete streams.

    The smoother is kept in the model's folder, beside those that are there. 'retrodict impute -m' finds the one that
    was trained for what goes missing, else the one for anything, from which the training of others starts.

    [bold]Examples[/]

      retrodict smoother model/ trips.parquet -m 'pick-up*=0.9'

      retrodict smoother model/ trips.parquet -m outages.yaml --name outages
    """
    from retrodict.models.model_folder import load_model
    from retrodict.proposals.smoothers import type_names

    training.check(devices)
    fitted = load_model(model)
    check_folder(model)
    names = type_names(fitted)
    mechanism = (
        parse_missing(missing, names, fitted.time_unit, dates=columns["dates"]) if missing else Anything().bind(names)
    )
    job = jobs.Smoother(mechanism, missing or ["any"], mixing, learn_from.value, name)
    job.make(fitted)
    streams = jobs.read(columns, file, dev, types=fitted.types)
    job = replace(job, mechanism=mechanism.in_zone(streams[0].axis.timezone))
    with lock_folder(model), jobs.going_on() as stages:
        clock = Clock(training["seconds"])
        clock.announce()
        own = (
            training
            | clock.share(1)
            | {"devices": devices, "num_nodes": num_nodes, "progress": Sparing(by_share=False)}
        )
        trained = jobs.fit_smoother(fitted, job, streams, model, own, stages)
        on_dev(trained, stages[-1], streams, seed=training["seed"], device=training["device"], left=clock.left())
