"""``retrodict plot``: a picture of an imputed stream, of a trade-off, of a fit or of a check."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from retrodict.cli import common
from retrodict.cli.draws import refuse_table
from retrodict.cli.truth import Truth, read_truth
from retrodict.errors import DataError
from retrodict.events.atomic import check_writable
from retrodict.events.stream_set import describe_types

_WHAT = "Folder of draws ('retrodict impute'), folder of a fit ('retrodict fit'), or a check as .json."
_ID = "Name of the stream; by default the one with the most missing events expected."


def plot(
    what: Annotated[Path, typer.Argument(help=_WHAT)],
    output: Annotated[Path, typer.Option("--output", "-o", help="The picture: .png, .pdf or .svg.")],
    id: Annotated[str | None, typer.Option("--id", help=_ID)] = None,
    tradeoff: Annotated[
        bool, typer.Option("--tradeoff", help="Draws: the risk of the answer against its cost, of all streams.")
    ] = False,
    cost: Annotated[float | None, typer.Option(help="Cost of the answer (in --unit); by default half a gap.")] = None,
    truth: Truth = None,
    *,
    columns: common.Columns,
) -> None:
    """Draw a picture of what another command wrote.

    Of a folder of draws: one stream, with what was observed, what is believed, the answer, and the truth where it is
    given. Of the folder of a fit: the losses of the model and its smoothers, epoch by epoch. Of a check: its diagrams.

    [bold]Examples[/]

      retrodict plot imputed.csv.draws --id taxi-7 -o taxi-7.png

      retrodict plot imputed.csv.draws --tradeoff -o tradeoff.pdf

      retrodict plot model/ -o training.png

      retrodict plot model/smoother/check.json -o check.png
    """
    from retrodict.report.style import check_picture_name

    check_picture_name(output)
    check_writable(output)
    common.refuse_overwriting(truth, what if what.is_file() else None, outputs={"--output": output})
    common.refuse_unless_positive(cost, "--cost")
    if (what / "posterior.json").exists():
        _plot_draws(what, output, id, tradeoff, cost, truth, columns)
        return
    for option, given in {"--id": id, "--tradeoff": tradeoff or None, "--cost": cost, "--truth": truth}.items():
        if given is not None:
            refuse_table(what)
            remedy = f"give a folder of draws, or leave {option} out"
            raise DataError(f"{option} is for draws, and these are none", file=what, remedy=remedy)
    (_plot_check if what.suffix == ".json" else _plot_fit)(what, output)


def _plot_draws(
    draws: Path,
    output: Path,
    id: str | None,
    tradeoff: bool,
    cost: float | None,
    truth: Path | None,
    columns: common.Columns,
) -> None:
    from retrodict.smc.posterior import load_posterior
    from retrodict.smc.posterior_folder import read_unit

    posterior = load_posterior(draws)
    known = read_truth(truth, columns, posterior.observed)
    columns["unit"] = columns["unit"] or read_unit(draws)
    price = None if cost is None else cost * columns.units_in(posterior.observed.axis)
    if tradeoff:
        posterior.plot_tradeoff(output, truth=known, costs=None if price is None else [price / 4, price, price * 4])
        common.wrote(output, f"what is risked at each cost, over {len(posterior):,} streams")
        return
    names = [str(name) for name in posterior.observed.ids]
    if id is not None and id not in names:
        remedy = "name one of these"
        raise DataError(f"there is no stream {id!r}; streams are {describe_types(names)}", file=draws, remedy=remedy)
    i = names.index(id) if id is not None else int(posterior.expected_count().argmax()) if names else 0
    posterior.plot(i, output, cost=price, truth=known)
    common.wrote(output, f"stream {names[i]}")


def _plot_fit(folder: Path, output: Path) -> None:
    from retrodict.train.show import fits_in, plot_training

    plot_training(folder, output)
    epochs = ", ".join(f"{name}: {len(columns['epoch'])} epochs" for name, columns in fits_in(folder).items())
    common.wrote(output, epochs)


def _plot_check(file: Path, output: Path) -> None:
    from retrodict.report.check_picture import draw_check
    from retrodict.report.check_tables import read_check
    from retrodict.report.style import write_picture

    write_picture(draw_check(read_check(file)), output)
    common.wrote(output, "the check as a picture")
