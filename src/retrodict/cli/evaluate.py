"""``retrodict evaluate``: how close imputed events are to those that were really missing."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import numpy as np
import typer
from rich.markup import escape
from rich.table import Table

from retrodict.cli import common
from retrodict.cli.draws import decoded, in_unit
from retrodict.cli.truth import only_missing
from retrodict.errors import DataError
from retrodict.events.atomic import check_writable, write_json
from retrodict.events.results import marks
from retrodict.events.stream_set import StreamSet


def evaluate(
    truth: Annotated[Path, typer.Argument(help="The events that were really missing (as 'censor --hidden' writes).")],
    imputed: Annotated[Path, typer.Argument(help="What 'retrodict impute' wrote, or any file of imputed events.")],
    cost: Annotated[
        list[float] | None,
        typer.Option(
            help="Cost of an event too many or too few, in time moved (in --unit); may be repeated. Intervals and "
            "types are scored at the first, by default impute's (or decode's, kept in the draws), else half a gap."
        ),
    ] = None,
    tolerance: Annotated[
        float | None,
        typer.Option(help="How far off in time an event may be (in --unit) to count as found; by default half a gap."),
    ] = None,
    against: Annotated[Path | None, typer.Option(help="Another file of imputed events to compare with.")] = None,
    output: Annotated[Path | None, typer.Option("--output", "-o", help="Also write all scores as JSON.")] = None,
    seed: common.Seed = 0,
    *,
    columns: common.Columns,
) -> None:
    """Score imputed events against the truth: optimal transport distance and its two terms, recall and precision.

    In a file with a column 'imputed' only the events marked in it count, and a stream that TRUTH lacks is one in which
    nothing was missing. TRUTH may also hold the events that were observed: they are taken out. Unit and cost are those
    of 'impute' or 'decode' where the draws lie beside IMPUTED. With --against, the distances of the two files
    are compared stream by stream with a paired permutation test.

    [bold]Examples[/]

      retrodict evaluate hidden.csv imputed.csv --cost 0.1 --cost 1

      retrodict evaluate hidden.csv smoothed.csv --against filtered.csv -o scores.json
    """
    from retrodict.evaluate import paired_permutation_test, score
    from retrodict.evaluate.matching import on_axis_of, refuse_dates_and_numbers
    from retrodict.evaluate.scores import INTERVAL_LEVEL
    from retrodict.events.gaps import half_a_gap

    check_writable(output)
    common.refuse_overwriting(truth, imputed, against, outputs={"--output": output})
    actual, table = columns.read(truth, bounds=False), columns.read(imputed)
    if "imputed" in actual.columns and "imputed" not in table.columns:
        raise DataError(
            f"this is a table of imputed events (it has a column 'imputed'), and {imputed.name} is none",
            file=truth,
            remedy=f"give the truth first: retrodict evaluate {imputed.name} {truth.name}",
        )
    refuse_dates_and_numbers(actual, table)
    known, table = in_unit(decoded(imputed), table, columns["unit"])
    actual, guess = on_axis_of(table, actual), _only_imputed(table)
    if "imputed" in table.columns:
        actual = only_missing(actual, table.keep(~marks(table.columns["imputed"])), imputed.name)
    columns["unit"] = known.unit
    units = columns.unit_of(table.axis)
    gap = half_a_gap(table, table.num_events - guess.num_events + actual.num_events)  # impute's default cost
    usual = known.cost or gap
    costs = cost or [usual, usual / 4, 4 * usual]  # intervals are those of the first
    whence = (
        "as given"
        if cost
        else f"that of {known.draws}"
        if known.cost
        else "half a gap between events, the missing ones included"
    )
    result = score(actual, guess, costs, gap if tolerance is None else tolerance)
    report = result.to_dict() | {"unit": known.unit}
    common.out.print(f"cost {costs[0]:.4g} {units}: {escape(whence)}", soft_wrap=True)
    common.out.print(_transport(report, units))
    common.out.print(_by_type(report, result.types, units))
    events, bias = report["events"], report["counts"]["bias"]
    common.out.print(
        f"within {events['tolerance']:.4g} {units} "
        f"({'half a gap between events, the missing ones included' if tolerance is None else 'as given'}): "
        f"recall {events['recall']:.3f}, precision {events['precision']:.3f}, F1 {events['f1']:.3f}",
        soft_wrap=True,
    )
    common.out.print(
        f"imputed events a stream: {abs(bias):.2f} too {'few' if bias < 0 else 'many'} on average; counting too few "
        f"and too many alike, {report['counts']['mean_absolute']:.2f} off",
        soft_wrap=True,
    )
    if result.coverage is not None:
        covered = result.coverage
        common.out.print(
            f"at cost {covered.cost.insert:.4g} {units}: {100 * covered.covered:.1f} % of the "
            f"{100 * INTERVAL_LEVEL:.0f} % intervals hold the true time ({covered.aligned} events, mean width "
            f"{covered.mean_width:.4g} {units})",
            soft_wrap=True,
        )
    if against is not None:
        other = score(actual, _only_imputed(columns.read(against)), costs, result.events.tolerance)
        report["against"] = []
        for ours, theirs in zip(result.transport, other.transport, strict=True):
            test = paired_permutation_test(ours.distance_by_stream, theirs.distance_by_stream, seed=seed)
            report["against"].append(test._asdict() | {"cost": ours.cost.insert})
            common.out.print(
                f"at cost {ours.cost.insert:.4g} {units}: {escape(imputed.name)} less {escape(against.name)} is "
                f"{test.difference:+.4g} a stream (p = {test.p_value:.2g})",
                soft_wrap=True,
            )
    if output is not None:
        write_json(output, report)
        common.wrote(output, "all scores, by type too")


def _only_imputed(streams: StreamSet) -> StreamSet:
    column = streams.columns.get("imputed")
    return streams if column is None else streams.keep(marks(column))


def _transport(report: dict, units: str) -> Table:
    table = Table("cost", title=f"distance to the truth, per missing event, in {units}", title_justify="left")
    for heading in ("distance", "predict nothing", "edits", "time moved"):
        table.add_column(heading, justify="right")
    for row in sorted(report["transport"], key=lambda row: row["insert_cost"]):
        numbers = [row[f"{name}_per_event"] for name in ("distance", "nothing", "edits", "moved")]
        table.add_row(f"{row['insert_cost']:.4g}", *(f"{x:.4f}" for x in numbers))
    return table


def _by_type(report: dict, types: tuple[str, ...], units: str) -> Table:
    """Each type that is missing or imputed at all, at the first cost."""
    first = report["transport"][0]
    within = f"F1 within {report['events']['tolerance']:.4g}"
    table = Table(title=f"by type, at cost {first['insert_cost']:.4g}, {within} {units}", title_justify="left")
    table.add_column("type", overflow="fold", min_width=18)
    for heading in ("missing", "imputed", "distance", "edits", "moved", "F1"):
        table.add_column(heading, justify="right", overflow="fold")
    for name in types:
        row, found = first["by_type"][name], report["events"]["by_type"][name]
        if row["missing"] or found["imputed"]:
            numbers = [row[key] for key in ("distance_per_event", "edits_per_event", "moved_per_event")]
            numbers.append(found["f1"])
            shown = ("-" if np.isnan(x) else f"{x:.3f}" for x in numbers)
            table.add_row(escape(name), str(row["missing"]), str(found["imputed"]), *shown)
    return table
