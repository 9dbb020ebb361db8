"""``retrodict learn-missing``: learn how events go missing, for a model that is known."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from retrodict.cli import common
from retrodict.cli import fit_jobs as jobs
from retrodict.cli.training import Missing
from retrodict.events.atomic import check_folder
from retrodict.events.suspicion import refuse_unix_time

Output = Annotated[Path, typer.Option("--output", "-o", help="Folder for missing.yaml and what to go on from.")]
Resume = Annotated[bool, typer.Option("--resume/--restart", help="Go on with what is in the folder, or not.")]


def learn_missing(
    model: common.Folder,
    file: common.File,
    output: Output,
    missing: Missing,
    resume: Resume = True,
    seed: common.Seed = 0,
    *,
    columns: common.Columns,
) -> None:
    """Learn how events go missing from incomplete streams, for a model of complete ones, which stays as it is.

    --missing is a first guess; rates of 0 and 1 stay. Writes missing.yaml, which --missing of the other commands takes.
    Interrupted or killed, the same command goes on.

    [bold]Examples[/]

      retrodict learn-missing model/ patchy.csv -m 0.3 -o missing/

      retrodict learn-missing model/ patchy.csv -m delays.yaml -o missing/
    """
    check_folder(output)
    streams = columns.read(file)
    refuse_unix_time(streams)
    with jobs.going_on() as stages:
        stages.append(output)
        jobs.learn_mechanism(model, streams, missing, columns["dates"], output, seed=seed, resume=resume)
