"""Folders of draws, as commands find them: beside the table that they belong to, with the cost it was decoded at."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from retrodict.errors import DataError
from retrodict.events.plain import read_json

if TYPE_CHECKING:
    from retrodict.cli.common import Columns
    from retrodict.events.stream_set import StreamSet
    from retrodict.smc.posterior import Posterior


_MOST = 1e300  # a cost


class Decoded(NamedTuple):
    """The cost of decoding, its unit, and the name of the draws that say so; None is unknown."""

    cost: float | None = None
    unit: str | None = None
    draws: str | None = None


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
    posterior.about |= _noted(posterior, price, columns)


def keep_another(posterior: Posterior, price: float, columns: Columns, draws: Path, table: Path) -> None:
    """Note in the draws at which cost another table was decoded from them; draws that cannot be written stay."""
    from retrodict.jobs.folder import digest_of
    from retrodict.smc.posterior_folder import update_about

    noted = _noted(posterior, price, columns) | {"digest": digest_of(table)}
    posterior.about["decoded"] = (posterior.about.get("decoded") or {}) | {table.name: noted}
    with suppress(OSError, DataError):
        update_about(draws, posterior.about)


def _noted(posterior: Posterior, price: float, columns: Columns) -> dict[str, Any]:
    axis, model = posterior.observed.axis, posterior.model
    unit = columns["unit"] or axis.unit or (None if model is None else model.time_unit)
    return {"cost": price / columns.units_in(axis), "unit": unit}


def decoded(table: Path) -> Decoded:
    """How a table was decoded, from its draws, or from those beside it that say so of this very file."""
    if beside(table).exists():
        about, unit = _facts(beside(table))
        return _checked(about, unit, beside(table).name)
    for draws in sorted(table.parent.glob("*.draws")):
        about, unit = _facts(draws)
        others = about.get("decoded")
        noted = others.get(table.name) if isinstance(others, dict) else None
        if isinstance(noted, dict):
            from retrodict.jobs.folder import digest_of

            if noted.get("digest") == digest_of(table):
                return _checked(noted, unit, draws.name)
    return Decoded()


def _facts(draws: Path) -> tuple[dict[str, Any], Any]:
    """What a folder of draws knows of itself, and its unit; nothing where there is none, or it is damaged."""
    try:
        facts = read_json(draws / "posterior.json")
        about, unit = facts.get("about"), facts.get("unit")
    except (OSError, ValueError, AttributeError):
        return {}, None
    return about if isinstance(about, dict) else {}, unit


def _checked(about: dict[str, Any], unit: Any, draws: str) -> Decoded:
    cost, unit = about.get("cost"), about.get("unit") or unit
    if not isinstance(cost, int | float) or isinstance(cost, bool) or not 0 < cost < _MOST:
        cost = None
    return Decoded(None if cost is None else float(cost), unit if isinstance(unit, str) else None, draws)


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
    return Decoded(cost, wanted.unit, known.draws), streams
