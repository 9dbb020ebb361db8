"""``retrodict simulate``: draw new complete streams from a fitted model."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from retrodict.cli import common
from retrodict.events.io.write import check_output, write_events


def simulate(
    model: common.Folder,
    output: Annotated[Path, typer.Option("--output", "-o", help="Where the streams go.")],
    number: Annotated[int, typer.Option("--number", "-n", help="How many streams.", min=0)] = 100,
    end: Annotated[float | None, typer.Option(help="Simulate on [0, END], in the model's unit of time.")] = None,
    events: Annotated[int | None, typer.Option(help="Stop each stream after this number of events.", min=0)] = None,
    start: Annotated[
        str | None, typer.Option(help="The date at which streams start, for a model with a calendar.")
    ] = None,
    max_events: Annotated[int, typer.Option(help="The most events that a stream may have.", min=1)] = 1_000_000,
    seed: common.Seed = 0,
) -> None:
    """Draw new complete streams from a model.

    A model that was fitted to streams that end at an event ends streams by itself: --end and --events are not needed
    then, and cut short. One with a calendar has to know the date at which streams start.

    [bold]Examples[/]

      retrodict simulate model/ -n 1000 --end 24 -o simulated.parquet

      retrodict simulate model/ -n 10 --events 50 -o simulated.csv

      retrodict simulate model/ -n 10 --start 2024-03-01T08:00 --end 24 -o simulated.csv
    """
    from retrodict.models.model_folder import load_model
    from retrodict.models.simulate import simulate as draw

    check_output(output)
    with common.bar("draw", number) as done:
        how: dict[str, Any] = {"num_events": events, "max_events": max_events, "start": start, "progress": done}
        streams = draw(load_model(model), number, end, seed, **how)
    write_events(streams, output)
    unit = f", times in {streams.axis.unit}s" if streams.axis.unit else ""
    common.wrote(output, f"{len(streams):,} streams, {streams.num_events:,} events{unit}")
