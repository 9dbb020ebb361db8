"""``retrodict ask``: what the draws of an imputation say of a stretch of time."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer
from numpy.typing import NDArray
from rich.markup import escape
from rich.table import Table

from retrodict.cli import common
from retrodict.errors import DataError
from retrodict.events.atomic import atomic_file, check_writable
from retrodict.events.io.files import cannot_read
from retrodict.events.io.moments import on_axis
from retrodict.events.stream_set import describe_types
from retrodict.events.time_axis import TimeAxis

_COLUMNS = {"stream", "draw", "weight", "time", "type"}


def ask(
    draws: Annotated[Path, typer.Argument(help="Folder of draws that 'retrodict impute' wrote.")],
    type: Annotated[str | None, typer.Option(help="Type of the missing events; by default any.")] = None,
    start: Annotated[str | None, typer.Option(help="From when: a date, or a number where times are numbers.")] = None,
    end: Annotated[str | None, typer.Option(help="Until when: a date, or a number where times are numbers.")] = None,
    output: Annotated[Path | None, typer.Option("--output", "-o", help="Also write the answers as CSV.")] = None,
) -> None:
    """Say how probably events are missing from a stretch of time, and how many, stream by stream.

    Dates without a time zone are in the zone of the draws. Streams in which no draw has such an event are left out.

    [bold]Example[/]

      retrodict ask imputed.csv.draws --type pick-up --start 2013-01-05T08:00 --end 2013-01-05T09:00
    """
    import pandas as pd

    from retrodict.events.io.parquet_file import read_columns

    draws = draws / "draws.parquet" if draws.is_dir() else draws
    common.refuse_overwriting(draws, outputs={"--output": output})
    check_writable(output)
    try:
        columns = read_columns(draws, sorted(_COLUMNS))
    except OSError as error:
        raise cannot_read(draws, error) from error
    if not columns.keys() >= _COLUMNS:
        raise DataError("these are no draws", file=draws, remedy="give the folder OUTPUT.draws of 'impute'")
    frame = pd.DataFrame({name: columns[name] for name in _COLUMNS})
    known = sorted(set(frame["type"]))
    if type is not None and type not in known:
        remedy = "name one of these"
        raise DataError(f"no draw has a type {type!r}; types are {describe_types(known)}", file=draws, remedy=remedy)
    axis, times = _times(draws, frame["time"].to_numpy())
    keep = np.ones(len(frame), dtype=bool) if type is None else (frame["type"] == type).to_numpy(copy=True)
    if start is not None:
        keep &= times >= on_axis(start, axis, "start=")
    if end is not None:
        keep &= times <= on_axis(end, axis, "end=")
    found = frame[keep]
    expected = found.groupby("stream", sort=False)["weight"].sum()
    probable = found.drop_duplicates(["stream", "draw"]).groupby("stream", sort=False)["weight"].sum().clip(upper=1.0)
    answer = pd.DataFrame({"probability": probable, "expected": expected}).reset_index()
    shown = Table("stream", "probability of any", "expected number")
    for row in answer.itertuples(index=False):
        shown.add_row(escape(str(row.stream)), f"{row.probability:.3f}", f"{row.expected:.3f}")
    common.out.print(shown)
    if output is not None:
        with atomic_file(output) as file:
            file.write(answer.to_csv(index=False).encode())
        common.wrote(output, f"{len(answer):,} streams")


def _times(draws: Path, values: NDArray[Any]) -> tuple[TimeAxis, NDArray[np.float64]]:
    """The times of draws and the axis that they are on: seconds since 1970 where they are dates."""
    import pyarrow.parquet as pq

    zone = getattr(pq.read_schema(draws).field("time").type, "tz", None)
    if values.dtype.kind != "M":
        return TimeAxis(), values.astype(np.float64)
    axis = TimeAxis("second", 0, zone)
    return axis, axis.from_instants(values.astype("datetime64[ns]").astype(np.int64))
