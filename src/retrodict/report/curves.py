"""Curves: what an answer risks against its cost, and how a fit went."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from matplotlib.ticker import MaxNLocator

from retrodict.errors import DataError
from retrodict.events.plain import read_regular
from retrodict.report.style import GREY, OTHER, OURS, Picture, new_picture, short, tidy

_MOST_BYTES = 16 << 20


class Tradeoff(NamedTuple):
    """At one cost: the risk of the answer and of predicting nothing, per stream, and the events imputed in all.

    Where the truth is known, ``to_truth`` is the distance to it as a share of that of predicting nothing.
    """

    cost: float
    risk: float
    nothing: float
    imputed: int
    to_truth: float | None = None


def draw_tradeoff(rows: Sequence[Tradeoff], unit: str | None) -> Picture:
    """Risk, or distance to the truth, as a share of predicting nothing, and events imputed, against the cost."""
    figure = new_picture(9, 3.6)
    left, right = figure.subplots(1, 2)
    costs = [row.cost for row in rows]
    left.axhline(1, color=GREY, lw=1)
    left.plot(costs, [_share(row.risk, row.nothing) for row in rows], "o-", color=OURS, label="expected (risk)")
    if any(row.to_truth is not None for row in rows):
        shares = [math.nan if row.to_truth is None else row.to_truth for row in rows]
        left.plot(costs, shares, "s--", color=OTHER, label="to the truth")
    left.set_ylim(bottom=0)
    left.set_title("distance; 1 is predicting nothing", fontsize=9, loc="left")
    left.legend(frameon=False, fontsize=8)
    right.plot(costs, [row.imputed for row in rows], "o-", color=OURS)
    right.set_ylim(bottom=0)
    right.set_title("imputed events", fontsize=9, loc="left")
    for axes in (left, right):
        axes.set_xscale("log")
        axes.set_xticks(costs, [f"{cost:.3g}" for cost in costs])
        axes.minorticks_off()
        axes.set_xlabel("cost of an event too many or too few" + (f" ({short(unit)}s)" if unit else ""))
        tidy(axes)
    return figure


def _share(value: float, whole: float) -> float:
    return value / whole if whole > 0 else math.nan


def read_metrics(folder: Path) -> dict[str, list[float]]:
    """The columns of a fit's metrics.csv, epoch by epoch; a DataError where there are none."""
    file = folder / "metrics.csv"
    remedy = "give a folder that 'retrodict fit' or rd.fit(..., directory=...) wrote"
    try:
        rows = list(csv.DictReader(io.StringIO(read_regular(file, _MOST_BYTES).decode("utf-8"))))
        columns = {name: [_number(row[name]) for row in rows] for name in (rows[0] if rows else {})}
    except (OSError, ValueError, TypeError, csv.Error) as error:
        reason = getattr(error, "strerror", None) or error
        raise DataError(f"this is not the record of a fit ({reason})", file=file, remedy=remedy) from error
    if not {"epoch", "dev_loss"} <= columns.keys():
        raise DataError("this is not the record of a fit: it has no epochs", file=file, remedy=remedy)
    return columns


def _number(text: str | None) -> float:
    return float(text) if text else math.nan


def draw_training(fits: dict[str, dict[str, list[float]]]) -> Picture:
    """For each fit, by name: losses of train and dev epoch by epoch, with the best epoch."""
    figure = new_picture(5.2 * len(fits), 3.6)
    panels = figure.subplots(1, len(fits), squeeze=False)[0]
    for axes, (name, columns) in zip(panels, fits.items(), strict=True):
        _draw_losses(axes, columns)
        axes.set_title(short(name, 48), fontsize=10, loc="left")
        tidy(axes)
    return figure


def _draw_losses(axes: Any, columns: dict[str, list[float]]) -> None:
    epochs, dev = [epoch + 1 for epoch in columns["epoch"]], columns["dev_loss"]
    train = columns.get("train_loss")
    if train is not None:
        axes.plot(epochs, train, "--", color=OTHER, lw=1.6, label="train")
    axes.plot(epochs, dev, color=OURS, lw=1.8, label="dev")
    known = [i for i, value in enumerate(dev) if math.isfinite(value)]
    if known:
        best = min(known, key=lambda i: dev[i])
        axes.plot(epochs[best], dev[best], "o", color=OURS, label=f"best: {dev[best]:.4g} in epoch {epochs[best]:.0f}")
    axes.xaxis.set_major_locator(MaxNLocator(integer=True, min_n_ticks=1))
    axes.set_xlabel("epoch")
    axes.set_ylabel("loss (nats an event)", fontsize=9)
    axes.legend(frameon=False, fontsize=8)
