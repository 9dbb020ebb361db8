"""``retrodict ask``: what the draws of an imputation say of a stretch of time."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NoReturn

import numpy as np
import typer
from numpy.typing import NDArray
from rich.markup import escape
from rich.table import Table

from retrodict.cli import common
from retrodict.cli.draws import refuse_table
from retrodict.errors import DataError
from retrodict.events.atomic import atomic_file, check_writable
from retrodict.events.io.files import cannot_read
from retrodict.events.io.moments import stretch
from retrodict.events.stream_set import describe_types
from retrodict.events.time_axis import TimeAxis
from retrodict.smc.totals import Total, as_number, intervals, total_of

if TYPE_CHECKING:
    import pandas as pd

_COLUMNS = {"stream", "draw", "weight", "time", "type"}
_LATEST = 9e9  # seconds after 1970: beyond, there are no dates


def ask(
    draws: Annotated[Path, typer.Argument(help="Folder of draws that 'retrodict impute' wrote.")],
    type: Annotated[str | None, typer.Option(help="Type of the missing events; by default any.")] = None,
    start: Annotated[str | None, typer.Option(help="From when: a date, or a number where times are numbers.")] = None,
    end: Annotated[str | None, typer.Option(help="Until when: a date, or a number where times are numbers.")] = None,
    output: Annotated[Path | None, typer.Option("--output", "-o", help="Also write the answers as CSV.")] = None,
) -> None:
    """Say how probably events are missing from a stretch of time, and how many, stream by stream.

    Dates are in ISO 8601, or written as in your table (--dates); without a time zone they are in that of the draws.
    Streams in which no draw has such an event are left out. Intervals hold the number with a probability of 90 %, as
    far as the model is right. The last line is about all streams together.

    [bold]Example[/]

      retrodict ask imputed.csv.draws --type pick-up --start 2013-01-05T08:00 --end 2013-01-05T09:00
    """
    import pandas as pd

    from retrodict.events.io.parquet_file import read_columns

    refuse_table(draws)
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
    form = _form_of(draws)
    first, last = stretch(_in_iso(start, form, "--start"), _in_iso(end, form, "--end"), axis)
    keep &= (times >= first) & (times <= last)
    found = frame[keep]
    names, counts, weights = _counted(found)
    ends = intervals(counts, weights)
    likely = weights[:, 1:].sum(1).clip(max=1.0)
    expected = (weights * counts).sum(1)
    answer = pd.DataFrame(
        {"stream": names, "probability": likely, "expected": expected, "low": ends[:, 0], "high": ends[:, 1]}
    )
    common.out.print(_shown(answer, total_of(counts, weights), _question(type, first, last, axis)))
    if answer.empty:
        common.note(_why_nothing(draws, first, last, axis))
    if output is not None:
        with atomic_file(output) as file:
            file.write(answer.to_csv(index=False).encode())
        common.wrote(output, f"{len(answer):,} streams")


def _question(type: str | None, first: float, last: float, axis: TimeAxis) -> str:
    """What was asked, in words."""
    what = "missing events of any type" if type is None else f"missing events of type {type!r}"
    bounds = [f"from {_label(first, axis)}"] if first > -np.inf else []
    bounds += [f"until {_label(last, axis)}"] if last < np.inf else []
    zone = [f"({axis.timezone})"] if bounds and axis.timezone is not None else []
    return " ".join([what, *(bounds or ["at any time"]), *zone])


def _label(time: float, axis: TimeAxis) -> str:
    return axis.label(time) if abs(time) < _LATEST else f"{time:g}"


def _counted(found: pd.DataFrame) -> tuple[list[object], NDArray[np.int64], NDArray[np.float64]]:
    """Streams, and the number of events in each of their draws with its weight, [N, M + 1]; none in the first of all.

    Draws without such an event have no rows: what is left of the weight of a stream is theirs.
    """
    each = found.groupby(["stream", "draw"], sort=False, observed=True)["weight"].agg(["size", "first"]).reset_index()
    row, names = each["stream"].factorize()
    column = each.groupby("stream", sort=False, observed=True).cumcount().to_numpy() + 1
    shape = len(names), int(column.max(initial=0)) + 1
    counts, weights = np.zeros(shape, dtype=np.int64), np.zeros(shape)
    counts[row, column], weights[row, column] = each["size"], each["first"]
    weights[:, 0] = (1.0 - weights.sum(1)).clip(min=0.0)
    return list(names), counts, weights


def _form_of(draws: Path) -> str | None:
    """How the table that was imputed writes dates, where that was said (--dates) and the draws know it."""
    from retrodict.events.plain import read_json

    try:
        found = read_json(draws.with_name("posterior.json"))["table"]["names"].get("dates")
    except (OSError, ValueError, KeyError, TypeError, AttributeError):  # draws.parquet alone, or no table
        return None
    return found if isinstance(found, str) else None


def _in_iso(time: str | None, form: str | None, option: str) -> str | None:
    """A date in the form of the table in ISO 8601; other times as they are."""
    if time is None or form is None:
        return time
    from retrodict.missingness.date_texts import text_in_iso

    def refuse(problem: str, remedy: str) -> NoReturn:
        raise DataError(f"{option}: {problem}", remedy=remedy)

    return text_in_iso(time, form, refuse)


def _shown(answer: pd.DataFrame, total: Total, title: str) -> Table:
    """The answers, with the number in all streams together."""
    shown = Table(title=escape(title), title_justify="left")
    shown.add_column("stream", overflow="fold")
    for heading in ("probability of any", "expected number", "90 %"):
        shown.add_column(heading, justify="right")
    for row in answer.itertuples(index=False):
        shown.add_row(
            escape(str(row.stream)), f"{row.probability:.3f}", _number(row.expected), f"{row.low:,} to {row.high:,}"
        )
    shown.add_section()
    shown.add_row("all streams", "", _number(total.expected), total.interval)
    return shown


def _number(expected: Any) -> str:
    return as_number(expected) if expected >= 10 else f"{expected:.3f}"


def _why_nothing(draws: Path, first: float, last: float, axis: TimeAxis) -> str:
    """Why no stream has an answer: the stretch is outside of all of them, or no draw has such an event in it."""
    from retrodict.events.io.read import read_events

    nothing = "no draw of any stream has such an event in this stretch"
    try:
        streams = read_events(draws.with_name("observed.parquet"))
    except DataError:  # draws.parquet alone
        return nothing
    if not len(streams):
        return nothing
    ends = [np.array([streams.starts.min()]), np.array([streams.ends.max()])]
    begin, stop = (float(streams.axis.convert(end, axis)[0] if axis.is_calendar else end[0]) for end in ends)
    if first <= stop and last >= begin:
        return nothing
    return f"this stretch is outside of every stream: they run from {axis.label(begin)} until {axis.label(stop)}"


def _times(draws: Path, values: NDArray[Any]) -> tuple[TimeAxis, NDArray[np.float64]]:
    """The times of draws and the axis that they are on: seconds since 1970 where they are dates."""
    import pyarrow.parquet as pq

    zone = getattr(pq.read_schema(draws).field("time").type, "tz", None)
    if values.dtype.kind != "M":
        return TimeAxis(), values.astype(np.float64)
    axis = TimeAxis("second", 0, zone)
    return axis, axis.from_instants(values.astype("datetime64[ns]").astype(np.int64))
