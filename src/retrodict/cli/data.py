"""``retrodict data``: make or fetch a data set, as files for training, tuning and testing."""

from __future__ import annotations

from enum import StrEnum
from inspect import signature
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
import typer
from rich.table import Table

from retrodict.cli import common
from retrodict.errors import DataError

if TYPE_CHECKING:
    from retrodict.events.stream_set import Splits


class Format(StrEnum):
    """Formats to write."""

    parquet = "parquet"
    csv = "csv"
    jsonl = "jsonl"


def data(
    name: Annotated[str, typer.Argument(help="synthetic, elevator, taxi or flights.")],
    output: Annotated[Path, typer.Option("--output", "-o", help="Folder for train, dev and test.")],
    source: Annotated[
        Path | None,
        typer.Option("--from", help="taxi: a raw trip file of 2013 or a folder; flights: a folder of its tables."),
    ] = None,
    number: Annotated[int | None, typer.Option("--set", help="synthetic: which of the ten sets, 0 to 9.")] = None,
    seed: Annotated[
        int | None, typer.Option(help="elevator: of the simulation; taxi, flights: of the split.", min=0)
    ] = None,
    format: Annotated[Format, typer.Option(help="Format of the files.")] = Format.parquet,
) -> None:
    """Make one of the data sets: train, dev and test streams in a folder, and their statistics.

    [bold]Examples[/]

      retrodict data elevator -o elevator/

      retrodict data synthetic --set 3 -o synthetic-3/

      retrodict data taxi --from trip_data_4.csv -o taxi/
    """
    from retrodict.datasets import find
    from retrodict.datasets.folder import check_free, write_splits

    make = find(name)
    options = _options(name, signature(make).parameters, {"source": source, "number": number, "seed": seed})
    check_free(output)
    with common.notes():
        splits = make(**options)
    paths = write_splits(splits, output, f".{format.value}")
    common.out.print(_statistics(name, splits))
    for path, streams in zip(paths, splits, strict=True):
        common.wrote(path, f"{len(streams):,} streams")


def _options(name: str, accepted: Any, given: dict[str, Any]) -> dict[str, Any]:
    """What the user gave, if the data set takes it."""
    options = {key: value for key, value in given.items() if value is not None}
    for key in options:
        if key not in accepted:
            flag = {"source": "--from", "number": "--set"}.get(key, f"--{key}")
            raise DataError(f"the data set {name!r} takes no {flag}", remedy=f"leave {flag} out")
    return options


def _statistics(name: str, splits: Splits) -> Table:
    """Streams, events and lengths, as in the paper's table of data sets."""
    first = splits.train
    unit = f", times in {first.axis.unit}s" if first.axis.unit else ""
    table = Table("", title=f"{name}: K = {first.num_types} types{unit}", title_justify="left")
    for heading in ("streams", "events", "shortest", "mean length", "longest"):
        table.add_column(heading, justify="right")
    rows = {part: streams.lengths for part, streams in zip(splits._fields, splits, strict=True)}
    for part, lengths in {**rows, "all": np.concatenate(list(rows.values()))}.items():
        spread = (f"{lengths.min():,}", f"{lengths.mean():.1f}", f"{lengths.max():,}") if len(lengths) else ("-",) * 3
        table.add_row(part, f"{len(lengths):,}", f"{lengths.sum():,}", *spread)
    return table
