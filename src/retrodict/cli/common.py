"""What the commands share: options for columns, reading with notices, writing, and how errors are shown."""

from __future__ import annotations

import functools
import re
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.markup import escape

from retrodict.errors import DataNotice, EngineNotice, ModelError
from retrodict.events.atomic import atomic_file
from retrodict.events.io.files import find_format
from retrodict.events.io.read import read_events
from retrodict.events.io.write import write_events
from retrodict.events.stream_set import StreamSet

out = Console()
err = Console(stderr=True)

_COLUMNS = "Columns and time"
File = Annotated[Path, typer.Argument(help="Events: .csv, .parquet, .jsonl (also .gz), EasyTPP .json, old .pkl.")]
Stream = Annotated[
    str | None, typer.Option(help="Column that says whose event it is ('stream').", rich_help_panel=_COLUMNS)
]
Time = Annotated[str | None, typer.Option(help="Column of times or dates ('time').", rich_help_panel=_COLUMNS)]
Type = Annotated[str | None, typer.Option(help="Column of event types ('type').", rich_help_panel=_COLUMNS)]
Start = Annotated[
    str | None,
    typer.Option(help="When streams start: a column, a number or a date.", rich_help_panel=_COLUMNS),
]
End = Annotated[
    str | None,
    typer.Option(help="Until when streams were watched: a column, a number or a date.", rich_help_panel=_COLUMNS),
]
Unit = Annotated[str | None, typer.Option(help="Unit of time: second, minute, hour, day ...", rich_help_panel=_COLUMNS)]
Timezone = Annotated[
    str | None, typer.Option(help="Zone of dates that have none, e.g. Europe/Paris.", rich_help_panel=_COLUMNS)
]
Seed = Annotated[int, typer.Option(help="Same seed, same result.", min=0)]


def read(
    file: Path,
    stream: str | None,
    time: str | None,
    type: str | None,
    start: str | None,
    end: str | None,
    unit: str | None,
    timezone: str | None,
) -> StreamSet:
    """Read events, showing notices as notes."""
    with notes():
        return read_events(file, stream, time, type, _bound(start), _bound(end), unit=unit, timezone=timezone)


def _bound(value: str | None) -> str | float | None:
    """A number where the text is one; else the reader takes it as a column or a date."""
    if value is None:
        return None
    try:
        return float(value)
    except ValueError:
        return value


def in_options(text: str) -> str:
    """A message that speaks of Python arguments, in the words of the command line."""
    text = text.replace("resume=False", "--restart").replace("source=", "--from")
    text = re.sub(r"raise the limit: limits\((\w+)=(\d+)\)", r"raise the limit: retrodict --limit \1=\2 ...", text)
    text = re.sub(r"\b(max_events|batch_size)\b", lambda name: "--" + name[0].replace("_", "-"), text)
    names = "stream|time|type|start|end|unit|timezone|dev"
    return re.sub(rf"\b({names})=(?=\S)", r"--\1 ", re.sub(rf"\b({names})=(?=\s|$)", r"--\1", text))


def read_limit(text: str) -> tuple[str, float]:
    """A limit as it is typed, NAME=NUMBER."""
    name, _, number = text.partition("=")
    try:
        return name, float(number)
    except ValueError:
        raise ModelError(f"cannot understand --limit {text!r}. Write NAME=NUMBER, such as rows=500000000.") from None


def interruptible(command: Callable[..., None]) -> Callable[..., None]:
    """A command that ends in words when it is interrupted (Ctrl-C, SIGTERM): nothing is ever half written."""

    @functools.wraps(command)
    def run(*arguments: Any, **options: Any) -> None:
        try:
            command(*arguments, **options)
        except KeyboardInterrupt:
            err.print("[yellow]interrupted[/]: files that were not finished are as they were before")
            raise typer.Exit(130) from None

    return run


@contextmanager
def notes() -> Iterator[None]:
    """Show what was assumed or repaired as notes on standard error."""
    with warnings.catch_warnings(record=True) as caught:
        for kind in (DataNotice, EngineNotice):
            warnings.simplefilter("always", kind)
        try:
            yield
        finally:
            for warning in caught:
                if issubclass(warning.category, DataNotice | EngineNotice):
                    err.print(f"[yellow]note:[/] {escape(in_options(str(warning.message)))}", soft_wrap=True)
                else:
                    warnings.warn_explicit(warning.message, warning.category, warning.filename, warning.lineno)


def write(streams: StreamSet, path: Path, stream: str | None, time: str | None, type: str | None) -> None:
    """Write events under the column names the user's own table has."""
    names = {"stream": stream or "stream", "time": time or "time", "type": type or "type"}
    format = find_format(path, None)
    if format not in ("csv", "parquet") or all(old == new for old, new in names.items()):
        write_events(streams, path)
        return
    frame = streams.to_frame().rename(columns=names)
    if streams.axis.timezone is not None:  # in UTC a column has one offset, whatever the season
        for column in (names["time"], "start", "end"):
            frame[column] = frame[column].dt.tz_convert("UTC")
    with atomic_file(path) as side:
        if format == "parquet":
            frame.to_parquet(side)
        else:
            frame.to_csv(side, index=False, compression="gzip" if path.suffix == ".gz" else None)


def wrote(path: Path, what: str) -> None:
    """Say what was written where."""
    out.print(f"wrote [bold]{escape(str(path))}[/]: {what}", soft_wrap=True, highlight=False)
