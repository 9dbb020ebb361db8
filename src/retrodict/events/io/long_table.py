"""The core of every table reader: columns of rows, one row an event, into a stream set.

A row with neither time nor type declares an empty stream, and needs a start and an end. Everything is done
on whole columns; only the ids become a Python tuple.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from typing import Any, NamedTuple, cast

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from retrodict import _limits
from retrodict.errors import DataError
from retrodict.events.io.arrow_columns import column_values, flatten, read_stream_ids, read_types
from retrodict.events.io.clock_times import refuse_clock_time
from retrodict.events.io.date_order import other_order
from retrodict.events.io.ragged import (
    Grouping,
    check_finite,
    check_inside,
    check_intervals,
    first_of_each,
    group,
    last_of_each,
)
from retrodict.events.io.request import ASSUMED, Places, Request
from retrodict.events.io.roles import RESERVED, Roles, extra_names, find_roles
from retrodict.events.io.time_column import (
    TimeColumn,
    check_same_kind,
    check_timezone,
    choose_axis,
    decoded,
    read_time_column,
    read_time_value,
    show_instant,
    to_mask,
)
from retrodict.events.results import RESULTS, marks, times_among
from retrodict.events.source import Source
from retrodict.events.stream_set import StreamSet

_MOSTLY = 0.5  # of the rows: a column that is empty in more of them is probably not the one that was meant


class _Bounds(NamedTuple):
    """Start and end of each stream [N]; ``assumed`` says in words where an assumed start or end comes from."""

    starts: NDArray[Any]
    ends: NDArray[Any]
    assumed: dict[str, str]


def read_table(
    table: Mapping[str, Any],
    num_rows: int,
    request: Request,
    kept: tuple[str, Any],
    numbers: NDArray[np.int64] | None = None,
) -> StreamSet:
    """A stream set from Arrow columns [R] (extra columns may be NumPy arrays); ``kept`` is the table to give back.

    ``numbers`` [R] are the rows' own, for messages, where these are some of the rows of a larger table.
    """
    check_timezone(request.timezone, "timezone=", request)
    if not num_rows and request.axis is None:
        raise request.error("there are no rows", "give a table with at least one event")
    _limits.check("rows", num_rows, f"the table has {num_rows:,} rows", file=request.file)
    roles = find_roles(table, request)
    codes, ids = np.zeros(num_rows, dtype=np.int64), cast(list[Hashable], [0])
    if roles.stream is not None:
        codes, ids = read_stream_ids(flatten(table[roles.stream]), f"column {roles.stream!r}", request)
    _limits.check("streams", len(ids), f"there are {len(ids):,} streams", file=request.file)
    places = Places(request.file, np.arange(1, num_rows + 1) if numbers is None else numbers, codes, ids)
    start = bound_column(table, roles.start, "start", request, places)
    end = bound_column(table, roles.end, "end", request, places)
    time = read_time_column(flatten(table[roles.time]), f"column {roles.time!r}", request, places)
    time = _settle_kind(time, start, end)
    if request.dates is not None and request.survey is None and request.settled is None:  # a table read at once
        wrong = other_order(decoded(flatten(table[roles.time])), request.dates)
        request.notices += [] if wrong is None else [f"{time.label}: {wrong}"]
    for bound in (start, end):
        if bound is not None:
            check_same_kind(time, bound, request)

    types_column = flatten(table[roles.type])
    no_type = to_mask(types_column.is_null(nan_is_null=True))
    events = _event_rows(time.missing, no_type, _imputed_rows(table, num_rows), places, roles)
    if len(events) < num_rows:
        types_column = types_column.take(events)
    at_events = places.take(events)
    times = time.values[events]
    if not time.calendar:
        check_finite(times, at_events)
    types, names = read_types(types_column, f"column {roles.type!r}", request, at_events)
    if request.survey is not None:
        request.survey.see_types(types_column, request)

    grouping = group(at_events.codes, times, len(ids), request)
    show: Callable[[Any], str] = show_instant(time.zone) if time.calendar else "{:.12g}".format
    bounds = _bounds(start, end, grouping, times, time.calendar, places, request)
    if not bounds.assumed:
        check_intervals(bounds.starts, bounds.ends, places, show)
    check_inside(times, bounds.starts, bounds.ends, at_events, show, bounds.assumed)
    check_intervals(bounds.starts, bounds.ends, places, show)

    times = grouping.apply(times)
    columns = [time] + [bound for bound in (start, end) if bound is not None]
    if request.survey is not None:
        request.survey.see_times(columns, times, grouping.offsets, bounds.ends - bounds.starts, request)
        request.survey.see_style(flatten(table[roles.time]), places.rows, request.dates)
    axis = choose_axis(columns, lambda: _gaps(times, grouping, bounds), request)
    convert = axis.from_instants if time.calendar else lambda values: values.astype(np.float64)
    names_of_extras = extra_names(roles, request)
    extras = {name: grouping.apply(_extra_values(table[own], events)) for name, own in names_of_extras.items()}
    if all(name in extras for name in RESULTS):  # empty where nothing was imputed, and then of no type
        empty = [name for name in RESULTS[1:] if all(value is None for value in extras[name])]
        extras |= {name: np.full(len(events), np.nan) for name in empty}
    for name in times_among(extras) if time.calendar and "imputed" in extras else ():
        column = read_time_column(_as_arrow(table[name]), f"column {name!r}", request, places)
        if column.calendar:
            moments = np.where(column.missing, np.nan, axis.from_instants(column.values))
            extras[name] = grouping.apply(moments[events])
    blank = np.setdiff1d(np.arange(num_rows), events, assume_unique=True)
    parts = {
        role: name if isinstance(name := getattr(roles, role), str) and name in table else None for role in RESERVED
    }
    source = Source(
        *kept,
        parts if request.dates is None else {"dates": request.dates, **parts},
        frozenset(bounds.assumed),
        names_of_extras,
        names,
        axis,
        tuple(ids),
        codes,
        blank,
        grouping.apply(events),
        file=request.file,
        numbers=numbers,
    )
    return StreamSet.trusted(
        convert(times),
        grouping.apply(types),
        grouping.offsets,
        convert(bounds.starts),
        convert(bounds.ends),
        ids,
        names,
        extras,
        axis,
        source,
    )


def _as_arrow(column: Any) -> pa.Array:
    """An extra column of times, which pandas may hold as Python objects."""
    if not isinstance(column, np.ndarray):
        return flatten(column)
    return pa.array([None if value is None else str(value) for value in column], pa.large_string())


def _imputed_rows(table: Mapping[str, Any], num_rows: int) -> NDArray[np.bool_]:
    """The rows [R] that imputation put into a table, where it says so."""
    if not all(name in table for name in RESULTS):
        return np.zeros(num_rows, dtype=bool)
    return marks(_extra_values(table["imputed"], np.arange(num_rows)))


def bound_column(
    table: Mapping[str, Any], source: Any, role: str, request: Request, places: Places
) -> TimeColumn | None:
    """The start or end of the streams, from a column or a value; None where nothing says it."""
    if source is None:
        return None
    if isinstance(source, str) and source in table:
        return read_time_column(flatten(table[source]), f"column {source!r}", request, places)
    refuse_clock_time(source, role, request)
    return read_time_value(source, f"{role}=", request)


def _settle_kind(time: TimeColumn, start: TimeColumn | None, end: TimeColumn | None) -> TimeColumn:
    """With no event at all, the start and end say whether times are numbers or dates."""
    if not time.missing.all():
        return time
    for bound in (start, end):
        if bound is not None and bound.calendar:
            zeros = np.zeros(len(time.values), dtype=np.int64)
            return time._replace(values=zeros, calendar=True, zone=time.zone or bound.zone)
    return time


def _event_rows(
    no_time: NDArray[np.bool_],
    no_type: NDArray[np.bool_],
    imputed: NDArray[np.bool_],
    places: Places,
    roles: Roles,
) -> NDArray[np.int64]:
    """The rows [E] that are events, counted from 0; a half-empty row is an error.

    A row that declares an empty stream may stay when events were ``imputed`` [R] into that stream.
    """

    def explain(row: int) -> tuple[str, str]:
        have, lack = ("type", "time") if no_time[row] else ("time", "type")
        problem = f"the row has a {have} but no {lack} (column {getattr(roles, lack)!r} is empty or NaN)"
        if np.mean(no_time if no_time[row] else no_type) > _MOSTLY:
            return problem, f"pass {lack}= with another column: most rows have nothing in this one"
        return problem, f"fill in the {lack} or drop the row; a row with neither declares an empty stream"

    places.refuse(no_time != no_type, explain)
    counts = np.bincount(places.codes[~no_time & ~imputed], minlength=len(places.ids))
    problem = "the row has neither time nor type, as if the stream were empty, but the stream has events"
    remedy = "drop the row, or fill in its time and type"
    places.refuse(no_time & (counts[places.codes] > 0), lambda _: (problem, remedy))
    return np.flatnonzero(~no_time)


def _bounds(
    start: TimeColumn | None,
    end: TimeColumn | None,
    grouping: Grouping,
    times: NDArray[Any],
    calendar: bool,
    places: Places,
    request: Request,
) -> _Bounds:
    empty = grouping.offsets[1:] == grouping.offsets[:-1]
    needs = end is None or (start is None and calendar)
    if needs:
        which = "end" if end is None else "start"
        problem = f"the row declares an empty stream, but nothing says where that {which}s"
        remedy = f"add a column {which!r}, or pass {which}="
        places.refuse(empty[places.codes], lambda _: (problem, remedy))
    ordered = grouping.apply(times)
    assumed = {}
    if start is not None:
        starts = per_stream(start, places, request)
    elif calendar:
        starts, assumed["start"] = first_of_each(ordered, grouping.offsets), "its first event"
    else:
        starts, assumed["start"] = np.zeros(len(places.ids)), "0"
    if end is not None:
        ends = per_stream(end, places, request)
    else:
        ends, assumed["end"] = last_of_each(ordered, grouping.offsets), "its last event"
    request.notices.extend(_notices(ordered, grouping.offsets, assumed))
    return _Bounds(starts, ends, assumed)


def _notices(times: NDArray[Any], offsets: NDArray[np.int64], assumed: Mapping[str, str]) -> list[str]:
    """Notices about the assumed bounds."""
    taken = [f"to {side} at {what}" for side, what in assumed.items() if what != "0"]
    if taken:
        sides = " and ".join(f"{side}=" for side, what in assumed.items() if what != "0")
        text = f"{ASSUMED} {' and '.join(taken)}, and nothing is imputed beyond"
        text += f"; pass {sides}, to the fit as well, if it was watched for longer"
    notices = [text] if taken else []
    if assumed.get("start") == "0" and len(times):
        filled = offsets[1:] > offsets[:-1]
        first, last = first_of_each(times, offsets)[filled], last_of_each(times, offsets)[filled]
        if first.min() > 10 * (last - first).max() > 0:  # such as seconds since 1970
            notices.append(
                f"{ASSUMED} to start at 0, but the first event of all is at {first.min():.12g}; "
                "pass start= unless all of them were watched from 0"
            )
    return notices


def per_stream(bound: TimeColumn, places: Places, request: Request) -> NDArray[Any]:
    """One value for each stream [N], from a column that must be constant within each, or a single value."""
    if bound.constant:
        return np.repeat(bound.values, len(places.ids))
    remedy = "give one value for each stream, the same on all of its rows, or pass another column or value"
    places.refuse(bound.missing, lambda _: (f"{bound.label} is empty", remedy))
    first = np.empty(len(places.ids), dtype=np.int64)
    first[places.codes[::-1]] = np.arange(len(places.codes))[::-1]
    values = bound.values[first]

    def explain(row: int) -> tuple[str, str]:
        earlier = int(places.rows[first[places.codes[row]]])
        parts = (repr(request.stream or "stream"), bound.label.removeprefix("column "))
        shorter = " + ' ' + ".join(f"table[{name}].astype(str)" for name in parts)
        return f"{bound.label} differs from its value in row {earlier}", (
            f"{remedy}. Or make shorter streams, such as each shift of a machine, with pandas:\n"
            f'    table["part"] = {shorter}\n'
            'Then pass stream="part"'
        )

    places.refuse(bound.values != values[places.codes], explain)
    return values


def _gaps(times: NDArray[Any], grouping: Grouping, bounds: _Bounds) -> NDArray[Any]:
    inside = np.ones(max(len(times) - 1, 0), dtype=bool)
    borders = grouping.offsets[1:-1]
    inside[borders[(borders > 0) & (borders < len(times))] - 1] = False
    gaps = np.diff(times)[inside]
    return gaps if (gaps > 0).any() else bounds.ends - bounds.starts


def _extra_values(column: Any, events: NDArray[np.int64]) -> NDArray[Any]:
    """The values [E] at events; those of the rows of empty streams go first, as they are all null."""
    if isinstance(column, np.ndarray):
        return column[events]
    column = flatten(column)
    try:
        return column_values(column.take(events) if len(events) < len(column) else column)
    except (OverflowError, ValueError) as error:  # Python's dates end in the year 9999
        raise DataError(
            f"a column of {column.type} holds values beyond what Python knows ({error})",
            remedy="leave the column out, or convert it to text",
        ) from error
