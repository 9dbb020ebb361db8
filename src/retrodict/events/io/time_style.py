"""How a table writes its times, so that imputed times are written in the same way."""

from __future__ import annotations

import re
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from retrodict.events.io.time_column import decoded
from retrodict.events.time_axis import TimeAxis

_STEPS = {"s": 10**9, "ms": 10**6, "us": 10**3, "ns": 1}
_DAY = 86_400 * 10**9
_WRITTEN = re.compile(r"^\s*\d{4}-\d\d-\d\d(?P<between>[T ])?.*?(?P<offset>Z|[+-]\d\d(?::?\d\d)?)?\s*$")


class TimeStyle(NamedTuple):
    """Times as Arrow values of ``type``: numbers, timestamps, dates or text, from times on ``axis``.

    Text has ``between`` date and time of day, and the offset as ``offset`` shows it ("" for none).
    """

    type: pa.DataType
    axis: TimeAxis
    between: str = "T"
    offset: str = ""
    step: int = 1000  # nanoseconds: times are rounded down to it

    def write(
        self, times: NDArray[np.float64], axis: TimeAxis, low: NDArray[np.float64], high: NDArray[np.float64]
    ) -> pa.Array:
        """Times [E] on the set's ``axis``, within [low, high] also after rounding; NaN is null."""
        missing = np.isnan(times)
        if not self.axis.is_calendar:
            numbers = pa.array(axis.convert(times, self.axis), pa.float64(), mask=missing)
            return numbers.cast(self.type) if _is_text(self.type) else numbers
        instants, first, last = (axis.to_instants(np.where(missing, 0.0, each)) for each in (times, low, high))
        instants = np.maximum(instants // self.step, np.minimum(-(-first // self.step), last // self.step)) * self.step
        moments = pa.array(instants, pa.timestamp("ns", "UTC"), mask=missing)
        return self._as_text(moments) if _is_text(self.type) else self._as_type(moments)

    def _as_type(self, moments: pa.Array) -> pa.Array:
        zone = getattr(self.type, "tz", None)
        if zone is None:
            moments = self._local(moments)
            return moments.cast(self.type, safe=False)
        return moments.cast(pa.timestamp("ns", zone)).cast(self.type, safe=False)

    def _local(self, moments: pa.Array) -> pa.Array:
        """What the clock on the wall shows; naive dates count as UTC."""
        return pc.local_timestamp(moments.cast(pa.timestamp("ns", self.axis.timezone or "UTC")))

    def _as_text(self, moments: pa.Array) -> pa.Array:
        zone = self.axis.timezone or "UTC"
        local = self._local(moments)
        text = pc.replace_substring(
            local.cast(pa.timestamp("us" if self.step > 1 else "ns")).cast(pa.string()), " ", self.between
        )
        text = pc.replace_substring_regex(text, r"\.0+$", "")
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
        return pc.binary_join_element_wise(text, offset, "").cast(self.type)


def _with_colon(offset: pa.Array) -> pa.Array:
    return pc.replace_substring_regex(offset, r"(\d\d)$", r":\1")


def _is_text(kind: pa.DataType) -> bool:
    return pa.types.is_string(kind) or pa.types.is_large_string(kind)


def find_style(column: pa.Array, axis: TimeAxis) -> TimeStyle:
    """The style of an Arrow column of times that was read on ``axis``."""
    values = decoded(column).drop_null()
    kind = values.type
    if not axis.is_calendar:
        return TimeStyle(kind if _is_text(kind) else pa.float64(), axis)
    if _is_text(kind):
        found = _WRITTEN.match(values[0].as_py()) if len(values) else None
        if found is None:
            return TimeStyle(kind, axis, offset="" if axis.timezone is None else "+00:00")
        fine = pc.any(pc.match_substring_regex(values, r"\.\d{7,9}")).as_py()
        return TimeStyle(kind, axis, found["between"] or "T", found["offset"] or "", 1 if fine else 1000)
    if pa.types.is_date(kind):
        return TimeStyle(kind, axis, step=_DAY)
    if pa.types.is_timestamp(kind):
        return TimeStyle(kind, axis, step=_STEPS[kind.unit])
    return TimeStyle(pa.timestamp("us", axis.timezone), axis)  # a column without a value
