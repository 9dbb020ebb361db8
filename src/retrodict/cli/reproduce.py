"""``retrodict reproduce``: the paper's experiments, resumable, and their tables and figures."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.markup import escape

from retrodict.cli import common
from retrodict.errors import DataError

if TYPE_CHECKING:
    from retrodict.experiments.jobs import Job
    from retrodict.experiments.place import Place
    from retrodict.experiments.pool import Outcome


def reproduce(
    name: Annotated[str | None, typer.Argument(help="An experiment; without a name they are listed.")] = None,
    everything: Annotated[bool, typer.Option("--all", help="All experiments.")] = False,
    quick: Annotated[bool, typer.Option("--quick", help="Small versions of all, a few minutes on two cores.")] = False,
    output: Annotated[Path | None, typer.Option("--output", "-o", help="Folder for everything.")] = None,
    data: Annotated[
        list[str] | None, typer.Option(help="taxi=DIR or flights=DIR: where streams are that do not come along.")
    ] = None,
    only: Annotated[
        list[str] | None, typer.Option(help="Only these data sets: synthetic, synthetic-3, elevator, taxi, flights.")
    ] = None,
    workers: Annotated[int, typer.Option(help="Jobs at a time, each in a process of its own.", min=1)] = 1,
    device: Annotated[str, typer.Option(help="auto, cpu or cuda.")] = "auto",
    until: Annotated[str | None, typer.Option(help="Stop after a stage: data, models, smoothers or measure.")] = None,
    minutes: Annotated[
        float | None, typer.Option(help="End after so many minutes; the same command goes on later.")
    ] = None,
    train_seconds: Annotated[
        float | None, typer.Option(help="The most time to train one model or smoother.", min=1)
    ] = None,
    collect: Annotated[bool, typer.Option("--collect", help="Only make tables and figures of what is there.")] = False,
    page: Annotated[
        Path | None, typer.Option(help="Where the page of results goes; by default into the folder.")
    ] = None,
) -> None:
    """Run the paper's experiments: train, impute, compare, and write a page of results with tables and figures.

    Whatever is finished is kept in the folder and not done again: interrupt it at any time and repeat the command.

    [bold]Examples[/]

      retrodict reproduce --all --quick --workers 2

      retrodict reproduce decoding --data taxi=nyc_taxi_2013 --workers 16 --device cuda -o reproduced
    """
    from retrodict.experiments.collect import collect as write_results
    from retrodict.experiments.place import Place
    from retrodict.experiments.plan import EXPERIMENTS, all_jobs
    from retrodict.experiments.plan import only as of_data
    from retrodict.experiments.plan import until as up_to
    from retrodict.experiments.scale import FULL, QUICK

    if name is None and not everything and not collect:
        for known, what in EXPERIMENTS.items():
            common.out.print(f"[bold]{known}[/]: {what}", highlight=False)
        common.out.print("Give one of these names, or --all; --quick for small versions.", highlight=False)
        return
    if name is not None and everything:
        raise DataError("both a name and --all were given", remedy="give one of them")
    scale = QUICK if quick else FULL
    place = Place(output or Path("reproduced-quick" if quick else "reproduced"), scale)
    names = list(EXPERIMENTS) if name is None else [name]
    jobs = all_jobs(names, scale, _sources(data), train_seconds)
    jobs = up_to(of_data(jobs, only) if only else jobs, until)
    place.claim()
    outcome = None
    if not collect:
        outcome = _run(_possible(jobs, place), place, workers, _device(device), minutes)
    if until is None or collect:
        for path, what in write_results(place, page):
            common.wrote(path, what)
    if outcome is not None and (outcome.failed or outcome.left):
        for job, error in outcome.failed.items():
            common.err.print(f"[bold red]{job} failed:[/] {escape(error.strip())}", soft_wrap=True, highlight=False)
        if outcome.left:
            common.err.print(f"{len(outcome.left)} jobs are left to do; repeat the command to go on", highlight=False)
        raise typer.Exit(1 if outcome.failed else 3)


def _run(jobs: list[Job], place: Place, workers: int, device: str, minutes: float | None) -> Outcome:
    """Do what is not done yet, with a line for each job that ends."""
    import torch

    from retrodict.experiments.pool import run_jobs

    torch.set_num_threads(1)  # the same numbers, whatever the number of workers
    left = sum(not job.is_done(place) for job in jobs)
    common.err.print(f"{len(jobs)} jobs, {len(jobs) - left} of them done before; {device}, {workers} at a time")
    began, ended = time.monotonic(), 0

    def report(job: Job, took: float, error: str | None) -> None:
        nonlocal ended
        ended += 1
        text = f"[{ended}/{left}] {time.monotonic() - began:6.0f} s  {job.name}: "
        text += f"{took:.1f} s" if error is None else "FAILED"
        common.err.print(escape(text), soft_wrap=True, highlight=False)

    seconds = None if minutes is None else 60 * minutes
    try:
        return run_jobs(jobs, place, workers=workers, device=device, seconds=seconds, report=report)
    except KeyboardInterrupt:
        common.err.print("interrupted: what is finished is kept, repeat the command to go on")
        raise typer.Exit(130) from None


def _possible(jobs: list[Job], place: Place) -> list[Job]:
    """Without the taxi streams, where nobody said where they are."""
    data = [job for job in jobs if job.name == "data/taxi"]
    if not data or data[0].extra or data[0].is_done(place):
        return jobs
    common.err.print("[yellow]note:[/] without --data taxi=DIR the taxi streams are left out")
    return [job for job in jobs if job.options.get("dataset") != "taxi"]


def _sources(data: list[str] | None) -> dict[str, str]:
    from retrodict.experiments.data import check_source

    sources = {}
    for text in data or ():
        name, equals, path = text.partition("=")
        if not equals:
            raise DataError(f"cannot understand --data {text}", remedy="write --data taxi=DIR or --data flights=DIR")
        sources[name] = str(check_source(name, path))
    return sources


def _device(name: str) -> str:
    import torch

    if name not in ("auto", "cpu", "cuda"):
        raise DataError(f"unknown device {name!r}", remedy="choose auto, cpu or cuda")
    if name == "cuda" and not torch.cuda.is_available():
        raise DataError("there is no CUDA device here", remedy="choose --device auto or cpu")
    return name if name != "auto" else "cuda" if torch.cuda.is_available() else "cpu"
