"""The ``retrodict`` command. Each command is one file; to add one, write it and list it here."""

from __future__ import annotations

import ast
import re
import signal
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.markup import escape
from typer.core import TyperCommand, TyperGroup

from retrodict._limits import limits
from retrodict._version import __version__
from retrodict.cli import common
from retrodict.errors import RetrodictError

PANELS = {
    "Main steps": ("describe", "fit", "check", "impute", "evaluate"),
    "Further steps": ("report", "plot", "ask", "smoother", "decode", "score", "fit_incomplete", "learn_missing"),
    "For other programs": ("serve",),
    "To try things on": ("simulate", "censor", "data", "demo", "doctor"),
}
_STYLE: dict[str, Any] = {"rich_markup_mode": "rich", "pretty_exceptions_enable": False}

_NO_NUMBER = re.compile(r"\bvalid (number|float|integer|int)\b")


class _Flags:
    """Help that shows no type beside options that take no value."""

    def get_params(self, ctx: Any) -> list[Any]:
        """All options and arguments."""
        params = super().get_params(ctx)  # type: ignore[misc]
        for param in params:
            if getattr(param, "is_flag", False):
                param.metavar = ""
        return params


class Command(_Flags, TyperCommand):
    """One command."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """The options, where one that is no number is refused in our words: Typer's differ with its version."""
        try:
            return super().parse_args(ctx, args)
        except typer.BadParameter as error:
            found = _NO_NUMBER.search(error.message)
            if found is not None:
                whole = "a whole number, such as 20" if found[1].startswith("int") else "a number, such as 20 or 0.5"
                in_unit = "--unit" in (getattr(error.param, "help", None) or "")
                unit = ", in the unit of the table's times, which --unit sets and 'retrodict describe' shows"
                error.message = f"it must be {whole}{unit if in_unit else ''}."
            raise


class Commands(_Flags, TyperGroup):
    """The commands; a command's file, and with it torch, is imported when the command is run, not when it is listed."""

    def resolve_command(self, ctx: Any, args: list[str]) -> tuple[str | None, Any, list[str]]:
        """The command that the words name, with its options, and the words left for it."""
        common.began.append(time.monotonic())
        name, listed, rest = super().resolve_command(ctx, args)
        return name, listed and load(str(name)), rest


def load(name: str) -> TyperCommand:
    """A command with its options, by the name that is typed."""
    function = name.replace("-", "_")
    alone = typer.Typer(add_completion=False, **_STYLE)
    with _interrupts_later():
        module = import_module(f"{__name__}.{function}")
    alone.command(name, cls=Command)(common.as_command(getattr(module, function)))
    command = typer.main.get_command(alone)
    assert isinstance(command, TyperCommand)
    return command


@contextmanager
def _interrupts_later() -> Iterator[None]:
    """An interrupt waits until libraries are loaded, for seconds: half loaded they would fail in words of their own."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    asked: list[int] = []
    signals = (signal.SIGINT, signal.SIGTERM)
    before = [signal.signal(number, lambda caught, _: asked.append(caught)) for number in signals]
    try:
        yield
    finally:
        for number, handler in zip(signals, before, strict=True):
            signal.signal(number, handler)
    if asked:
        with common.when_interrupted(lambda: "nothing was begun"):
            raise KeyboardInterrupt


def _says(function: str) -> str | None:
    """The docstring of a command, read without importing its file."""
    tree = ast.parse(Path(__file__).with_name(f"{function}.py").read_text(encoding="utf-8"))
    return next(ast.get_docstring(n) for n in tree.body if isinstance(n, ast.FunctionDef) and n.name == function)


app = typer.Typer(
    cls=Commands,
    no_args_is_help=True,
    context_settings={"help_option_names": ["-h", "--help"]},
    **_STYLE,
)
for panel, functions in PANELS.items():
    for function in functions:
        app.command(function.replace("_", "-"), help=_says(function), rich_help_panel=panel)(lambda: None)


@app.callback(invoke_without_command=True)
def about(
    context: typer.Context,
    version: Annotated[bool, typer.Option("--version", help="Show the version and stop.")] = False,
    limit: Annotated[
        list[str] | None,
        typer.Option(help="Raise a limit on what is read or asked for, such as rows=500000000 or memory=64e9."),
    ] = None,
) -> None:
    """Fill in the events missing from continuous-time event streams, with honest uncertainty.

    A stream is a list of typed events at real-valued times. Start with [bold]describe[/] to see what is in your file,
    [bold]fit[/] a model of complete streams, then [bold]impute[/] what is missing from incomplete ones;
    [bold]simulate[/], [bold]censor[/] and [bold]data[/] let you try it out.
    """
    context.with_resource(limits(**dict(map(common.read_limit, limit or []))))
    if version:
        common.out.print(f"retrodict {__version__}", highlight=False)
        raise typer.Exit


def main() -> None:
    """Run the command line; errors a user can act on are shown without a traceback."""
    if threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGTERM, signal.default_int_handler)  # a polite kill is an interrupt
    try:
        app()
    except (SystemExit, KeyboardInterrupt) as end:
        if isinstance(end, SystemExit) and end.code != 130:
            raise
        if not common.said:  # before a command began, or between two steps
            common.err.print("[yellow]interrupted[/]: nothing was begun")
        sys.exit(130)
    except RetrodictError as error:
        text = escape(common.in_options(str(error)))
        common.err.print(f"[bold red]error:[/] {text}", soft_wrap=True, highlight=False)
        sys.exit(2)
