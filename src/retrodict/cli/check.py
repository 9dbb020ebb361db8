"""``retrodict check``: is what would be imputed to be trusted? And the short check that ends a fit."""

from __future__ import annotations

import math
import warnings
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.markup import escape

from retrodict.cli import common
from retrodict.cli.check_table import show
from retrodict.cli.hold_out import is_fitted_to, was_held_out_of_another
from retrodict.cli.kept_check import KEPT, keep_check
from retrodict.cli.proposal import Blind, Missing, Name, choose_proposal
from retrodict.errors import RetrodictError, SuspicionNotice, WriteError
from retrodict.events.atomic import check_writable
from retrodict.events.stream_set import StreamSet
from retrodict.events.suspicion import refuse_unix_time
from retrodict.missingness import Anything, ByType
from retrodict.models import Model
from retrodict.models.device import find_device
from retrodict.proposals import Proposal
from retrodict.proposals.smoothers import smoothers_of
from retrodict.smc.engines import choose, place
from retrodict.smc.options import Options

_SHARE_HIDDEN = 0.5  # where it is not said what goes missing
_MOST_ON_DEV, _SHARE, _LEAST_SECONDS = 200, 0.1, 2.0


def check(
    model: common.Folder,
    file: Annotated[Path, typer.Argument(help="Complete streams that the model was not trained on.")],
    incomplete: Annotated[
        Path | None, typer.Option(help="Incomplete streams too: are they as model and missing rates predict?")
    ] = None,
    missing: Missing = None,
    smoother: Name = None,
    particles: Annotated[
        int | None, typer.Option(help="Weighted guesses a stream; by default as many as for 'impute'.", min=1)
    ] = None,
    cost: Annotated[
        list[float] | None,
        typer.Option(
            help="Cost of an event too many or too few, in time moved (in --unit); may be repeated (intervals are "
            "those of the middle one). By default a quarter of, once and four times half a gap."
        ),
    ] = None,
    filtering: Blind = False,
    seconds: Annotated[float | None, typer.Option(help="Impute no more streams after this time.", min=0.0)] = None,
    output: Annotated[Path | None, typer.Option("--output", "-o", help="Also write everything as JSON.")] = None,
    picture: Annotated[Path | None, typer.Option(help="Also draw it: .png, .pdf or .svg.")] = None,
    in_full: Annotated[bool, typer.Option("--full", help="Also show what is fine, comparison by comparison.")] = False,
    keep: Annotated[
        bool, typer.Option(help="Keep it with the model or smoother: 'impute' repeats it, and its page shows it.")
    ] = True,
    engine: Annotated[str, typer.Option(help="What runs it: auto, torch, native (see 'retrodict doctor').")] = "auto",
    device: common.Device = "auto",
    seed: common.Seed = 0,
    *,
    columns: common.Columns,
) -> None:  # fmt: skip
    """Check a model: hide events of complete streams, impute them, and compare with the truth.

    Ends with a verdict: what to trust, what not, and what to do. Without --missing a smoother for anything is
    checked with half of the events hidden, and without a smoother only the fit of the model to complete streams is.
    The check is kept in the folder of the smoother, or of the model, in place of the short one that ended its fit.

    [bold]Examples[/]

      retrodict check model/ held-out.csv --stream driver --time when --type what

      retrodict check model/ held-out.parquet --incomplete patchy.parquet --picture check.png -o check.json

      retrodict check model/ held-out.parquet -m pick-up=0.5 --particles 1000
    """
    from retrodict.evaluate.check import check as run
    from retrodict.report.style import check_picture_name

    common.refuse_overwriting(file, incomplete, outputs={"--output": output, "--picture": picture})
    check_writable(output, picture)
    if picture is not None:
        check_picture_name(picture)
    find_device(device)
    streams = columns.read(file)
    lost = None if incomplete is None else columns.read(incomplete)
    for read in (streams, lost):
        if read is not None:
            refuse_unix_time(read)
    fitted, folder = _load(model, missing, smoother, filtering, streams.axis.timezone, columns["dates"])
    own = fitted.model if isinstance(fitted, Proposal) else fitted
    if is_fitted_to(own, model, streams):
        common.note(
            "the model was fitted to this very table, so that its check is too kind: check with streams that it was "
            "not trained on"
        )
    elif was_held_out_of_another(own, model, streams):
        common.note(
            "these streams were held out of another fit in this folder, and the model that is in it may have learned "
            "from them: fit it again with --hold-out"
        )
    streams = own.matched(streams)
    scale, units = columns.units_in(streams.axis), columns.unit_of(streams.axis, own.time_unit)
    costs = None if cost is None else [each * scale for each in cost]
    options: dict[str, Any] = {"engine": engine} | ({} if particles is None else {"particles": particles})
    with common.notes(), common.bar("check", len(streams)) as done:
        result = run(
            _placed(fitted, device, engine), streams, incomplete=lost, costs=costs, seconds=seconds, seed=seed,
            progress=done, **options,
        )  # fmt: skip
    result.about["file"] = file.name
    show(result, scale, units, in_full)
    if keep and result.calibration is not None and not result.calibration.hidden.any():
        common.note("the check is not kept, as nothing was hidden: give streams, or --missing, of which something is")
    elif keep:
        keep_check(result, folder)
    if output is not None:
        result.to_json(output)
        common.wrote(output, "all findings, tables and diagrams as numbers")
    if picture is not None:
        result.plot(picture)
        common.wrote(picture, "the check as a picture")


def on_dev(
    fitted: Proposal | Model,
    folder: Path,
    streams: tuple[StreamSet, StreamSet | None],
    *,
    seed: int,
    device: str,
    left: float | None = None,
) -> None:
    """A short check on the dev streams of a fit, kept in its folder; it takes a tenth of the time of the fit.

    It takes no more than the seconds that are ``left``, where there is a limit.
    """
    from retrodict.evaluate.check import check as run
    from retrodict.train.asked import check_data

    records = [fitted.training_record, fitted.model.training_record if isinstance(fitted, Proposal) else {}]
    took = sum(float(record.get("seconds", 0.0)) for record in records)
    _, dev = check_data(*streams, seed)
    how = ""
    if isinstance(fitted, Proposal) and isinstance(fitted.missingness, Anything):
        fitted, how = fitted.given(ByType(_SHARE_HIDDEN)), ", half of the events hidden"
    try:
        with common.notes():
            warnings.simplefilter("ignore", SuspicionNotice)  # said of the training streams
            seconds = min(max(_LEAST_SECONDS, _SHARE * took), math.inf if left is None else left)
            result = run(_placed(fitted, device), dev[:_MOST_ON_DEV], seconds=seconds, seed=seed)
        result.to_json(folder / KEPT)
    except WriteError:
        raise
    except RetrodictError as error:  # the model is fitted and saved: that is what was asked for
        common.note(f"the check on dev could not be made: {common.in_options(str(error))}")
        return
    common.out.print(f"check on dev{how}: {escape(result.decision)}", soft_wrap=True, highlight=False)


def _load(
    folder: Path, missing: list[str] | None, smoother: str | None, filtering: bool, zone: str | None, dates: str | None
) -> tuple[Proposal | Model, Path]:
    """What 'impute' would use, and its folder; the model alone where nothing says how events go missing."""
    from retrodict.models.model_folder import load_model

    model = load_model(folder)
    if missing is None and smoother is None:
        there = smoothers_of(folder, model)
        if not there:
            return model, folder
        if all(kept.is_for_any for kept in there if kept.problem is None):
            common.note("half of the events are hidden, as --missing does not say which")
            missing = [str(_SHARE_HIDDEN)]
    return choose_proposal(folder, missing, smoother, filtering, zone, dates)


def _placed(fitted: Proposal | Model, device: str, engine: str = "auto") -> Proposal | Model:
    """On the device where 'impute' would run it, if the engine can."""
    if not isinstance(fitted, Proposal):
        return fitted.to(find_device(device))
    placed = place(fitted, device, engine, Options())
    choose(engine, placed, Options())
    return placed
