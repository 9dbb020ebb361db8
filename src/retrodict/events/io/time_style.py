"""How a table writes its times, so that imputed times are written in the same way."""

from __future__ import annotations

import re
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from retrodict.events.io.date_forms import date_form
from retrodict.events.io.dates_out import fitting, make_example, offset_of, short_parts, write_like
from retrodict.events.io.time_column import decoded
from retrodict.events.time_axis import TimeAxis

_DAY, _MINUTE, _SECOND = 86_400 * 10**9, 60 * 10**9, 10**9
_STEPS = (_DAY, _MINUTE, _SECOND, 10**6, 10**3, 1)  # nanoseconds: each is a multiple of the next
_UNITS = {"s": _SECOND, "ms": 10**6, "us": 10**3, "ns": 1}
_FINER = (r"\.\d{6}\d*[1-9]", r"\.\d{3}\d*[1-9]", r"\.\d*[1-9]", r":\d\d:\d*[1-9]")  # than 1000, 10**6 ...
_MIDNIGHT = r"^\s*\d{4}-\d\d-\d\d([T ]00:00(:00(\.0*)?)?)?\s*$"
_WRITTEN = re.compile(r"^\s*\d{4}-\d\d-\d\d(?P<between>[T ])?.*?(?P<offset>Z|[+-]\d\d(?::?\d\d)?)?\s*$")
_SECONDS = re.compile(r"\d\d:\d\d:\d\d")


class TimeStyle(NamedTuple):
    """Times as Arrow values of ``type``: numbers, timestamps, dates or text, from times on ``axis``.

    Text has ``between`` date and time of day, and the offset as ``offset`` shows it ("" for none). It ends without
    ``left_out``, where a table has no seconds or no time of day. Text of the form ``dates`` is like the ``example``.
    """

    type: pa.DataType
    axis: TimeAxis
    between: str = "T"
    offset: str = ""
    step: int = _SECOND  # nanoseconds: times are rounded down to it, as fine as those of the table and no finer
    left_out: str = ""
    dates: str | None = None
    example: str = ""

    def write(
        self, times: NDArray[np.float64], axis: TimeAxis, low: NDArray[np.float64], high: NDArray[np.float64]
    ) -> pa.Array:
        """Times [E] on the set's ``axis``, within [low, high] also after rounding; NaN is null.

        What lies on the steps stays, and rounding down keeps the order of all others. A stream so short that no step is
        in it has times to the microsecond, where the type can hold them.
        """
        missing = np.isnan(times)
        if not self.axis.is_calendar:
            numbers = pa.array(axis.convert(times, self.axis), pa.float64(), mask=missing)
            return numbers.cast(self.type) if _is_text(self.type) else numbers
        instants, first, last = (axis.to_instants(np.where(missing, 0.0, each)) for each in (times, low, high))
        least, most = self._down(first, up=True), self._down(last)
        exact = instants // min(self.step, 1000) * min(self.step, 1000)
        instants = np.where(least > most, exact, np.maximum(self._down(instants), least))
        moments = pa.array(instants, pa.timestamp("ns", "UTC"), mask=missing)
        return self._as_text(moments) if _is_text(self.type) else self._as_type(moments)

    def _down(self, instants: NDArray[np.int64], up: bool = False) -> NDArray[np.int64]:
        """The last step of the clock on the wall that is not after each instant, or (``up``) the first not before."""
        local = self._local(pa.array(instants, pa.timestamp("ns", "UTC")))
        past = local.cast(pa.int64()).to_numpy(zero_copy_only=False) % self.step
        move = np.where(up & (past > 0), self.step, 0) - past
        if self.step < _DAY:
            return instants + move
        days = pa.array(local.cast(pa.int64()).to_numpy(zero_copy_only=False) + move).cast(pa.timestamp("ns"))
        moments = pc.assume_timezone(days, self._zone, ambiguous="earliest", nonexistent="latest")
        return moments.cast(pa.int64()).to_numpy(zero_copy_only=False)

    @property
    def _zone(self) -> str:
        """The zone of the clock on the wall; naive dates count as UTC."""
        return getattr(self.type, "tz", None) or self.axis.timezone or "UTC"

    def _as_type(self, moments: pa.Array) -> pa.Array:
        zone = getattr(self.type, "tz", None)
        if zone is None:
            moments = self._local(moments)
            return moments.cast(self.type, safe=False)
        return moments.cast(pa.timestamp("ns", zone)).cast(self.type, safe=False)

    def _local(self, moments: pa.Array) -> pa.Array:
        """What the clock on the wall shows."""
        return pc.local_timestamp(moments.cast(pa.timestamp("ns", self._zone)))

    def _as_text(self, moments: pa.Array) -> pa.Array:
        zone = self.axis.timezone or "UTC"
        local = self._local(moments)
        text = self._iso(local) if self.dates is None else write_like(date_form(self.dates), self.example, local)
        offset = pc.strftime(moments.cast(pa.timestamp("ns", zone)), format="%z")
        if self.offset == "Z":
            offset = pc.if_else(pc.equal(offset, "+0000"), "Z", _with_colon(offset))
        elif len(self.offset) == 3:
            offset = pc.if_else(pc.ends_with(offset, "00"), pc.utf8_slice_codeunits(offset, 0, 3), _with_colon(offset))
        elif len(self.offset) != 5:
            offset = _with_colon(offset)
        if not self.offset:
            twice = pc.not_equal(
                pc.assume_timezone(local, zone, ambiguous="earliest"),
                pc.assume_timezone(local, zone, ambiguous="latest"),
            )  # when clocks are put back, the hour alone does not say which of two instants it is
            offset = pc.if_else(twice, offset, "")
        return pc.binary_join_element_wise(text.cast(pa.string()), offset, "").cast(self.type)

    def _iso(self, local: pa.Array) -> pa.Array:
        moments = local.cast(pa.timestamp("us" if self.step > 1 else "ns"))
        text = pc.replace_substring(moments.cast(pa.string()), " ", self.between)
        text = pc.replace_substring_regex(text, r"\.0+$", "")
        return pc.replace_substring_regex(text, f"{self.left_out}$", "") if self.left_out else text


def _with_colon(offset: pa.Array) -> pa.Array:
    return pc.replace_substring_regex(offset, r"(\d\d)$", r":\1")


def _is_text(kind: pa.DataType) -> bool:
    return pa.types.is_string(kind) or pa.types.is_large_string(kind)


def find_style(column: pa.Array, axis: TimeAxis, dates: str | None = None) -> TimeStyle:
    """The style of an Arrow column of times that was read on ``axis``, in the form ``dates``."""
    values = decoded(column).drop_null()
    kind = values.type
    if not axis.is_calendar:
        return TimeStyle(kind if _is_text(kind) else pa.float64(), axis)
    step = find_step(values, dates) or _SECOND
    if dates is not None and _is_text(kind):
        form = date_form(dates)
        texts = fitting(form, values).drop_null()
        if len(texts):
            example = make_example(form, texts[0].as_py(), short_parts(form, texts))
            return TimeStyle(kind, axis, offset=offset_of(form, example), step=step, dates=dates, example=example)
    if _is_text(kind):
        first = values[0].as_py() if len(values) else ""
        found = _WRITTEN.match(first)
        if found is None:
            return TimeStyle(kind, axis, offset="" if axis.timezone is None else "+00:00")
        left_out = "[T ]00:00:00" if found["between"] is None else "" if _SECONDS.search(first) else ":00"
        return TimeStyle(kind, axis, found["between"] or "T", found["offset"] or "", step, left_out)
    if pa.types.is_date(kind):
        return TimeStyle(kind, axis, step=_DAY)
    if pa.types.is_timestamp(kind):
        return TimeStyle(kind, axis, step=step)
    return TimeStyle(pa.timestamp("us", axis.timezone), axis)  # a column without a value


def find_step(column: pa.Array, dates: str | None = None) -> int | None:
    """The longest of day, minute, second, milli-, micro- and nanosecond of which all dates are whole numbers.

    None where there is no date. Minutes and days are those of the clock on the wall.
    """
    values = decoded(column).drop_null()
    if not len(values):
        return None
    if _is_text(values.type):
        values = values if dates is None else date_form(dates).to_iso(values)
        finer = (step for step, pattern in zip((1, 1000, 10**6, _SECOND), _FINER, strict=True) if _any(values, pattern))
        return next(finer, _DAY if pc.all(pc.match_substring_regex(values, _MIDNIGHT)).as_py() else _MINUTE)
    if not pa.types.is_timestamp(values.type):
        return None
    wall = values if values.type.tz is None else pc.local_timestamp(values)
    counts, unit = wall.cast(pa.int64()).to_numpy(zero_copy_only=False), _UNITS[values.type.unit]
    return next(step for step in _STEPS if step <= unit or not (counts % (step // unit)).any())


def _any(values: pa.Array, pattern: str) -> bool:
    return bool(pc.any(pc.match_substring_regex(values, pattern)).as_py())
