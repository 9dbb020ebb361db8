"""One style for all pictures: colours that colour-blind readers tell apart, axes with dates, and writing the file.

Shapes differ wherever colours do. The colours are those of Okabe and Ito.
"""

from __future__ import annotations

import os
import re
from datetime import UTC, timedelta, timezone, tzinfo
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import numpy as np
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.dates import AutoDateLocator, ConciseDateFormatter
from matplotlib.figure import Figure
from numpy.typing import NDArray

from retrodict.errors import WriteError
from retrodict.events.atomic import atomic_file
from retrodict.events.time_axis import TimeAxis

OBSERVED, IMPUTED, TRUTH = "#0072b2", "#d55e00", "#000000"
OURS, OTHER, GREY, BAD = "#0072b2", "#e69f00", "#8c8c8c", "#d55e00"
FORMATS = (".png", ".pdf", ".svg")
_NS_A_DAY = 86_400_000_000_000


class Picture(Figure):
    """A figure that notebooks show by itself, without pyplot."""

    def _repr_png_(self) -> bytes:
        import io

        file = io.BytesIO()
        self.savefig(file, dpi=110, format="png")
        return file.getvalue()


def new_picture(width: float, height: float) -> Picture:
    """An empty picture, in inches."""
    figure = Picture(figsize=(width, height), layout="constrained")
    FigureCanvasAgg(figure)
    return figure


def write_picture(figure: Figure, path: str | os.PathLike[str]) -> None:
    """Write a picture as PNG, PDF or SVG, all of it or nothing."""
    check_picture_name(path)
    suffix = Path(path).suffix.lower().lstrip(".") or "png"
    metadata = {"Date": None} if suffix == "svg" else {"CreationDate": None} if suffix == "pdf" else {}
    with atomic_file(path) as file:
        figure.savefig(file, dpi=140, format=suffix, metadata=metadata)


def check_picture_name(path: str | os.PathLike[str] | None) -> None:
    """Refuse a name whose ending is not one of a picture; no ending at all means PNG."""
    suffix = "" if path is None else Path(path).suffix
    if suffix and suffix.lower() not in FORMATS:
        remedy = f"use one of {', '.join(FORMATS)}"
        raise WriteError(f"a picture cannot be written as {suffix!r}", file=path, remedy=remedy)


def tidy(axes: Any, *sides: str) -> None:
    """Take away the frame's sides that say nothing."""
    for side in sides or ("top", "right"):
        axes.spines[side].set_visible(False)


def legend_below(axes: Any, columns: int = 6) -> None:
    """A legend that covers nothing."""
    axes.figure.legend(*axes.get_legend_handles_labels(), loc="outside lower center", ncols=columns, frameon=False)


def short(name: str, most: int = 30) -> str:
    """A name that fits beside a picture; a dollar sign in it is no formula."""
    name = re.sub(r"\s+", " ", "".join(c if c.isprintable() else "\ufffd" for c in name))
    return (name if len(name) <= most else name[: most - 1] + "…").replace("$", r"\$")


def on_paper(times: NDArray[np.float64], axis: TimeAxis) -> NDArray[np.float64]:
    """Times as Matplotlib places them: days since 1970 where they are dates, else the numbers themselves."""
    times = np.asarray(times, dtype=np.float64)
    return axis.to_instants(times) / _NS_A_DAY if axis.is_calendar else times


def label_times(axes: Any, axis: TimeAxis) -> None:
    """Ticks of the x-axis as dates in the streams' own zone, or as numbers with their unit."""
    if axis.is_calendar:
        zone = _zone(axis.timezone)
        locator = AutoDateLocator(tz=zone, minticks=4, maxticks=9)
        axes.xaxis.set_major_locator(locator)
        axes.xaxis.set_major_formatter(ConciseDateFormatter(locator, tz=zone))
        axes.set_xlabel(f"time ({short(axis.timezone)})" if axis.timezone else "time")
    else:
        axes.set_xlabel("time" if axis.unit is None else f"time ({short(axis.unit)}s)")


def _zone(name: str | None) -> tzinfo:
    if name is None:
        return UTC
    fixed = re.fullmatch(r"([+-])(\d\d):(\d\d)", name)
    if fixed is None:
        return ZoneInfo(name)
    return timezone(int(fixed[1] + "1") * timedelta(hours=int(fixed[2]), minutes=int(fixed[3])))
