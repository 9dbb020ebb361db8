"""Columns of times: numbers, datetimes with or without a zone, or text that reads as either.

Datetimes are held as instants, integer nanoseconds since 1970-01-01 UTC, so that summer time and time
zones are settled once, here. Naive datetimes are counted as if they were UTC.
"""

from __future__ import annotations

import datetime
import re
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from retrodict.errors import DataError, show
from retrodict.events.io.date_forms import advice_without_form, date_form
from retrodict.events.io.request import Places, Request
from retrodict.events.time_axis import SECONDS, TimeAxis

# After the time of day: Z, +01, +0100 or +01:00. (RE2, as Arrow has it.)
_OFFSET = r"[T ]\d\d.*?(?P<offset>Z|[+-]\d\d(?::?\d\d)?)$"
_ISO = "write it as a number or in ISO 8601, such as 2013-01-01T08:30:00 or 2013-01-01T08:30:00+01:00"
_ONE_ZONE = (
    "pass the zone of the place where events happened, whose clocks they follow, such as "
    'timezone="America/New_York" (timezone="UTC" where there is none): times with an offset are converted to it, '
    "times without one are taken to be in it"
)
_DAY = 86_400_000_000_000
_NUMBERS = (pa.types.is_integer, pa.types.is_floating, pa.types.is_decimal, pa.types.is_null)
_Explain = Callable[[int], tuple[str, str]]  # the problem and the remedy for a row


class TimeColumn(NamedTuple):
    """``values`` [R]: float64 numbers, or int64 instants when ``calendar``; ``missing`` [R].

    ``zone`` is the time zone of instants, None for naive ones; ``label`` names the column in messages.
    ``constant``: the one value [1] holds for every stream.
    """

    values: NDArray[Any]
    missing: NDArray[np.bool_]
    calendar: bool
    zone: str | None
    label: str
    constant: bool = False


class _Source(NamedTuple):
    """A column (with the ``places`` of its rows) or an argument that holds times; ``label`` names it in messages.

    ``is_one`` says that the argument cannot name a column instead.
    """

    label: str
    request: Request
    places: Places | None = None
    is_one: bool = False

    def error(self, row: int, problem: str, remedy: str) -> DataError:
        """An error about a row counted from 0, or about the argument."""
        return self.places.error(row, problem, remedy) if self.places else self.request.error(problem, remedy)

    def convert(self, column: pa.Array, change: Callable[[pa.Array], pa.Array], explain: _Explain) -> pa.Array:
        """``change(column)``, or an error about the first row that cannot be changed, as ``explain`` words it."""
        try:
            return change(column)
        except pa.ArrowInvalid as error:
            low, high = 0, len(column)  # the first bad row lies in [low, high)
            while high - low > 1:
                middle = (low + high) // 2
                try:
                    change(column[low:middle])
                    low = middle
                except pa.ArrowInvalid:
                    high = middle
            problem, remedy = explain(low)
            raise self.error(low, f"{self.label}: {problem}", remedy) from error

    def numbers(self, column: pa.Array, explain: _Explain) -> TimeColumn:
        """Plain numbers, from a column that can be cast to float64."""
        floats = self.convert(column, lambda part: part.cast(pa.float64()), explain)
        values = floats.fill_null(np.nan).to_numpy(zero_copy_only=False)
        return TimeColumn(values, to_mask(floats.is_null(nan_is_null=True)), False, None, self.label)

    def instants(self, column: pa.Array, zone: str | None) -> TimeColumn:
        """Timestamps in nanoseconds as integers."""
        values = column.cast(pa.int64()).fill_null(0).to_numpy(zero_copy_only=False)
        return TimeColumn(values, to_mask(column.is_null()), True, zone, self.label)


def read_time_column(column: pa.Array, label: str, request: Request, places: Places) -> TimeColumn:
    """The times in an Arrow array [R], of any type that can stand for times."""
    column = decoded(column)
    kind, source = column.type, _Source(label, request, places)
    if pa.types.is_date(kind):
        return _read_timestamps(column.cast(pa.timestamp("ms")), source)
    if pa.types.is_timestamp(kind):
        return _read_timestamps(column, source)
    if pa.types.is_large_string(kind) or pa.types.is_string(kind):
        return _read_text(pc.utf8_trim_whitespace(column), source)
    if pa.types.is_duration(kind):
        remedy = "convert them to numbers, for example with .dt.total_seconds(), and pass unit='second'"
        raise request.error(f"{label} holds durations", remedy)
    if not any(test(kind) for test in _NUMBERS):
        raise request.error(f"{label} holds {kind} values, which cannot be times", "give numbers, datetimes or text")
    remedy = "convert counts of nanoseconds to datetimes, or subtract a common start"
    return source.numbers(column, lambda row: (f"{column[row]} has more digits than a float64 can hold", remedy))


def read_time_value(value: Any, label: str, request: Request, is_one: bool = False) -> TimeColumn:
    """One time given as an argument: a number, a datetime, or text; a column [1].

    ``is_one`` says that the argument cannot name a column instead.
    """
    if isinstance(value, int | float | np.number) and not isinstance(value, bool):
        return TimeColumn(np.array([float(value)]), np.array([False]), False, None, label, constant=True)
    if isinstance(value, datetime.datetime | datetime.date):
        value, request = value.isoformat(), replace(request, dates=None)
    elif isinstance(value, np.datetime64):
        value, request = str(value), replace(request, dates=None)
    elif not isinstance(value, str):
        problem = f"{label} is {value!r}, which is neither a column nor a time"
        raise request.error(problem, "give the name of a column, a number or a datetime")
    return _read_text(pa.array([value], pa.string()), _Source(label, request, is_one=is_one))._replace(constant=True)


def _read_timestamps(column: pa.Array, source: _Source) -> TimeColumn:
    zone, asked = column.type.tz, source.request.timezone
    check_timezone(zone, f"the time zone of {source.label}", source.request)

    def explain(row: int) -> tuple[str, str]:
        when = str(column[row : row + 1].to_numpy(zero_copy_only=False)[0]).replace("T", " ")  # of any year
        return f"{when} lies outside the years 1678 to 2261", "correct the date; use plain numbers for other epochs"

    instants = source.convert(column, lambda part: part.cast(pa.timestamp("ns", zone)), explain)
    if zone is None and asked is not None:
        return source.instants(_localise(instants, source, asked), asked)
    return source.instants(instants, zone)


def _read_text(column: pa.Array, source: _Source) -> TimeColumn:
    """Numbers or datetimes, in ISO 8601 unless ``dates`` says how they are written; the first value says which."""
    written = column

    def explain(row: int) -> tuple[str, str]:
        value = written[row].as_py()
        if source.request.dates is not None:
            problem, remedy = date_form(source.request.dates).advice(value)
            return f"cannot read {show(value)} {problem}", remedy
        remedy = _ISO if source.places or source.is_one else f"{_ISO}, or name a column, where streams differ"
        advice = advice_without_form(value) if source.places else None
        return f"cannot read {show(value)} as a time", remedy if advice is None else f"{advice}; or {remedy}"

    first = column.drop_null()[:1]
    if not len(first) or (source.request.dates is None and _is_number(first)):
        return source.numbers(column, explain)
    if source.request.dates is not None:
        column = date_form(source.request.dates).to_iso(column)
        lost = to_mask(pc.and_(column.is_null(), written.is_valid()))
        if lost.any():
            problem, remedy = explain(row := int(np.argmax(lost)))
            raise source.error(row, f"{source.label}: {problem}", remedy)
    offsets = pc.struct_field(pc.extract_regex(column, _OFFSET), "offset")
    zoned, utc = offsets.is_valid(), pa.timestamp("ns", "UTC")
    aware = source.convert(pc.if_else(zoned, column, None), lambda part: part.cast(utc), explain)
    naive = source.convert(pc.if_else(zoned, None, column), lambda part: part.cast(pa.timestamp("ns")), explain)
    zone = source.request.timezone or _common_zone(written, offsets, source)
    if zone is not None:
        naive = _localise(naive, source, zone)
    return source.instants(pc.coalesce(aware, naive.cast(pa.int64()).cast(utc)), zone)


def _is_number(text: pa.Array) -> bool:
    try:
        text.cast(pa.float64())
    except pa.ArrowInvalid:
        return False
    return True


def _common_zone(column: pa.Array, offsets: pa.Array, source: _Source) -> str | None:
    """The one offset that every value has, as a zone; None when none has any."""
    written = pc.if_else(column.is_null(), None, offsets.fill_null("")).dictionary_encode()
    zones = [_zone_of_offset(text) for text in written.dictionary.to_pylist()]
    if len(set(zones)) == 1:
        return zones[0]
    other = next(i for i, zone in enumerate(zones) if zone != zones[0])
    row = int(pc.index(written.indices, pa.scalar(other, written.indices.type)).as_py())
    one, two = (zone or "no time zone" for zone in (zones[0], zones[other]))
    problem = f"{source.label} mixes times in {one} with times in {two} ({show(column[row].as_py())})"
    raise source.error(row, problem, _ONE_ZONE)


def _zone_of_offset(text: str) -> str | None:
    if not text:
        return None
    digits = re.sub(r"\D", "", text).ljust(4, "0")
    return "UTC" if text == "Z" or digits == "0000" else f"{text[0]}{digits[:2]}:{digits[2:]}"


def _localise(naive: pa.Array, source: _Source, zone: str) -> pa.Array:
    def explain(row: int) -> tuple[str, str]:
        what = "never happened"
        with suppress(pa.ArrowInvalid):
            pc.assume_timezone(naive[row : row + 1], zone, ambiguous="earliest")
            what = "happened twice"
        remedy = "give times in UTC or with an offset, such as 2013-11-03T01:30:00-04:00"
        return f"{naive[row]} {what} in {zone} (the clocks were changed)", remedy

    return source.convert(naive, lambda part: pc.assume_timezone(part, zone), explain)


def decoded(column: pa.Array) -> pa.Array:
    """The values themselves where an array is dictionary-encoded."""
    return column.cast(column.type.value_type) if pa.types.is_dictionary(column.type) else column


def to_mask(flags: pa.Array) -> NDArray[np.bool_]:
    """An Arrow array of booleans without nulls, for NumPy."""
    mask: NDArray[np.bool_] = flags.to_numpy(zero_copy_only=False)
    return mask


def check_timezone(zone: str | None, label: str, request: Request) -> None:
    """Raise unless ``zone`` is None, the name of a time zone, or an offset such as "+01:00"."""
    if zone is None:
        return
    try:
        pc.assume_timezone(pa.array([0], pa.timestamp("ns")), zone)
    except pa.ArrowInvalid as error:
        remedy = 'give a name such as "UTC" or "Europe/Berlin", or an offset such as "+01:00"'
        raise request.error(f"{label} is {zone!r}, which is not a known time zone", remedy) from error


def check_same_kind(time: TimeColumn, bound: TimeColumn, request: Request) -> None:
    """Raise when a start or end cannot be compared with the times."""
    if time.missing.all() or bound.missing.all():
        return
    if time.calendar != bound.calendar:
        side = ("datetimes", "numbers") if time.calendar else ("numbers", "datetimes")
        remedy = f"make both {side[0]}, or pass another column or value for {bound.label}"
        raise request.error(f"{time.label} holds {side[0]}, but {bound.label} holds {side[1]}", remedy)
    if (time.zone is None) != (bound.zone is None):
        zones = [column.zone or "no time zone" for column in (time, bound)]
        raise request.error(
            f"{time.label} has times in {zones[0]}, but {bound.label} has times in {zones[1]}", _ONE_ZONE
        )


def choose_axis(columns: list[TimeColumn], gaps: Callable[[], NDArray[Any]], request: Request) -> TimeAxis:
    """The time axis for these columns (times first): as asked, as recorded, or chosen from the data.

    ``gaps`` gives the nanoseconds between neighbouring events, or failing those the streams' lengths.
    """
    if request.settled is not None:
        return request.settled
    recorded = request.axis or TimeAxis()
    if not columns[0].calendar:
        for name in ("timezone", "dates"):
            if getattr(request, name) is not None:
                problem = f"{name}= was given, but {columns[0].label} holds numbers"
                raise request.error(problem, f"drop {name}=, or give datetimes")
        return TimeAxis(request.unit or (None if recorded.is_calendar else recorded.unit))
    present = [column.values[~column.missing] for column in columns]
    earliest = min((int(values.min()) for values in present if len(values)), default=0)
    latest = max((int(values.max()) for values in present if len(values)), default=0)
    origin = recorded.origin if recorded.origin is not None else earliest // _DAY * _DAY
    if max(latest - origin, origin - earliest) >= 2**63:
        raise request.error(f"{columns[0].label} spans more than 292 years", "correct the dates, or use plain numbers")
    zone = request.timezone or (recorded.timezone if recorded.is_calendar else None) or columns[0].zone
    unit = request.unit or (recorded.unit if recorded.is_calendar else None) or _unit_for(gaps())
    if unit not in SECONDS:
        problem = f"unit {unit!r} is not a length of time that datetimes can be counted in"
        raise request.error(problem, f"use one of {', '.join(SECONDS)}")
    return TimeAxis(unit, origin, zone)


def _unit_for(gaps: NDArray[Any]) -> str:
    """The largest of second, minute, hour and day that is not longer than the median gap."""
    gaps = gaps[gaps > 0]
    seconds = float(np.median(gaps)) / 1e9 if len(gaps) else 0.0
    return next((unit for unit in ("day", "hour", "minute") if seconds >= SECONDS[unit]), "second")


def show_instant(zone: str | None) -> Callable[[Any], str]:
    """How an instant is written in messages."""
    return lambda instant: str(pa.scalar(int(instant), pa.timestamp("ns", zone))).removesuffix(".000000000")
