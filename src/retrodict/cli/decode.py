"""``retrodict decode``: one answer from draws that were saved, at another cost."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from retrodict.cli import common
from retrodict.cli.draws import beside, keep_another, keep_decoded, refuse_table
from retrodict.events.combine import fill
from retrodict.events.io.write import check_output, check_times, write_events
from retrodict.smc.posterior import Posterior, load_posterior

_COST = "What inserting or deleting an event costs, in time moved (in --unit); by default half of the mean gap."
Cost = Annotated[float | None, typer.Option(help=_COST)]
_OUTPUT = "Your table with the imputed events put in."
Output = Annotated[Path, typer.Option("--output", "-o", help=_OUTPUT)]

BY_DEFAULT = "the default for this engine and memory (--particles sets another)"
_SOME, _MUCH = 5, 0.2  # expected events, and the share of them not imputed, of which it is worth speaking


def decode(
    draws: Annotated[Path, typer.Argument(help="Folder of draws that 'retrodict impute' wrote.")],
    output: Output,
    cost: Cost = None,
    unit: Annotated[str | None, typer.Option(help="Unit of --cost; by default as for 'impute'.")] = None,
) -> None:
    """Decode saved draws at another cost, without sampling again, and write the same table as 'retrodict impute'.

    The folder may also be one that posterior.save wrote in Python.

    [bold]Example[/]

      retrodict decode imputed.csv.draws --cost 20 -o bolder.csv
    """
    from retrodict.smc.posterior_folder import FILES, read_unit, update_about

    common.refuse_unless_positive(cost, "--cost")
    refuse_table(draws)
    check_output(output)
    common.refuse_overwriting(*(draws / name for name in FILES), outputs={"--output": output})
    posterior = load_posterior(draws)
    check_times(posterior.observed, output)
    columns = common.Columns(dict.fromkeys(common.Columns.OPTIONS) | {"unit": unit or read_unit(draws)})
    price = write_answer(posterior, cost, columns, output)
    if beside(output).resolve() == draws.resolve():  # 'evaluate' goes by the cost that is kept there
        keep_decoded(posterior, price, columns)
        update_about(draws, posterior.about)
    else:
        keep_another(posterior, price, columns, draws, output)


def price_of(posterior: Posterior, cost: float | None, columns: common.Columns) -> float:
    """The cost as given, else the usual one, in units of the streams."""
    from retrodict.smc.show import usual_cost

    return usual_cost(posterior) if cost is None else cost * columns.units_in(posterior.observed.axis)


def say_particles(number: int) -> None:
    """Say how many guesses of each stream there are by default, where no draws are written."""
    common.err.print(
        f"particles: {number:,} weighted guesses of each stream, {BY_DEFAULT}", soft_wrap=True, highlight=False
    )


def say_draws(number: int, streams: int, given: bool) -> str:
    """How many guesses of each stream were written, and where their number comes from."""
    return f"{number:,} weighted draws of each of {streams:,} streams" + ("" if given else f", {BY_DEFAULT}")


def say_cost() -> None:
    """Say where the cost comes from that decides what is imputed."""
    why = "half of the mean gap between events, seen and expected (--cost sets another)"
    when = "an event is imputed only where that lowers the expected distance to the truth"
    common.err.print(f"cost: {why}; {when}", soft_wrap=True, highlight=False, markup=False)


def write_answer(posterior: Posterior, cost: float | None, columns: common.Columns, output: Path) -> float:
    """Decode a posterior and write the observed table with the imputed events; the cost in units of the streams."""
    observed, scale = posterior.observed, columns.units_in(posterior.observed.axis)
    total = posterior.total_count()
    price = price_of(posterior, cost, columns)
    units = columns.unit_of(observed.axis, posterior.model.time_unit if posterior.model is not None else None)
    if cost is None:
        say_cost()
    with common.notes(), common.bar("decode", len(posterior)) as done:
        decoded = posterior.consensus(price, progress=done)
    replaced = output.exists()
    write_events(fill(observed, decoded), output)
    common.wrote(
        output,
        f"{observed.num_events:,} observed and {decoded.num_events:,} imputed events "
        f"({total}; cost {price / scale:.4g} {units})",
    )
    if replaced:
        say_replaced(output)
    say_left_out(total.expected, decoded.num_events, price / scale)
    return price


def say_replaced(output: Path) -> None:
    """That an earlier file, and what belongs to it, is no more."""
    common.note(f"this replaced an earlier {output}")


def say_left_out(expected: float, imputed: int, cost: float) -> None:
    """That many expected events are not imputed, why, and what to do about it; in the user's units."""
    if expected >= _SOME and expected - imputed > _MUCH * expected:
        common.note(
            f"{expected - imputed:,.0f} of the expected events are not imputed, as their times are hardly known: a "
            f"higher cost (--cost {4 * cost:.3g}, or the page's slider) may impute more; 'retrodict ask' tells numbers"
        )
