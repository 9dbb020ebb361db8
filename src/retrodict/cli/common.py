"""What the commands share: options for columns, reading with notices, writing, and how errors are shown."""

from __future__ import annotations

import functools
import inspect
import math
import shlex
import sys
import time
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

import typer
from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from retrodict._options import in_options
from retrodict._sparing import Sparing
from retrodict.cli.model_argument import check_arguments
from retrodict.errors import DataError, DataNotice, EngineNotice, ModelError, SuspicionNotice

if TYPE_CHECKING:
    from retrodict.events.stream_set import StreamSet
    from retrodict.events.time_axis import TimeAxis

out = Console()
err = Console(stderr=True)
said: list[str] = []  # of an interrupt
began: list[float] = [time.monotonic()]  # when commands began, before anything was loaded for them

File = Annotated[
    Path,
    typer.Argument(
        help="Events: .csv, .parquet, .jsonl, .xes (also .gz), a Parquet or MEDS folder, EasyTPP .json, .pkl."
    ),
]
Folder = Annotated[Path, typer.Argument(help="Folder that 'retrodict fit' wrote.")]
Device = Annotated[str, typer.Option(help="auto, cpu or cuda.")]
Seed = Annotated[int, typer.Option(help="Same seed, same result.", min=0)]


class Options(dict[str, Any]):
    """Options that several commands share; a command takes them all as one argument of this class.

    ``OPTIONS`` has, for each, what Typer is told and the default.
    """

    OPTIONS: ClassVar[Mapping[str, tuple[Any, Any]]] = {}


def _column(text: str) -> tuple[Any, None]:
    return Annotated[str | None, typer.Option(help=text, rich_help_panel="Columns and time")], None


class Columns(Options):
    """The options of every command that reads a table, each None unless given."""

    OPTIONS: ClassVar[Mapping[str, tuple[Any, Any]]] = {
        "stream": _column("Column that names the stream of an event ('stream')."),
        "time": _column("Column of times or dates ('time')."),
        "type": _column("Column of event types ('type')."),
        "dates": _column("Form of dates not in ISO 8601: day-first, month-first, or a format such as %d.%m.%y %H:%M."),
        "encoding": _column("Encoding of CSV that is not UTF-8: cp1252 of Excel on Windows, latin-1 ..."),
        "start": _column("When streams start: a column, a number or a date (a time of day needs a column)."),
        "end": _column("Until when streams were watched: a column, a number or a date (a time of day needs a column)."),
        "unit": _column("Unit of time: second, minute, hour, day ..."),
        "timezone": _column("Zone of the place: of dates that have none, and where offsets differ. E.g. Europe/Paris."),
        "codes": (
            Annotated[
                list[str] | None,
                typer.Option(
                    help="Which MEDS codes become types: how many of their parts to keep (2), PATTERN=TYPE "
                    "('LAB//*=lab'; may be repeated), or a .json file of such pairs.",
                    rich_help_panel="Columns and time",
                ),
            ],
            None,
        ),
        "lifecycle": _column("Events of an XES log: complete, transition (a part of the type) or all."),
    }

    def read(self, file: Path, *, bounds: bool = True) -> StreamSet:
        """Read events, showing notices as notes; ``bounds=False`` where no start or end of a stream is used."""
        from retrodict.events.io.read import read_events
        from retrodict.events.io.request import ASSUMED

        with notes(unless=None if bounds else ASSUMED):
            return read_events(file, **self.given())

    def given(self) -> dict[str, Any]:
        """The arguments of ``read_events``."""
        return self | {side: _bound(self[side]) for side in ("start", "end")} | {"codes": _codes(self["codes"])}

    def units_in(self, axis: TimeAxis) -> float:
        """How many of the axis's units one unit of --unit is; 1 where it was not given."""
        from retrodict.events.time_axis import TimeAxis

        return 1.0 if self["unit"] in (None, axis.unit) else TimeAxis(self["unit"]).units_in(axis)

    def unit_of(self, axis: TimeAxis, model: str | None = None) -> str:
        """The unit in which the user gives and is told times, in words: --unit, else the axis's or the model's."""
        unit = self["unit"] or axis.unit or model
        return f"{unit}s" if unit else "units of time"


def refuse_overwriting(*inputs: Path | None, outputs: Mapping[str, Path | Sequence[Path] | None]) -> None:
    """Refuse outputs (by option) that would replace a file that is read, or each other."""
    seen = {path.resolve(): "is read" for path in inputs if path is not None}
    for option, paths in outputs.items():
        for path in (paths,) if isinstance(paths, Path) else paths or ():
            used = seen.get(path.resolve())
            if used is not None:
                remedy = "give another name"
                raise DataError(f"{option} would replace this file, which {used}", file=path, remedy=remedy)
            seen[path.resolve()] = f"{option} writes, too"


def _bound(value: str | None) -> str | float | None:
    """A number where the text is one; else the reader takes it as a column or a date."""
    if value is None:
        return None
    try:
        return float(value)
    except ValueError:
        return value


def _codes(given: Sequence[str] | None) -> int | dict[str, str] | None:
    """A depth, or a mapping from codes to types, as it is typed."""
    if not given:
        return None
    if len(given) == 1 and given[0].isdecimal():
        return int(given[0])
    pairs: dict[str, str] = {}
    for text in given:
        if text.endswith(".json"):
            try:
                from retrodict.events.plain import read_json

                found = read_json(Path(text))
            except (OSError, ValueError) as error:
                reason = getattr(error, "strerror", None) or str(error)
                raise DataError(f"cannot read --codes: {reason}", file=text, remedy="give a JSON object") from error
            if not isinstance(found, dict):
                remedy = 'write {"LAB//*": "lab", ...}'
                raise DataError("--codes holds no JSON object", file=text, remedy=remedy)
            pairs |= found
        else:
            pattern, equals, kind = text.rpartition("=")
            if not equals:
                raise DataError(
                    f"cannot understand --codes {text!r}", remedy="give a number, PATTERN=TYPE or a .json file"
                )
            pairs[pattern] = kind
    return pairs


def read_limit(text: str) -> tuple[str, float]:
    """A limit as it is typed, NAME=NUMBER."""
    name, _, number = text.partition("=")
    try:
        return name, float(number)
    except ValueError:
        raise ModelError(f"cannot understand --limit {text!r}. Write NAME=NUMBER, such as rows=500000000.") from None


def as_command(function: Callable[..., None]) -> Callable[..., None]:
    """The function for Typer: with every option of the ``Options`` that it takes, and interruptible.

    An interrupt (Ctrl-C, SIGTERM) ends the command in words: nothing is ever half written.
    """
    signature = inspect.signature(function, eval_str=True)
    groups = {
        p.name: p.annotation
        for p in signature.parameters.values()
        if isinstance(p.annotation, type) and issubclass(p.annotation, Options)
    }
    parameters = [p for p in signature.parameters.values() if p.name not in groups]
    takes_model = any(p.annotation is Folder for p in parameters)
    for group in groups.values():
        for name, (option, default) in group.OPTIONS.items():
            parameters.append(
                inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=option)
            )

    @functools.wraps(function)
    def run(**options: Any) -> None:
        for argument, group in groups.items():
            options[argument] = group({name: options.pop(name) for name in group.OPTIONS})
        with when_interrupted(lambda: "files that were not finished are as they were: run the same command again"):
            if takes_model:
                check_arguments(function.__name__.replace("_", "-"), options["model"], options.get("file"))
            function(**options)

    run.__signature__ = signature.replace(parameters=parameters)  # type: ignore[attr-defined]
    run.__annotations__ = {p.name: p.annotation for p in parameters}
    return run


@contextmanager
def when_interrupted(kept: Callable[[], str]) -> Iterator[None]:
    """An interrupt ends the command with what was kept and how to go on."""
    try:
        yield
    except KeyboardInterrupt:
        said.append(text := f"[yellow]interrupted[/]: {escape(kept())}")
        err.print(text, soft_wrap=True, highlight=False)
        raise typer.Exit(130) from None


@contextmanager
def bar(what: str, total: int | None, unit: str = "streams") -> Iterator[Callable[[int], None]]:
    """A bar with the time left on a terminal, a line every half minute elsewhere; to be called with the number done."""
    columns = (TextColumn(f"[bold]{what}[/]"), BarColumn(), MofNCompleteColumn(), TextColumn(unit))
    shown = Progress(*columns, TimeRemainingColumn(), TextColumn("left"), console=err)
    with shown if err.is_terminal else nullcontext():  # elsewhere older Rich ends even one that is disabled with a line
        task, sparing = shown.add_task(what, total=total), Sparing(by_share=False)

        def say(done: int) -> None:
            shown.update(task, completed=done)
            if not err.is_terminal and sparing.is_due(done / total if total else 0.0):
                of = "" if total is None else f" of {total:,}"
                err.print(f"{what}: {done:,}{of} {unit}", highlight=False)

        yield say


def refuse_unless_positive(value: float | None, option: str) -> None:
    """Refuse an option that must be a positive number."""
    if value is not None and not 0 < value < math.inf:
        raise ModelError(f"{option} must be a positive number, but is {value:g}.")


@contextmanager
def notes(unless: str | None = None) -> Iterator[None]:
    """Show what was assumed or repaired as notes on standard error, but none with the words ``unless``."""
    with warnings.catch_warnings(record=True) as caught:
        for kind in (DataNotice, EngineNotice, SuspicionNotice):
            warnings.simplefilter("always", kind)
        try:
            yield
        finally:
            for text, warning in {str(warning.message): warning for warning in caught}.items():
                if unless is not None and unless in text:
                    continue
                if issubclass(warning.category, DataNotice | EngineNotice | SuspicionNotice):
                    note(in_options(text))
                else:
                    warnings.warn_explicit(warning.message, warning.category, warning.filename, warning.lineno)


def command_line() -> str | None:
    """What was typed, if it was typed."""
    program, *words = sys.argv
    return shlex.join(["retrodict", *words]) if Path(program).stem in ("retrodict", "__main__") else None


def note(text: str) -> None:
    """Say something worth knowing."""
    err.print(f"[yellow]note:[/] {escape(text)}", soft_wrap=True, highlight=False)


def wrote(path: Path, what: str) -> None:
    """Say what was written where."""
    out.print(f"wrote [bold]{escape(str(path))}[/]: {what}", soft_wrap=True, highlight=False)
