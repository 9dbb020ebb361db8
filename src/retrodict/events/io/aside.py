"""Tables of known layouts, in which some rows are no events: these are set aside, and given back where they stood.

What is set aside: rows of MEDS without a time, births and deaths, codes that were not chosen, and whatever lies after a
death; events of a process log in transitions that were not chosen. Every dated row but a birth says that its stream
was watched: a stream lives from the first to the last of them unless ``start`` and ``end`` say otherwise.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from retrodict import _limits
from retrodict.events.io.arrow_columns import flatten, read_stream_ids
from retrodict.events.io.choose_events import BIRTH, Mask, Selection, choose_events
from retrodict.events.io.long_table import bound_column, per_stream, read_table
from retrodict.events.io.request import ASSUMED, Places, Request
from retrodict.events.io.roles import RESERVED, find_roles
from retrodict.events.io.time_column import TimeColumn, check_same_kind, check_timezone, read_time_column
from retrodict.events.stream_set import StreamSet


class _Bounds(NamedTuple):
    """The first and the last moment of each stream [N], and which of the two nobody said."""

    starts: NDArray[Any]
    ends: NDArray[Any]
    assumed: frozenset[str]


def read_layout(columns: Mapping[str, Any], num_rows: int, request: Request, kept: tuple[str, Any]) -> StreamSet:
    """A stream set from the columns of a table that ``recognise`` has looked at."""
    if request.layout is None or not num_rows:
        return read_table(columns, num_rows, request, kept)
    _limits.check("rows", num_rows, f"the table has {num_rows:,} rows", file=request.file)
    check_timezone(request.timezone, "timezone=", request)
    from_birth = request.layout == "meds" and request.start == BIRTH
    request = replace(request, start=None) if from_birth else request
    roles = find_roles(columns, request)
    assert roles.stream is not None
    codes, ids = read_stream_ids(flatten(columns[roles.stream]), f"column {roles.stream!r}", request)
    places = Places(request.file, np.arange(1, num_rows + 1), codes, ids)
    time = read_time_column(flatten(columns[roles.time]), f"column {roles.time!r}", request, places)
    chosen = choose_events(columns, request)
    given = {side: bound_column(columns, getattr(roles, side), side, request, places) for side in ("start", "end")}
    bounds = _find_bounds(time, chosen, given, from_birth, places, request)
    kept_rows = _inside(time, chosen, bounds, from_birth, places, request)

    declares = np.zeros(num_rows, dtype=bool)
    lacking = np.setdiff1d(codes, codes[kept_rows])
    first = np.zeros(len(ids), dtype=np.int64)
    first[codes[::-1]] = np.arange(num_rows)[::-1]
    declares[first[lacking]] = True
    rows = np.flatnonzero(kept_rows | declares)
    parts = {name: getattr(roles, name) for name in ("start", "end")}
    table = {name: column for name, column in columns.items() if name not in parts.values()}
    nothing = pa.array(declares)
    table[roles.time] = pc.if_else(nothing, None, flatten(table[roles.time]))
    table[roles.type] = pc.if_else(nothing, None, chosen.types)
    table = {name: _take(column, rows) for name, column in table.items()}
    for side, values in (("start", bounds.starts), ("end", bounds.ends)):
        moments = values[codes[rows]]
        table[side] = pa.array(moments, pa.timestamp("ns", time.zone)) if time.calendar else pa.array(moments)
    streams = read_table(table, len(rows), replace(request, start=None, end=None), kept, rows + 1)
    return _give_all_back(streams, streams.source, codes, ids, rows, bounds, time, parts, columns, chosen)


def _give_all_back(
    streams: StreamSet,
    source: Any,
    codes: NDArray[np.int64],
    ids: list[Any],
    rows: NDArray[np.int64],
    bounds: _Bounds,
    time: TimeColumn,
    parts: Mapping[str, Any],
    columns: Mapping[str, Any],
    chosen: Selection,
) -> StreamSet:
    """The streams with a source that has every row of the table, set aside or not."""
    when = streams.axis.from_instants(time.values) if time.calendar else time.values
    own = rows[source.rows]
    aside = np.setdiff1d(np.arange(len(codes)), own)
    names = {role: source.names[role] for role in (*RESERVED, "dates") if role in source.names}
    names |= {side: name if isinstance(name, str) and name in columns else None for side, name in parts.items()}
    full = replace(
        source,
        names={**names, **chosen.names},
        assumed=bounds.assumed,
        ids=tuple(ids),
        codes=codes,
        blank=aside,
        rows=own,
        when=np.where(time.missing, np.nan, when) if len(aside) else None,
        numbers=None,
    )
    return streams.replace(source=full)


def _take(column: Any, rows: NDArray[np.int64]) -> Any:
    return column[rows] if isinstance(column, np.ndarray) else column.take(pa.array(rows))


def _find_bounds(
    time: TimeColumn,
    chosen: Selection,
    given: Mapping[str, TimeColumn | None],
    from_birth: bool,
    places: Places,
    request: Request,
) -> _Bounds:
    """Where each stream starts and ends: as given; else at its first and last dated row, and never after a death."""
    number = len(places.ids)
    for bound in given.values():
        if bound is not None:
            check_same_kind(time, bound, request)
    values = time.values if not time.missing.all() else _zeros_like(time, given)
    low = np.iinfo(np.int64).min if values.dtype.kind == "i" else -np.inf
    high = np.iinfo(np.int64).max if values.dtype.kind == "i" else np.inf
    death = _earliest(values, chosen.death & ~time.missing, places.codes, np.full(number, high, values.dtype))
    watched = ~time.missing & ~chosen.birth & (values <= death[places.codes])
    first = _earliest(values, watched, places.codes, np.full(number, high, values.dtype))
    last = np.full(number, low, values.dtype)
    np.maximum.at(last, places.codes[watched], values[watched])
    bare = first > last
    starts = None if given["start"] is None else per_stream(given["start"], places, request).astype(values.dtype)
    ends = None if given["end"] is None else per_stream(given["end"], places, request).astype(values.dtype)
    if ends is not None:
        ends = np.minimum(ends, death)
    born = _earliest(values, chosen.birth & ~time.missing, places.codes, np.full(number, high, values.dtype))
    anywhere = first[~bare].min() if (~bare).any() else values.dtype.type(0)
    somewhere = np.full(number, anywhere, values.dtype)
    if from_birth:
        starts = np.where(born < high, born, np.where(bare, somewhere, first))
    assumed = frozenset(side for side, said in (("start", starts), ("end", ends)) if said is None)
    lost = bare & ((ends if ends is not None else somewhere) <= (starts if starts is not None else somewhere))
    request.notices.extend(_notices(assumed, int(lost.sum()), bool((death < high).any()), from_birth, request.layout))
    if starts is None:
        starts = np.where(bare, somewhere if ends is None else ends, first)
    if ends is None:
        ends = np.where(bare, starts, np.where(death < high, death, last))
    return _Bounds(starts, ends, assumed)


def _zeros_like(time: TimeColumn, given: Mapping[str, TimeColumn | None]) -> NDArray[Any]:
    """With no time at all, the start and end say whether times are numbers or dates."""
    dated = any(bound is not None and bound.calendar for bound in given.values())
    return np.zeros(len(time.values), np.int64 if dated else time.values.dtype)


def _earliest(values: NDArray[Any], mask: Mask, codes: NDArray[np.int64], none: NDArray[Any]) -> NDArray[Any]:
    np.minimum.at(none, codes[mask], values[mask])
    return none


def _notices(assumed: frozenset[str], lost: int, deaths: bool, from_birth: bool, layout: str | None) -> list[str]:
    what = {"start": "to start at its first dated row", "end": "to end at its last dated row"}
    if layout == "xes":
        what = {"start": "to start at its first event", "end": "to end at its last event"}
    if deaths:
        what["end"] = "to end at its death, else at its last dated row"
    found = []
    taken = [what[side] for side in ("start", "end") if side in assumed]
    if taken:
        sides = " and ".join(f"{side}=" for side in ("start", "end") if side in assumed)
        text = f"{ASSUMED} {' and '.join(taken)}, and nothing is imputed beyond"
        found.append(f"{text}; pass {sides}, to the fit as well, if it was watched for longer")
    if lost and not from_birth:
        streams, kept = ("1 stream has", "it is") if lost == 1 else (f"{lost:,} streams have", "they are")
        found.append(
            f"{streams} no dated event and nothing says when it was watched: {kept} kept, with no length; pass start= "
            "and end= if the streams were watched and nothing happened"
        )
    return found


def _inside(
    time: TimeColumn,
    chosen: Selection,
    bounds: _Bounds,
    from_birth: bool,
    places: Places,
    request: Request,
) -> Mask:
    """The rows [R] that are events: those after a death, or before a birth that is the start, are none."""
    events = chosen.events & ~(time.missing if request.layout == "meds" else np.zeros(len(time.missing), bool))
    outside = np.zeros(len(events), dtype=bool)
    if chosen.death.any():
        death = np.full(len(places.ids), np.inf if time.values.dtype.kind == "f" else np.iinfo(np.int64).max)
        death = _earliest(time.values, chosen.death & ~time.missing, places.codes, death.astype(time.values.dtype))
        outside |= events & ~time.missing & (time.values > death[places.codes])
    if from_birth:
        outside |= events & ~time.missing & (time.values < bounds.starts[places.codes])
    if outside.any():
        number, streams = int(outside.sum()), len(np.unique(places.codes[outside]))
        what = "after the death or before the birth" if from_birth else "after the death"
        request.notices.append(
            f"{number:,} row{'s' if number > 1 else ''} {what} of {streams:,} subject{'s' if streams > 1 else ''} "
            "were set aside: they are no events, and are given back"
        )
    return events & ~outside
