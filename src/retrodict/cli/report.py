"""``retrodict report``: one page to look at all imputed streams with."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from retrodict.cli import common
from retrodict.cli.draws import refuse_table
from retrodict.errors import DataError, ModelError
from retrodict.events.atomic import check_writable
from retrodict.events.stream_set import StreamSet
from retrodict.smc.posterior import Posterior, load_posterior

_COSTS = "What inserting or deleting an event costs (in --unit); may be repeated. By default five, about half a gap."
Draws = Annotated[Path, typer.Argument(help="Folder of draws that 'retrodict impute' wrote.")]
Truth = Annotated[Path | None, typer.Option(help="Events that are really missing, where they are known, to show too.")]
_PARTS = ("stream", "time", "type", "start", "end")
_ENDINGS = (".html", ".htm")


def report(
    draws: Draws,
    output: Annotated[Path, typer.Option("--output", "-o", help="The page, a single .html file.")],
    cost: Annotated[list[float] | None, typer.Option(help=_COSTS)] = None,
    truth: Truth = None,
    title: Annotated[str, typer.Option(help="What the page is called.")] = "What was imputed",
    *,
    columns: common.Columns,
) -> None:
    """Make one HTML page of saved draws: every stream on a timeline, with warnings, summaries and the model's check.

    The page is a single file that opens without a network. It can be searched, sorted and zoomed, and a slider
    changes the cost of an event too many or too few. A table of --truth has the columns of the table that was imputed,
    unless others are given.

    [bold]Examples[/]

      retrodict report imputed.csv.draws -o page.html

      retrodict report imputed.csv.draws --truth hidden.csv -o page.html
    """
    from retrodict.smc.posterior_folder import FILES, read_unit

    refuse_table(draws)
    check_page(output)
    common.refuse_overwriting(truth, *(draws / name for name in FILES), outputs={"--output": output})
    for each in cost or ():
        common.refuse_unless_positive(each, "--cost")
    posterior = load_posterior(draws)
    known = read_truth(truth, columns, posterior.observed)
    columns["unit"] = columns["unit"] or read_unit(draws)
    scale = columns.units_in(posterior.observed.axis)
    prices = None if cost is None else [each * scale for each in cost]
    write_page(posterior, output, costs=prices, truth=known, title=title)


def read_truth(truth: Path | None, columns: common.Columns, observed: StreamSet | None = None) -> StreamSet | None:
    """The events that are really missing; the options for columns are for them alone.

    Columns that are not given are those of the table of ``observed``, if the truth has them.
    """
    if truth is not None:
        for known in _columns_of(observed):
            given = {name: value for name, value in columns.items() if value is not None or name not in known}
            try:
                return common.Columns(known | given).read(truth)
            except DataError:  # it has other columns, or is wrong in itself, which is told below
                continue
        return columns.read(truth)
    for name, given in columns.items():
        if given is not None and name != "unit":
            raise ModelError(f"--{name} is for the table of --truth. Give --truth, too, or leave --{name} out.")
    return None


def _columns_of(observed: StreamSet | None) -> list[dict[str, str | None]]:
    """What is known of the columns of the table that was imputed: all, those of events alone, only the zone."""
    if observed is None or observed.source is None:
        return []
    names, zone = observed.source.names, {"timezone": observed.axis.timezone}
    return [{part: names.get(part) for part in parts} | zone for parts in (_PARTS, _PARTS[:3], ())]


def check_page(output: Path | None) -> None:
    """Refuse a page that could not be written, or that a browser would not take for one."""
    if output is None:
        return
    if output.suffix.lower() not in _ENDINGS:
        remedy = f"give it a name that ends in {_ENDINGS[0]}"
        raise DataError(f"a page cannot be written as {output.suffix!r}", file=output, remedy=remedy)
    check_writable(output)


def write_page(posterior: Posterior, output: Path, **options: object) -> None:
    """Write the page and say so."""
    with common.bar("report", len(posterior)) as done:
        posterior.report(output, progress=done, **options)  # type: ignore[arg-type]
    size = output.stat().st_size / 1e6
    common.wrote(output, f"a page about {len(posterior):,} streams, {size:.1f} MB: open it in a browser")
