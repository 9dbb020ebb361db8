"""The table that streams were read from, kept as it was, so that the same table can be given back.

A stream set that was read from a table or from JSON Lines remembers its ``Source``. Choosing streams or events,
changing the unit and putting in imputed events keep it; whatever else changes the events drops it.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from retrodict.events.time_axis import TimeAxis

Rows = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Source:
    """R rows, of which those in ``blank`` [B] declare empty streams; ``codes`` [R] is the stream of each row.

    ``rows`` [E] is the row of each event of the stream set, -1 where the source does not have the event. For JSON
    Lines the rows are the events, counted through all lines.
    """

    kind: str  # "csv" (Arrow, of text), "arrow", "pandas", "polars", "lines" (of JSON text) or "records" (EasyTPP's)
    data: Any
    names: Mapping[str, str | None]  # the columns that play the parts stream, time, type, start and end
    assumed: frozenset[str]  # of start and end, what nobody said
    extras: Mapping[str, str]  # the extra columns: name in the stream set -> name in the table
    types: tuple[str, ...]
    axis: TimeAxis
    ids: tuple[Hashable, ...]
    codes: Rows
    blank: Rows
    rows: Rows
    when: NDArray[np.float64] | None = None  # [R] on ``axis``, NaN for none: set where dated rows are no events
    of_streams: frozenset[str] | None = None  # of ``extras``, those that are properties of streams; None: not settled
    style: Any = None  # how times (of lines: types) are written, where these rows are but a part of the source
    file: object | None = None  # where it was read, for messages
    numbers: Rows | None = None  # [R], the rows' own for messages, where these are some of the rows of a larger table

    @property
    def by_stream(self) -> bool:
        """Whether the source has one record a stream, not one row an event."""
        return self.kind in ("lines", "records")

    @property
    def columns_of_streams(self) -> frozenset[str]:
        """The columns of the table that are properties of streams."""
        return frozenset(self.extras[name] for name in self.of_streams or () if name in self.extras)

    def row_of(self, event: int) -> int | None:
        """The row of an event of the stream set as a user counts it; None where there is one record a stream."""
        row = int(self.rows[event])
        if self.by_stream or row < 0:
            return None
        return row + 1 if self.numbers is None else int(self.numbers[row])

    def take(self, events: NDArray[Any]) -> Source:
        """The source of some of the events, by position or mask."""
        return replace(self, rows=self.rows[events])

    def merge(self, other: Source | None, order: Rows, number: int) -> Source:
        """The source of these events and ``number`` others, put into the given order."""
        same = other is not None and other.data is self.data
        rows = other.rows if same and other is not None else np.full(number, -1, dtype=np.int64)
        return replace(self, rows=np.concatenate([self.rows, rows])[order])

    def vocabulary(self, types: Sequence[str]) -> tuple[str, ...]:
        """The types of the source, then those that only the set knows."""
        return self.types + tuple(name for name in types if name not in self.types)

    def integers(self, types: Sequence[str]) -> list[int]:
        """The integer that stands for each type where the source has integers: its name, or its place."""
        if all(name.lstrip("-").isdigit() for name in types):
            return [int(name) for name in types]
        places = {name: k for k, name in enumerate(self.vocabulary(types))}
        return [places[name] for name in types]

    @property
    def last_rows(self) -> Rows:
        """The last row of each stream of the source, [N]; 0 where it has none."""
        last = np.zeros(len(self.ids), dtype=np.int64)
        last[self.codes] = np.arange(len(self.codes))
        return last

    @property
    def first_rows(self) -> Rows:
        """The first row of each stream of the source, [N]; 0 where it has none."""
        first = np.zeros(len(self.ids), dtype=np.int64)
        first[self.codes[::-1]] = np.arange(len(self.codes))[::-1]
        return first


class Layout(NamedTuple):
    """The rows of a table to be written: the ``row`` of the source or -1, the ``event`` of the set or -1.

    ``like`` is the first row of the same stream, ``peer`` the row itself or that of another event of the stream (of one
    without events, any row), ``stream`` the stream's position in the set, and ``anchor`` the row of the source beside
    which it stands (itself, if it has one); [R] each. ``whole`` says whether every event that the source
    has of these streams is there.
    """

    row: Rows
    event: Rows
    like: Rows
    stream: Rows
    whole: bool
    anchor: Rows
    peer: Rows

    @property
    def new(self) -> NDArray[np.bool_]:
        """Which rows are events that the source does not have, [R]."""
        return (self.row < 0) & (self.event >= 0)


def lay_out(source: Source, ids: Sequence[Hashable], offsets: Rows, times: NDArray[np.float64] | None = None) -> Layout:
    """The rows of these streams in the order of the source.

    A new event follows the row of the last event of its stream before it. If there is none it precedes the row of the
    first event, or follows the row that declares the stream empty. Where dated rows are no events, it is put between
    those too, by ``times`` [E] on the axis of the source.
    """
    position = {name: code for code, name in enumerate(source.ids)}
    code = np.array([position[name] for name in ids], dtype=np.int64)
    events, lengths = np.arange(offsets[-1]), np.diff(offsets)
    stream = np.repeat(np.arange(len(ids)), lengths)
    known = source.rows >= 0
    before = np.maximum.accumulate(np.where(known, events, -1)) if len(events) else events
    has_before = before >= offsets[stream]
    after = np.minimum.accumulate(np.where(known, events, len(events))[::-1])[::-1] if len(events) else events
    has_after = after < offsets[stream + 1]
    none = np.zeros(len(ids), dtype=np.int64)
    first, last = (source.first_rows[code], source.last_rows[code]) if len(source.codes) else (none, none)
    anchor = np.where(
        has_before,
        source.rows[np.maximum(before, 0)],
        np.where(has_after, source.rows[np.minimum(after, len(events) - 1)], last[stream]),
    )
    peer = anchor.copy()
    side = np.where(known, 0, np.where(has_before | ~has_after, 1, -1))
    if source.when is not None and times is not None:
        new = np.flatnonzero(~known)
        found, anchors, sides = _among_dated(source, code[stream[new]], times[new])
        anchor[new[found]], side[new[found]] = anchors, sides

    in_set = np.full(len(source.ids), -1, dtype=np.int64)
    in_set[code] = np.arange(len(ids))
    blank = source.blank[in_set[source.codes[source.blank]] >= 0]
    of_blank = in_set[source.codes[blank]]
    bare = np.setdiff1d(np.flatnonzero(lengths == 0), of_blank)  # streams whose events were all left out
    nothing = np.full(len(blank) + len(bare), -1, dtype=np.int64)
    stream = np.concatenate([stream, of_blank, bare])
    anchor, peer = (np.concatenate([rows, blank, first[bare]]) for rows in (anchor, peer))
    order = np.lexsort((np.concatenate([events, nothing]), np.concatenate([side, np.zeros_like(nothing)]), anchor))
    if source.by_stream:
        order = order[np.argsort(code[stream[order]], kind="stable")]
    had = np.bincount(np.delete(source.codes, source.blank), minlength=len(source.ids))[code].sum()
    return Layout(
        np.concatenate([source.rows, blank, np.full(len(bare), -1, dtype=np.int64)])[order],
        np.concatenate([events, nothing])[order],
        first[stream][order],
        stream[order],
        bool(had == known.sum()),
        anchor[order],
        peer[order],
    )


def _among_dated(source: Source, codes: Rows, times: NDArray[np.float64]) -> tuple[Rows, Rows, Rows]:
    """Which new events [V] have a dated row in their stream, the row that each follows (1) or precedes (-1), and which.

    An event follows the last row at or before its time.
    """
    assert source.when is not None
    rows = np.flatnonzero(np.isfinite(source.when) & np.isin(source.codes, codes))
    stream = np.concatenate([source.codes[rows], codes])
    when = np.concatenate([source.when[rows], times])
    order = np.lexsort((np.arange(len(stream)), when, stream))
    is_row, place = order < len(rows), np.arange(len(order))
    if not len(rows):
        return rows, rows, rows
    before = np.maximum.accumulate(np.where(is_row, place, -1))
    after = np.minimum.accumulate(np.where(is_row, place, len(order))[::-1])[::-1]
    has_before = (before >= 0) & (stream[order[np.maximum(before, 0)]] == stream[order])
    after = np.minimum(after, len(order) - 1)
    has_after = is_row[after] & (stream[order[after]] == stream[order])
    anchor = rows[np.minimum(order[np.where(has_before, np.maximum(before, 0), after)], len(rows) - 1)]
    fine = ~is_row & (has_before | has_after)
    return order[fine] - len(rows), anchor[fine], np.where(has_before, 1, -1)[fine]
