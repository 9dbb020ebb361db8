"""A picture of how a fit went, from what it wrote."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from retrodict.errors import DataError
from retrodict.events.atomic import check_writable
from retrodict.proposals.smoothers import SMOOTHER, SMOOTHERS
from retrodict.report.curves import draw_training, read_metrics
from retrodict.report.style import check_picture_name, write_picture
from retrodict.train.auto import folder_of_chosen

if TYPE_CHECKING:
    from retrodict.report.style import Picture


def plot_training(directory: str | os.PathLike[str], path: str | os.PathLike[str] | None = None) -> Picture:
    """A Matplotlib figure of the losses of a fit, epoch by epoch; also as a file (.png, .pdf, .svg).

    ``directory`` is that of ``rd.fit``, ``rd.fit_auto`` or ``retrodict fit``; of a model it shows the smoothers, too.
    """
    if path is not None:
        check_picture_name(path)
        check_writable(path)
    picture = draw_training(fits_in(Path(directory)))
    if path is not None:
        write_picture(picture, path)
    return picture


def fits_in(folder: Path) -> dict[str, dict[str, list[float]]]:
    """The columns of ``metrics.csv`` of the model in a folder and of its smoothers, by their names."""
    places = {"model": folder_of_chosen(folder), SMOOTHER: folder / SMOOTHER}
    places |= {f"smoother {own.name}": own for own in sorted(folder.glob(f"{SMOOTHERS}/*"))}
    fits = {name: read_metrics(own) for name, own in places.items() if (own / "metrics.csv").exists()}
    if not fits:
        remedy = "give a folder that 'retrodict impute' or 'retrodict fit' wrote"
        raise DataError("there are neither draws nor the record of a fit here", file=folder, remedy=remedy)
    return fits
