"""What only all parts of a source together tell: its time axis, its vocabulary, how its times are written.

A reader of one part decides these by that part alone. A ``Survey`` looks at every part, decides as the reader of the
whole would, and each part is then read again with what was settled.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from retrodict.events.io.date_forms import date_form
from retrodict.events.io.dates_out import fitting, make_example, short_parts
from retrodict.events.io.request import Request
from retrodict.events.io.time_column import TimeColumn, choose_axis, decoded
from retrodict.events.io.time_style import TimeStyle, find_step, find_style
from retrodict.events.io.type_codes import are_sparse, check_num_types, sort_names, sparse_notice
from retrodict.events.properties import constant_columns, has_repeats
from retrodict.events.stream_set import StreamSet
from retrodict.events.time_axis import SECONDS, TimeAxis

_BINS = np.array([0, *(round(SECONDS[unit] * 1e9) for unit in ("minute", "hour", "day")), 2**63 - 1])  # nanoseconds


class _Spread:
    """How many positive lengths of time lie in each bin, and the least and the greatest of each."""

    def __init__(self) -> None:
        self.counts = np.zeros(len(_BINS) - 1, np.int64)
        self.least = np.full(len(self.counts), np.iinfo(np.int64).max)
        self.most = np.zeros(len(self.counts), np.int64)

    def add(self, values: NDArray[np.int64]) -> None:
        """Count some more."""
        values = values[values > 0]
        bins = np.searchsorted(_BINS, values, side="right") - 1
        self.counts += np.bincount(bins, minlength=len(self.counts))
        np.minimum.at(self.least, bins, values)
        np.maximum.at(self.most, bins, values)

    def middle(self) -> NDArray[np.int64]:
        """One or two values whose median lies on the same side of every unit as the median of all."""
        total = int(self.counts.sum())
        if not total:
            return np.zeros(0, np.int64)
        places = (total - 1) // 2, total // 2
        low, high = (int(np.searchsorted(np.cumsum(self.counts), at, side="right")) for at in places)
        return self.least[[low]] if low == high else np.array([self.most[low], self.least[high]])


class Settled(NamedTuple):
    """What was decided for all parts: the axis, the vocabulary, and how times are written.

    ``of_streams`` are the extra columns that are properties of streams, ``first`` is the first time where times are
    text, and ``step`` how fine dates are (``find_step``); of lines, ``first`` is the kind of the types on them.
    """

    axis: TimeAxis
    types: tuple[str, ...]
    of_streams: frozenset[str]
    first: str | None
    step: int | None

    def style(self, kind: pa.DataType, dates: str | None) -> TimeStyle:
        """The style of a column of times of this type, and of this form."""
        text = pa.array([], kind) if self.first is None else pa.array([self.first]).cast(kind)
        style = find_style(text, self.axis, dates)
        dated = style.axis.is_calendar and not pa.types.is_date(kind)
        return style._replace(step=self.step) if self.step is not None and dated else style


class Survey:
    """Sees every part of a source once."""

    def __init__(self) -> None:
        self.kind: TimeColumn | None = None  # one of the first part that has times, for its zone and its label
        self.earliest: int | None = None  # instants, of dates
        self.latest: int | None = None
        self.gaps, self.spans = _Spread(), _Spread()
        self.first: tuple[int, str] | None = None  # the row and the text of the first time
        self.formed: tuple[int, str] | None = None  # and of the first in the form ``dates``
        self.short: set[str] = set()  # parts of dates that have no leading zero
        self.step: int | None = None
        self.names: dict[str, None] = {}
        self.integers: set[int] = set()
        self.axis: TimeAxis | None = None  # that lines record
        self.lines: str | None = None  # the kind of the first type on a line
        self.same: dict[str, Any] = {}  # what all lines have in common
        self.constant: frozenset[str] | None = None  # the extra columns that are so within every stream
        self.repeats = False  # whether some stream has two events
        self.ordered = False  # whether names keep the order in which they were seen

    def see_times(
        self,
        columns: Sequence[TimeColumn],
        times: NDArray[Any],
        offsets: NDArray[np.int64],
        spans: NDArray[Any],
        request: Request,
    ) -> None:
        """Look at the times of a part: those of events in order, and the columns that they came from."""
        time = columns[0]
        first = self.kind
        if not all(column.missing.all() for column in columns):
            if first is None:
                self.kind = first = time._replace(values=time.values[:0], missing=time.missing[:0])
            if (first.calendar, first.zone) != (time.calendar, time.zone):
                kinds = [_words(column) for column in (first, time)]
                remedy = "give all times as numbers, or all as dates, in one time zone (timezone=)"
                raise request.error(f"{time.label} holds {kinds[0]} in one place and {kinds[1]} in another", remedy)
        if not time.calendar:
            return
        for column in columns:
            values = column.values[~column.missing]
            if len(values):
                low, high = int(values.min()), int(values.max())
                self.earliest = low if self.earliest is None else min(self.earliest, low)
                self.latest = high if self.latest is None else max(self.latest, high)
        inside = np.ones(max(len(times) - 1, 0), dtype=bool)
        borders = offsets[1:-1]
        inside[borders[(borders > 0) & (borders < len(times))] - 1] = False
        self.gaps.add(np.diff(times)[inside])
        self.spans.add(spans)

    def see_style(self, column: pa.Array, rows: NDArray[np.int64], dates: str | None) -> None:
        """Look at how the times of some rows are written."""
        column = decoded(column)
        self.step = min((step for step in (self.step, find_step(column, dates)) if step is not None), default=None)
        if pa.types.is_large_string(column.type) or pa.types.is_string(column.type):
            self.first = _earlier(self.first, column, rows)
            if dates is not None:
                texts = fitting(date_form(dates), column)
                self.formed = _earlier(self.formed, texts, rows)
                self.short |= short_parts(date_form(dates), texts)

    def see_types(self, column: pa.Array, request: Request) -> None:
        """Look at the types of a part's events, as they stand there."""
        kind = column.type
        if pa.types.is_dictionary(kind) and not column.dictionary.null_count:
            self.ordered = True
            self._name(column.dictionary.cast(pa.string()).to_pylist(), request)
        elif pa.types.is_boolean(kind):
            self.ordered = True
            self._name(["False", "True"], request)
        elif pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_null(kind):
            self.integers |= {int(value) for value in pc.unique(column.drop_null()).to_pylist()}
            check_num_types(len(self.integers), request)
        else:
            self._name(pc.unique(column.drop_null()).to_pylist(), request)

    def see_lines(
        self, types: Sequence[int | str], axis: TimeAxis, columns: tuple[str, ...] | None, request: Request
    ) -> None:
        """Look at streams that came as lines: types as they stand there, the axis, and the extra columns, if any."""
        for what, value in (("'axis'", axis), ("the extra columns", None if columns is None else frozenset(columns))):
            if value is not None and self.same.setdefault(what, value) != value:
                raise request.error(f"{what} differs from that of earlier lines", "use one for the whole file")
        self.axis = axis
        if types:
            kind = type(types[0])
            if request.types is None and self.same.setdefault("types", kind) is not kind:
                remedy = "use one of the two"
                raise request.error("some streams give types as names, others as integers", remedy)
            if self.lines is None:
                self.lines = kind.__name__
            self.integers |= {one for one in types if isinstance(one, int)}
            self._name([one for one in dict.fromkeys(types) if isinstance(one, str)], request)

    def see_columns(self, streams: StreamSet) -> None:
        """Look at which extra columns are properties of streams, in a part that has events."""
        if streams.num_events:
            constant = constant_columns(streams)
            self.constant = constant if self.constant is None else self.constant & constant
            self.repeats = self.repeats or has_repeats(streams)

    def _name(self, names: Sequence[str], request: Request) -> None:
        self.names |= dict.fromkeys(names)
        check_num_types(len(self.names), request)

    def settle(self, request: Request, on_notice: Callable[[str], None]) -> Settled:
        """What holds for all parts."""
        first = self.lines if self.first is None else self.first[1]
        if self.formed is not None and request.dates is not None:
            first = make_example(date_form(request.dates), self.formed[1], self.short)
        of_streams = (self.constant or frozenset()) if self.repeats else frozenset[str]()
        types = request.types or self._vocabulary(on_notice)
        return Settled(self._axis(request), types, of_streams, first, self.step)

    def _axis(self, request: Request) -> TimeAxis:
        if self.axis is not None:
            return self.axis
        if self.kind is None:
            return TimeAxis(request.unit) if request.axis is None else request.axis
        both = np.array([self.earliest or 0, self.latest or 0] if self.kind.calendar else [0.0])
        seen = self.kind._replace(values=both, missing=np.zeros(len(both), dtype=bool))
        gaps = self.gaps if self.gaps.counts.any() else self.spans
        return choose_axis([seen], gaps.middle, request)

    def _vocabulary(self, on_notice: Callable[[str], None]) -> tuple[str, ...]:
        if not self.integers:
            return tuple(self.names if self.ordered else sort_names(list(self.names)))
        highest, number = max(self.integers), len(self.integers)
        if not are_sparse(highest, number):
            return tuple(str(k) for k in range(highest + 1))
        on_notice(sparse_notice(number, highest))
        return tuple(str(value) for value in sorted(self.integers))


def _earlier(first: tuple[int, str] | None, column: pa.Array, rows: NDArray[np.int64]) -> tuple[int, str] | None:
    """The row and the text of the first value, of those before and of a column."""
    valid = column.is_valid().to_numpy(zero_copy_only=False)
    at = int(np.argmax(valid)) if valid.any() else None
    return first if at is None or (first is not None and first[0] < rows[at]) else (int(rows[at]), column[at].as_py())


def _words(column: TimeColumn) -> str:
    return f"dates in {column.zone or 'no time zone'}" if column.calendar else "numbers"
