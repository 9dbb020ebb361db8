"""``retrodict impute``: fill in what is missing."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from retrodict.cli import common
from retrodict.cli.fit_jobs import SMOOTHER
from retrodict.cli.kept_check import repeat_verdict
from retrodict.cli.rates import show_sensitivity
from retrodict.errors import ModelError
from retrodict.events.combine import fill
from retrodict.events.io.files import find_format
from retrodict.events.io.write import write_events
from retrodict.events.results import refuse_results
from retrodict.events.suspicion import refuse_unix_time
from retrodict.missingness.spec import parse_missing
from retrodict.proposals import Filtering, Proposal


def impute(
    model: Annotated[Path, typer.Argument(help="Folder that 'retrodict fit' wrote.")],
    file: common.File,
    output: Annotated[Path, typer.Option("--output", "-o", help="Your table with the imputed events put in.")],
    missing: Annotated[
        list[str] | None,
        typer.Option(
            "--missing", "-m", help="Missing rates or a YAML file; by default what the smoother was trained for."
        ),
    ] = None,
    particles: Annotated[int, typer.Option(help="Weighted guesses a stream.", min=1)] = 50,
    cost: Annotated[
        float | None,
        typer.Option(
            help="What inserting or deleting an event costs, in time moved (in --unit); by default half a gap."
        ),
    ] = None,
    filtering: Annotated[
        bool, typer.Option("--filtering", help="Do not look ahead, even if there is a smoother.")
    ] = False,
    resample: Annotated[
        str, typer.Option(help="systematic, stratified, residual, multinomial or none.")
    ] = "systematic",
    islands: Annotated[
        int, typer.Option(help="Split the particles into independent runs, combined by evidence.", min=1)
    ] = 1,
    moves: Annotated[int, typer.Option(help="Moves of every particle after sampling, against degeneracy.", min=0)] = 0,
    engine: Annotated[str, typer.Option(help="What runs it: auto, torch, native (see 'retrodict doctor').")] = "auto",
    max_events: Annotated[
        int, typer.Option(help="The most missing events that one guess of a stream may have.", min=1)
    ] = 100_000,
    sensitivity: Annotated[
        bool, typer.Option("--sensitivity", help="Also show what half and twice the odds of missing would change.")
    ] = False,
    draws: Annotated[Path | None, typer.Option(help="Where the draws go; by default OUTPUT.draws.parquet.")] = None,
    seed: common.Seed = 0,
    *,
    columns: common.Columns,
) -> None:
    """Impute the events that are missing from incomplete streams.

    Writes your table with the imputed events put in: your rows, columns and dates as they were, and columns
    'imputed', 'probability', 'earliest' and 'latest' (a 90 % interval for the time). Each imputed row follows the row
    of the event before it. Also writes a table of draws: every event of every weighted guess.

    [bold]Examples[/]

      retrodict impute model/ incomplete.csv --stream driver --time when --type what -o imputed.csv

      retrodict impute model/ incomplete.parquet -m pick-up=0.5 --filtering -o imputed.parquet

      retrodict impute model/ incomplete.parquet -m delays.yaml -o imputed.parquet
    """
    find_format(output, None)
    draws = draws or output.with_name(output.name + ".draws.parquet")
    common.refuse_overwriting(file, outputs={"--output": output, "--draws": draws})
    observed = columns.read(file)
    refuse_unix_time(observed)
    refuse_results(observed)
    proposal = _load(model, missing, filtering)
    repeat_verdict(model, proposal.model)

    from retrodict.evaluate.scores import half_a_gap
    from retrodict.report.sensitivity import check_odds
    from retrodict.report.sensitivity import sensitivity as compare
    from retrodict.smc.impute import impute as run
    from retrodict.smc.posterior_folder import write_draws

    if sensitivity:
        check_odds(proposal)
    options: dict[str, Any] = {"particles": particles, "seed": seed, "resample": resample, "engine": engine}
    options |= {"islands": islands, "rejuvenate": moves, "max_events": max_events, "rows": max(particles, 3200)}
    with common.notes(), _progress(len(observed)) as bar:
        task = bar.add_task("impute", total=len(observed))
        posterior = run(observed, proposal, **options, progress=lambda done: bar.update(task, completed=done))
    with common.notes():
        posterior.warn()
    axis = posterior.observed.axis
    if cost is None:
        missed = float(posterior.expected_count().sum())
        cost = half_a_gap(posterior.observed, posterior.observed.num_events + missed) / columns.units_in(axis)
    decoded = posterior.consensus(cost * columns.units_in(axis))
    write_events(fill(observed, decoded), output)
    units = columns.unit_of(axis, proposal.model.time_unit)
    common.wrote(
        output,
        f"{posterior.observed.num_events:,} observed and {decoded.num_events:,} imputed events "
        f"({posterior.expected_count().sum():,.1f} expected missing; cost {cost:.4g} {units})",
    )
    write_draws(posterior, draws)
    common.wrote(draws, f"{particles} weighted draws of each of {len(posterior):,} streams")
    if sensitivity:
        show_sensitivity(compare(observed, proposal, cost * columns.units_in(axis), posterior=posterior, **options))


def _load(folder: Path, missing: list[str] | None, filtering: bool) -> Proposal:
    """The smoother beside the model; filtering if asked for or if there is no smoother."""
    from retrodict.models.model_folder import load_model
    from retrodict.proposals.proposal_folder import load_proposal

    model = load_model(folder)
    if missing is None and (folder / SMOOTHER / "proposal.json").exists():
        smoother = load_proposal(folder / SMOOTHER)
        if smoother.model.digest() != model.digest():
            raise ModelError(
                f"the smoother in {folder / SMOOTHER} was trained for another model than the one in {folder}. Train it "
                "again with 'retrodict fit' and --missing, or give --missing here to do without."
            )
        return Filtering(smoother.model, smoother.given_missingness) if filtering else smoother
    if missing is None:
        raise ModelError(
            f"{folder} has no smoother, so it is not known which events go missing. Give --missing, such as "
            "--missing pick-up=0.5, or fit again with --missing to train one."
        )
    names = model.types or tuple(str(k) for k in range(model.num_types))
    mechanism = parse_missing(missing, names, model.time_unit)
    if not filtering:
        common.err.print(
            "[yellow]note:[/] there is no smoother for these missing rates: filtering is used, which sees only the past"
        )
    return Filtering(model, mechanism)


def _progress(total: int) -> Progress:
    columns = (TextColumn("[bold]impute[/]"), BarColumn(), MofNCompleteColumn(), TextColumn("streams"))
    return Progress(*columns, TimeRemainingColumn(), console=common.err, disable=not common.err.is_terminal)
