"""``retrodict censor``: hide events, to practise on or to train with."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from retrodict.cli import common
from retrodict.events.io.write import check_output, write_events
from retrodict.missingness.spec import parse_missing


def censor(
    file: common.File,
    output: Annotated[Path, typer.Option("--output", "-o", help="Where the observed events go.")],
    missing: Annotated[
        list[str],
        typer.Option(
            "--missing", "-m", help="NAME=RATE, PATTERN=RATE ('pick-up:*=1'), RATE or a YAML file; may be repeated."
        ),
    ],
    hidden: Annotated[Path | None, typer.Option(help="Where the hidden events go.")] = None,
    seed: common.Seed = 0,
    *,
    columns: common.Columns,
) -> None:
    """Hide events at random, each type at its own rate from 0 (never) to 1 (always), or as a YAML file says.

    The same events are hidden whenever the seed and a stream's id are the same, whatever else is in the file.

    [bold]Examples[/]

      retrodict censor trips.csv -m pick-up=0.5 -o observed.csv --hidden hidden.csv

      retrodict censor taxi.jsonl -m 'pick-up:*=1' -o observed.parquet

      retrodict censor trips.csv -m outages.yaml -o observed.csv
    """
    check_output(output, hidden)
    common.refuse_overwriting(file, outputs={"--output": output, "--hidden": hidden})
    streams = columns.read(file)
    axis = streams.axis
    mechanism = parse_missing(missing, streams.types, axis.unit, axis.timezone, columns["dates"])
    observed, gone = mechanism.censor(streams, seed)
    write_events(observed, output)
    common.wrote(output, f"{observed.num_events:,} observed events of {streams.num_events:,}")
    if hidden is not None:
        write_events(gone, hidden)
        common.wrote(hidden, f"{gone.num_events:,} hidden events")
