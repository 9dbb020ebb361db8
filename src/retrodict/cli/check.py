"""``retrodict check``: is what would be imputed to be trusted? And the short check that ends a fit."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.markup import escape
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table

from retrodict.cli import common
from retrodict.cli.fit_jobs import SMOOTHER
from retrodict.cli.kept_check import KEPT
from retrodict.errors import ModelError, RetrodictError, WriteError
from retrodict.events.stream_set import StreamSet
from retrodict.models import Model
from retrodict.proposals import Proposal

if TYPE_CHECKING:
    from retrodict.evaluate.check import Check

_MOST_ON_DEV, _SHARE, _LEAST_SECONDS = 200, 0.1, 2.0


def check(
    model: Annotated[Path, typer.Argument(help="Folder that 'retrodict fit' wrote.")],
    file: Annotated[Path, typer.Argument(help="Complete streams that the model was not trained on.")],
    incomplete: Annotated[
        Path | None, typer.Option(help="Incomplete streams too: are they as model and missing rates predict?")
    ] = None,
    missing: Annotated[
        list[str] | None,
        typer.Option(
            "--missing", "-m", help="Missing rates or a YAML file; by default what the smoother was trained for."
        ),
    ] = None,
    particles: Annotated[
        int | None, typer.Option(help="Weighted guesses a stream; by default as many as for 'impute'.", min=1)
    ] = None,
    cost: Annotated[
        list[float] | None,
        typer.Option(
            help="Cost of an event too many or too few, in time moved; may be repeated (intervals are those of the "
            "middle one). By default a quarter of, once and four times half a gap."
        ),
    ] = None,
    filtering: Annotated[
        bool, typer.Option("--filtering", help="Do not look ahead, even if there is a smoother.")
    ] = False,
    seconds: Annotated[float | None, typer.Option(help="Impute no more streams after this time.", min=0.0)] = None,
    output: Annotated[Path | None, typer.Option("--output", "-o", help="Also write everything as JSON.")] = None,
    picture: Annotated[Path | None, typer.Option(help="Also draw it: .png, .pdf or .svg.")] = None,
    engine: Annotated[str, typer.Option(help="What runs it: auto, torch, native (see 'retrodict doctor').")] = "auto",
    device: Annotated[str, typer.Option(help="auto, cpu or cuda.")] = "auto",
    seed: common.Seed = 0,
    *,
    columns: common.Columns,
) -> None:  # fmt: skip
    """Check a model: hide events of complete streams, impute them, and compare with the truth.

    Ends with a verdict: what to trust, what not, and what to do. Without a smoother and without --missing only the fit
    of the model to complete streams is checked.

    [bold]Examples[/]

      retrodict check model/ held-out.csv --stream driver --time when --type what

      retrodict check model/ held-out.parquet --incomplete patchy.parquet --picture check.png -o check.json

      retrodict check model/ held-out.parquet -m pick-up=0.5 --particles 1000
    """
    for path in (output, picture):
        _can_write(path)
    streams = columns.read(file)
    lost = None if incomplete is None else columns.read(incomplete)
    fitted = _load(model, missing, filtering, device)

    from retrodict.evaluate.check import check as run

    options: dict[str, Any] = {"engine": engine} | ({} if particles is None else {"particles": particles})
    with common.notes(), _progress() as bar:
        task = bar.add_task("check", total=len(streams))
        result = run(
            fitted, streams, incomplete=lost, costs=cost, seconds=seconds, seed=seed,
            progress=lambda done: bar.update(task, completed=done), **options,
        )  # fmt: skip
    show(result)
    if output is not None:
        result.to_json(output)
        common.wrote(output, "all findings, tables and diagrams as numbers")
    if picture is not None:
        result.plot(picture)
        common.wrote(picture, "the check as a picture")


def show(result: Check) -> None:
    """Print the findings and the verdict."""
    table = Table(title="what was checked", title_justify="left")
    table.add_column("of", overflow="fold")
    table.add_column("finding", overflow="fold")
    for heading in ("found", "± s.e.", "fine"):
        table.add_column(heading, justify="right")
    table.add_column("")
    for f in result.findings:
        of = "" if f.of is None else f" ({f.of!r})"
        value, error = ("-" if x != x else f"{x:.3f}" for x in (f.value, f.error))
        alarm = f"[bold red]alarm[/] p = {f.p_value:.1g}" if f.alarm else ""
        table.add_row(f.part, escape(f.name + of), value, error, f.fine, alarm)
    common.out.print(table)
    if result.calibration is not None:
        common.out.print(_distances(result.to_dict()["distance"]))
    common.out.print(f"[bold]{escape(result.verdict)}[/]", soft_wrap=True, highlight=False)


def on_dev(folder: Path, train: StreamSet, dev: StreamSet | None, *, seed: int, device: str) -> None:
    """A short check on the dev streams of a fit, kept with its model; it takes a tenth of the time of the fit."""
    from retrodict.evaluate.check import check as run
    from retrodict.train.fitting import check_data

    fitted = _load(folder, None, filtering=False, device=device)
    records = [fitted.training_record, fitted.model.training_record if isinstance(fitted, Proposal) else {}]
    took = sum(float(record.get("seconds", 0.0)) for record in records)
    _, dev = check_data(train, dev, seed)
    try:
        with common.notes():
            result = run(fitted, dev[:_MOST_ON_DEV], seconds=max(_LEAST_SECONDS, _SHARE * took), seed=seed)
        result.to_json(folder / KEPT)
    except WriteError:
        raise
    except RetrodictError as error:  # the model is fitted and saved: that is what was asked for
        common.err.print(f"[yellow]note:[/] the check on dev could not be made: {escape(str(error))}", soft_wrap=True)
        return
    common.out.print(f"check on {result.about['streams']} dev streams: {escape(result.verdict)}", soft_wrap=True)


def _load(folder: Path, missing: list[str] | None, filtering: bool, device: str) -> Proposal | Model:
    """What 'impute' would use; the model alone where nothing says how events go missing."""
    import torch

    from retrodict.cli.impute import _load as load_proposal
    from retrodict.models.model_folder import load_model

    if device not in ("auto", "cpu", "cuda"):
        raise ModelError(f"unknown device {device!r}. Choose auto, cpu or cuda.")
    if device == "cuda" and not torch.cuda.is_available():
        raise ModelError("there is no CUDA device here. Choose device auto or cpu.")
    place = "cuda" if device != "cpu" and torch.cuda.is_available() else "cpu"
    if missing is None and not (folder / SMOOTHER).exists():
        return load_model(folder).to(place)
    return load_proposal(folder, missing, filtering).to(place)


def _can_write(path: Path | None) -> None:
    """Refuse, before any work, a path that cannot be written."""
    if path is not None and (path.is_dir() or not path.absolute().parent.is_dir()):
        raise WriteError("cannot write here", file=path, remedy="give a file in a folder that exists")


def _distances(rows: list[dict[str, Any]]) -> Table:
    table = Table("cost", title="distance to the truth, as a share of predicting nothing", title_justify="left")
    for heading in ("imputed", "constant rates"):
        table.add_column(heading, justify="right")
    for row in rows:
        both = (row["share_of_nothing"], row["constant_rates"])
        table.add_row(
            f"{row['cost']:.4g}", *("-" if x["value"] is None else f"{x['value']:.3f} ± {x['error']:.3f}" for x in both)
        )
    return table


def _progress() -> Progress:
    columns = (TextColumn("[bold]check[/]"), BarColumn(), MofNCompleteColumn(), TextColumn("streams"))
    return Progress(*columns, TimeRemainingColumn(), console=common.err, disable=not common.err.is_terminal)
