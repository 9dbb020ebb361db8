"""``retrodict impute``: fill in what is missing."""

from __future__ import annotations

import warnings
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer

from retrodict.cli import common
from retrodict.cli.chunk_work import Choices
from retrodict.cli.decode import Cost, Output, price_of, say_draws, say_particles, write_answer
from retrodict.cli.draws import beside, keep_decoded
from retrodict.cli.hold_out import is_fitted_to
from retrodict.cli.impute_chunks import Chunking, impute_chunks, name_impossible, read_or_chunk, refuse_whole
from retrodict.cli.kept_check import calibration_by, find_check, repeat_verdict
from retrodict.cli.proposal import Blind, Missing, Name, check_choice, choose_proposal, say_other_dates
from retrodict.cli.rates import show_sensitivity
from retrodict.cli.report import check_page, write_page
from retrodict.cli.truth import truth_of
from retrodict.cli.windows_warning import warn_of_windows
from retrodict.errors import ModelError, SuspicionNotice
from retrodict.events.atomic import check_folder
from retrodict.events.io.write import check_output, check_times, check_types
from retrodict.events.results import refuse_results
from retrodict.events.suspicion import refuse_unix_time
from retrodict.models.device import find_device
from retrodict.proposals.smoothers import type_names
from retrodict.smc.diagnostics import none_possible
from retrodict.smc.engines import check_name, place
from retrodict.smc.impute import impute as run
from retrodict.smc.islands import number_of_islands
from retrodict.smc.options import MOST_EVENTS, Options
from retrodict.smc.posterior import Posterior
from retrodict.smc.posterior_folder import FILES, save_posterior

_SAMPLING, _MANY = "Sampling", "Many streams"


def impute(
    model: common.Folder,
    file: common.File,
    output: Output,
    missing: Missing = None,
    smoother: Name = None,
    particles: Annotated[
        int | None,
        typer.Option(
            help="Weighted guesses a stream; by default 1,000 where compiled code runs it, 200 otherwise.", min=1
        ),
    ] = None,
    cost: Cost = None,
    filtering: Blind = False,
    resample: Annotated[
        str, typer.Option(help="systematic, stratified, residual, multinomial or none.", rich_help_panel=_SAMPLING)
    ] = "systematic",
    islands: Annotated[
        int | None,
        typer.Option(
            help="Independent runs that the particles are split into; by default 2, which judge each other.",
            min=1,
            rich_help_panel=_SAMPLING,
        ),
    ] = None,
    max_events: Annotated[
        int | None,
        typer.Option(
            help="The most missing events that one guess of a stream may have; by default 100,000, or ten times the "
            "observed ones of the longest stream.",
            min=1,
            rich_help_panel=_SAMPLING,
        ),
    ] = None,
    cut: Annotated[
        bool,
        typer.Option(
            "--cut", help="Streams without an event at their end were cut there; else their last event went missing."
        ),
    ] = False,
    calibrate: Annotated[
        bool,
        typer.Option("--calibrate", help="Give probabilities as they came true in the check kept with the model."),
    ] = False,
    sensitivity: Annotated[
        bool, typer.Option("--sensitivity", help="Also show what half and twice the odds of missing would change.")
    ] = False,
    engine: Annotated[
        str,
        typer.Option(
            help="What runs it: auto, torch, native, triton (see 'retrodict doctor').", rich_help_panel=_SAMPLING
        ),
    ] = "auto",
    device: Annotated[
        str, typer.Option(help="auto (where it runs fastest), cpu or cuda.", rich_help_panel=_SAMPLING)
    ] = "auto",
    draws: Annotated[
        Path | None, typer.Option(help="Folder where the draws go; by default beside the output, OUTPUT.draws.")
    ] = None,
    no_draws: Annotated[bool, typer.Option("--no-draws", help="Keep no draws.")] = False,
    report: Annotated[
        Path | None, typer.Option(help="Also make a page to look at the streams with: one .html file.")
    ] = None,
    truth: Annotated[
        Path | None, typer.Option(help="For the page: events that are really missing, where they are known.")
    ] = None,
    resume: Annotated[
        bool | None,
        typer.Option(
            "--resume/--restart", help="Go on with a run that was not finished, or drop it.", rich_help_panel=_MANY
        ),
    ] = None,
    chunk_streams: Annotated[
        int | None,
        typer.Option(
            help="Streams to work on at a time; by default all, or 10,000 where there are many; 0 for all.",
            min=0,
            rich_help_panel=_MANY,
        ),
    ] = None,
    cluster: Annotated[
        str | None,
        typer.Option(help="Address of a Ray cluster to work on, or 'local' for all CPUs here.", rich_help_panel=_MANY),
    ] = None,
    workers: Annotated[
        int | None,
        typer.Option(help="Processes of the cluster; by default one for each CPU (GPU).", min=1, rich_help_panel=_MANY),
    ] = None,
    seed: common.Seed = 0,
    *,
    columns: common.Columns,
) -> None:
    """Impute the events that are missing from incomplete streams.

    Writes your table with the imputed events put in: your rows, columns and dates as they were, and columns
    'imputed', 'probability', 'earliest' and 'latest' (a 90 % interval for the time). Each imputed row follows the row
    of the event before it. Also writes a folder of draws: every event of every weighted guess (draws.parquet), and what
    [bold]decode[/] and [bold]ask[/] need. Which smoother is used follows from --missing: the one that was trained for
    it, else the one for anything.

    More than 20,000 streams, or 1,000,000 rows, are worked on in chunks, in bounded memory: if the run is interrupted
    or killed, or the disk is full, --resume does what is missing. A folder of Parquet files is read as one table, and
    written as one where the output has no suffix.

    [bold]Examples[/]

      retrodict impute model/ incomplete.csv --stream driver --time when --type what -o imputed.csv

      retrodict impute model/ incomplete.parquet -m pick-up=0.5 --filtering -o imputed.parquet

      retrodict impute model/ incomplete.parquet -m delays.yaml -o imputed.parquet --report page.html
    """
    from retrodict.evaluate.sensitivity import check_odds
    from retrodict.evaluate.sensitivity import sensitivity as compare

    if no_draws and draws is not None:
        raise ModelError("--draws says where the draws go, and --no-draws that there are none. Give one of the two.")
    draws = draws or beside(output)
    common.refuse_unless_positive(cost, "--cost")
    written: dict[str, Path | list[Path] | None] = {
        "--output": output,
        "--draws": None if no_draws else [draws, *(draws / n for n in FILES)],
        "--report": report,
    }
    common.refuse_overwriting(file, truth, outputs=written)
    chunking = Chunking(chunk_streams, resume, cluster, workers)
    chunking.check()
    if not chunking.goes_on(output):
        check_output(output)
    check_page(report)
    if truth is not None and report is None:
        raise ModelError("--truth is shown on the page. Give --report, too, or score it with 'retrodict evaluate'.")
    if not no_draws:
        check_folder(draws)
    smc = Options.of(particles or 1, resample, 0.5, None, None, max_events or MOST_EVENTS)
    check_name(engine)
    if particles is not None:
        number_of_islands(islands, particles)
    if cluster is None:
        find_device(device)
    options: dict[str, Any] = {"particles": particles or "auto", "seed": seed, "resample": resample, "engine": engine}
    options |= {"islands": islands, "max_events": max_events} | ({"cut": True} if cut else {})
    kind, observed = read_or_chunk(file, columns, chunking, output, particles, whole=report is not None or sensitivity)
    if observed is None:
        refuse_whole(report, sensitivity)
        chosen = partial(choose_proposal, model, missing, smoother, filtering, dates=columns["dates"])
        check = partial(check_choice, model, missing, smoother, columns["dates"])
        wanted = None if no_draws else draws
        how = Choices(chosen, check, model, device, smc, options, cost, calibrate, cluster, workers)
        return impute_chunks(file, kind, columns, chunking, how, output, wanted)
    check_times(observed, output)
    refuse_unix_time(observed)
    refuse_results(observed)
    proposal, folder = choose_proposal(model, missing, smoother, filtering, observed.axis.timezone, columns["dates"])
    check_types(observed, type_names(proposal.model), output)
    say_other_dates(proposal.model, columns["dates"])
    if is_fitted_to(proposal.model, model, observed):
        common.note(
            "the model was fitted to this very table: if events are missing from it, the model expects too few. Fit to "
            "complete streams, or use 'retrodict fit-incomplete'"
        )
    known = truth_of(truth, columns, observed, proposal.model)
    checked = find_check(proposal.model, folder, model)
    calibration = calibration_by(checked, proposal) if calibrate else {}
    if sensitivity:
        check_odds(proposal)
    proposal = place(proposal, device, engine, smc)
    kept = [f"nothing was written, and {output} is as it was: run the same command again"]
    with common.when_interrupted(lambda: kept[-1]):
        with common.notes(), common.bar("impute", len(observed)) as done:
            posterior = run(observed, proposal, **options, progress=done)
        _judge(posterior)
        repeat_verdict(checked, proposal)
        if no_draws and particles is None:
            say_particles(posterior.num_particles)
        posterior.about |= {"command": common.command_line(), "file": file.name, "check": checked} | calibration
        keep_decoded(posterior, price_of(posterior, cost, columns), columns)
        if not no_draws:
            with common.bar("write draws", len(posterior)) as done:
                save_posterior(posterior, draws, columns["unit"], done)
            common.wrote(draws, say_draws(posterior.num_particles, len(posterior), particles is not None))
            given = "" if cost is None else f" --cost {cost:g}"
            kept.append(f"the draws are kept in {draws}: go on with 'retrodict decode {draws}{given} -o {output}'")
        price = write_answer(posterior, cost, columns, output)
        if report is not None:
            kept.append(
                f"{output} is written" + ("" if no_draws else f": go on with 'retrodict report {draws} -o {report}'")
            )
            write_page(posterior, report, cost=price, truth=known)
        if sensitivity:
            kept.append(f"{output} is written; only what hangs on the missing rates was not found out")
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", SuspicionNotice)  # the data are the same, and so are the notes
                found = compare(observed, proposal, price, posterior=posterior, **options)
            show_sensitivity(found)
    warn_of_windows(proposal.missingness, observed)


def _judge(posterior: Posterior) -> None:
    """Say what should keep one from trusting the posterior; refuse one that says nothing of any stream."""
    with common.notes():
        posterior.warn()
    names = [posterior.observed.ids[i] for i in np.flatnonzero(~posterior.is_possible)]
    if names and len(names) == len(posterior):
        raise none_possible(posterior.about.get("conflict"), names)
    if "conflict" not in posterior.about:  # else it was said
        name_impossible(names[:20], len(names))
