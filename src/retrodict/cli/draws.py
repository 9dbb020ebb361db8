"""Folders of draws, as commands find them: beside the table that they belong to, with the cost it was decoded at."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from retrodict.errors import DataError
from retrodict.events.plain import read_json

if TYPE_CHECKING:
    from retrodict.cli.common import Columns
    from retrodict.events.stream_set import StreamSet
    from retrodict.smc.posterior import Posterior


_MOST = 1e300  # a cost


class Decoded(NamedTuple):
    """The cost at which 'impute' decoded, and its unit; None is unknown."""

    cost: float | None = None
    unit: str | None = None


def beside(table: Path) -> Path:
    """Where 'impute' keeps the draws of a table that it writes."""
    return table.with_name(table.name + ".draws")


def refuse_table(draws: Path) -> None:
    """Refuse a table where its draws were meant."""
    if not draws.is_dir() and beside(draws).is_dir():
        raise DataError(
            "this is not a folder of draws", file=draws, remedy=f"give its draws (did you mean {beside(draws)}?)"
        )


def keep_decoded(posterior: Posterior, price: float, columns: Columns) -> None:
    """Note the cost of decoding (in units of the streams) among the facts that are saved with a posterior."""
    axis, model = posterior.observed.axis, posterior.model
    unit = columns["unit"] or axis.unit or (None if model is None else model.time_unit)
    posterior.about |= {"cost": price / columns.units_in(axis), "unit": unit}


def decoded(draws: Path) -> Decoded:
    """What a folder of draws knows of how its table was decoded; nothing where there is none, or it is damaged."""
    try:
        facts = read_json(draws / "posterior.json")
        about = facts.get("about") or {}
        cost, unit = about.get("cost"), about.get("unit") or facts.get("unit")
    except (OSError, ValueError, AttributeError):
        return Decoded()
    if not isinstance(cost, int | float) or isinstance(cost, bool) or not 0 < cost < _MOST:
        cost = None
    return Decoded(None if cost is None else float(cost), unit if isinstance(unit, str) else None)


def in_unit(known: Decoded, streams: StreamSet, unit: str | None) -> tuple[Decoded, StreamSet]:
    """The cost and the streams in one unit: the one given, else that of the draws, else that of the streams.

    Where the cost cannot be told in that unit, it is dropped.
    """
    from retrodict.events.time_axis import TimeAxis

    own, wanted = TimeAxis(known.unit), TimeAxis(unit or known.unit or streams.axis.unit)
    if known.cost is None or known.unit == wanted.unit:
        cost = known.cost
    else:
        cost = None if None in (own.scale, wanted.scale) else known.cost * own.units_in(wanted)
    if wanted.unit != streams.axis.unit and None not in (wanted.scale, streams.axis.scale):
        assert wanted.unit is not None
        streams = streams.with_unit(wanted.unit)
    return Decoded(cost, wanted.unit), streams
