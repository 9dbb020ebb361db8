"""The ``retrodict`` command. Each command is one file; to add one, write it and list it here."""

from __future__ import annotations

import signal
import sys
import threading
from typing import Annotated

import typer
from rich.markup import escape

from retrodict._limits import limits
from retrodict._version import __version__
from retrodict.cli import common
from retrodict.cli.ask import ask
from retrodict.cli.censor import censor
from retrodict.cli.check import check
from retrodict.cli.data import data
from retrodict.cli.decode import decode
from retrodict.cli.demo import demo
from retrodict.cli.describe import describe
from retrodict.cli.doctor import doctor
from retrodict.cli.evaluate import evaluate
from retrodict.cli.fit import fit
from retrodict.cli.fit_incomplete import fit_incomplete
from retrodict.cli.impute import impute
from retrodict.cli.learn_missing import learn_missing
from retrodict.cli.plot import plot
from retrodict.cli.report import report
from retrodict.cli.score import score
from retrodict.cli.simulate import simulate
from retrodict.cli.smoother import smoother
from retrodict.errors import RetrodictError

app = typer.Typer(
    no_args_is_help=True,
    rich_markup_mode="rich",
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
PANELS = {
    "Main steps": (describe, fit, check, impute, evaluate),
    "Further steps": (report, plot, ask, smoother, decode, score, fit_incomplete, learn_missing),
    "To try things on": (simulate, censor, data, demo, doctor),
}
for panel, commands in PANELS.items():
    for command in commands:
        app.command(rich_help_panel=panel)(common.as_command(command))


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
    except RetrodictError as error:
        text = escape(common.in_options(str(error)))
        common.err.print(f"[bold red]error:[/] {text}", soft_wrap=True, highlight=False)
        sys.exit(2)
