"""What the commands share: options for columns, reading with notices, writing, and how errors are shown."""

from __future__ import annotations

import functools
import inspect
import re
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.markup import escape

from retrodict.errors import DataError, DataNotice, EngineNotice, ModelError, SuspicionNotice
from retrodict.events.io.read import read_events
from retrodict.events.stream_set import StreamSet
from retrodict.events.time_axis import TimeAxis

out = Console()
err = Console(stderr=True)

File = Annotated[Path, typer.Argument(help="Events: .csv, .parquet, .jsonl (also .gz), EasyTPP .json, old .pkl.")]
Seed = Annotated[int, typer.Option(help="Same seed, same result.", min=0)]
_COLUMNS = {
    "stream": "Column that names the stream of an event ('stream').",
    "time": "Column of times or dates ('time').",
    "type": "Column of event types ('type').",
    "start": "When streams start: a column, a number or a date.",
    "end": "Until when streams were watched: a column, a number or a date.",
    "unit": "Unit of time: second, minute, hour, day ...",
    "timezone": "Zone of dates that have none, e.g. Europe/Paris.",
}


class Columns(dict[str, Any]):
    """The options of every command that reads a table: the names in ``_COLUMNS``, each None unless given."""

    def read(self, file: Path) -> StreamSet:
        """Read events, showing notices as notes."""
        given = self | {side: _bound(self[side]) for side in ("start", "end")}
        with notes():
            return read_events(file, **given)

    def units_in(self, axis: TimeAxis) -> float:
        """How many of the axis's units one unit of --unit is; 1 where it was not given."""
        return 1.0 if self["unit"] in (None, axis.unit) else TimeAxis(self["unit"]).units_in(axis)

    def unit_of(self, axis: TimeAxis, model: str | None = None) -> str:
        """The unit in which the user gives and is told times, in words: --unit, else the axis's or the model's."""
        unit = self["unit"] or axis.unit or model
        return f"{unit}s" if unit else "units of time"


def refuse_overwriting(*inputs: Path | None, outputs: Mapping[str, Path | None]) -> None:
    """Refuse outputs (by option) that would replace a file that is read, or each other."""
    seen = {path.resolve(): "is read" for path in inputs if path is not None}
    for option, path in outputs.items():
        if path is None:
            continue
        used = seen.get(path.resolve())
        if used is not None:
            raise DataError(f"{option} would replace this file, which {used}", file=path, remedy="give another name")
        seen[path.resolve()] = f"{option} writes, too"


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


def as_command(function: Callable[..., None]) -> Callable[..., None]:
    """The function for Typer: with the options of ``Columns`` where it takes ``columns``, and interruptible.

    An interrupt (Ctrl-C, SIGTERM) ends the command in words: nothing is ever half written.
    """
    signature = inspect.signature(function, eval_str=True)
    parameters = [p for p in signature.parameters.values() if p.name != "columns"]
    names = _COLUMNS if "columns" in signature.parameters else {}
    for name, text in names.items():
        option = Annotated[str | None, typer.Option(help=text, rich_help_panel="Columns and time")]
        parameters.append(inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=None, annotation=option))

    @functools.wraps(function)
    def run(**options: Any) -> None:
        if names:
            options["columns"] = Columns({name: options.pop(name) for name in names})
        try:
            function(**options)
        except KeyboardInterrupt:
            err.print("[yellow]interrupted[/]: files that were not finished are as they were before")
            raise typer.Exit(130) from None

    run.__signature__ = signature.replace(parameters=parameters)  # type: ignore[attr-defined]
    run.__annotations__ = {p.name: p.annotation for p in parameters}
    return run


@contextmanager
def notes() -> Iterator[None]:
    """Show what was assumed or repaired as notes on standard error."""
    with warnings.catch_warnings(record=True) as caught:
        for kind in (DataNotice, EngineNotice, SuspicionNotice):
            warnings.simplefilter("always", kind)
        try:
            yield
        finally:
            for warning in {str(warning.message): warning for warning in caught}.values():
                if issubclass(warning.category, DataNotice | EngineNotice | SuspicionNotice):
                    err.print(f"[yellow]note:[/] {escape(in_options(str(warning.message)))}", soft_wrap=True)
                else:
                    warnings.warn_explicit(warning.message, warning.category, warning.filename, warning.lineno)


def wrote(path: Path, what: str) -> None:
    """Say what was written where."""
    out.print(f"wrote [bold]{escape(str(path))}[/]: {what}", soft_wrap=True, highlight=False)
