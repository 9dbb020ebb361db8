"""``retrodict report``: one page to look at all imputed streams with."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from retrodict.cli import common
from retrodict.cli.draws import refuse_table
from retrodict.cli.truth import Truth, read_truth
from retrodict.errors import DataError
from retrodict.events.atomic import check_writable
from retrodict.smc.posterior import Posterior, load_posterior

_COSTS = "What inserting or deleting an event costs (in --unit); may be repeated. By default five, about half a gap."
Draws = Annotated[Path, typer.Argument(help="Folder of draws that 'retrodict impute' wrote.")]
_CHECK = "A check to show, as 'retrodict check -o' writes it; by default the one that 'impute' found with the model."
_ENDINGS = (".html", ".htm")


def report(
    draws: Draws,
    output: Annotated[Path, typer.Option("--output", "-o", help="The page, a single .html file.")],
    cost: Annotated[list[float] | None, typer.Option(help=_COSTS)] = None,
    truth: Truth = None,
    check: Annotated[Path | None, typer.Option(help=_CHECK)] = None,
    title: Annotated[str, typer.Option(help="What the page is called.")] = "What was imputed",
    *,
    columns: common.Columns,
) -> None:
    """Make one HTML page of saved draws: every stream on a timeline, with warnings, summaries and the model's check.

    The page is a single file that opens without a network. It can be searched, sorted and zoomed, and a slider
    changes the cost of an event too many or too few. With --truth it also says how far the answer is from it. That
    table has the columns of the table that was imputed, unless others are given.

    [bold]Examples[/]

      retrodict report imputed.csv.draws -o page.html

      retrodict report imputed.csv.draws --truth hidden.csv -o page.html

      retrodict report imputed.csv.draws --check check.json -o page.html
    """
    from retrodict.report.check_tables import read_check
    from retrodict.smc.posterior_folder import FILES, read_unit

    refuse_table(draws)
    check_page(output)
    common.refuse_overwriting(truth, check, *(draws / name for name in FILES), outputs={"--output": output})
    for each in cost or ():
        common.refuse_unless_positive(each, "--cost")
    given = None if check is None else read_check(check)
    posterior = load_posterior(draws)
    if given is not None:
        _compare_models(given["about"].get("model"), posterior.about.get("model"))
    known = read_truth(truth, columns, posterior.observed)
    columns["unit"] = columns["unit"] or read_unit(draws)
    scale = columns.units_in(posterior.observed.axis)
    prices = None if cost is None else [each * scale for each in cost]
    write_page(posterior, output, costs=prices, truth=known, check=given, title=title)


def _compare_models(checked: object, used: object) -> None:
    """Say so where a check is of another model than the draws; ``used`` ends with the beginning of its digest."""
    if isinstance(checked, str) and isinstance(used, str) and not checked.startswith(used.rpartition(" ")[2]):
        common.note("the check is of another model than these draws: what it says of them may be wrong")


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
