"""Put observed and missing events together into complete streams (x ⊔ z in the paper)."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from retrodict.errors import DataError
from retrodict.events.properties import carry, spread
from retrodict.events.results import RESULTS, refuse_results
from retrodict.events.stream_set import StreamSet


def fill(observed: StreamSet, imputed: StreamSet) -> StreamSet:
    """The user's own streams with imputed events put in, and columns imputed, probability, earliest and latest.

    An imputed event has the columns that are properties of its stream (``events/properties.py``); elsewhere an event
    without a value has NaN, NaT in a column of dates, or None in one of neither. ``to_table`` and ``rd.write_events``
    give the table back that ``observed`` was read from, with a row for each imputed event.
    """
    refuse_results(observed)
    observed, imputed = observed.with_types(imputed.types), _on_axis_of(observed, imputed)
    complete, is_imputed = combine(observed, imputed)
    carried = carry(observed, imputed.stream_of_event)
    columns: dict[str, NDArray[Any]] = {}
    for name, values in observed.columns.items():
        columns[name] = _put_together(values, carried.get(name), is_imputed)
    nothing = np.full(imputed.num_events, np.nan)
    found = {name: imputed.columns.get(name, nothing) for name in RESULTS[1:]} | dict(imputed.columns)
    columns["imputed"] = is_imputed
    columns |= {name: spread(values, is_imputed) for name, values in found.items() if name not in columns}
    source = complete.source and replace(complete.source, of_streams=frozenset(carried))
    return complete.replace(columns=columns, source=source)


def _on_axis_of(observed: StreamSet, imputed: StreamSet) -> StreamSet:
    """The imputed events on the axis of the observed ones; rounding takes none of them out of its stream."""
    moved = imputed.with_axis(observed.axis)
    if moved is imputed or moved.ids != observed.ids:
        return moved
    stream = moved.stream_of_event
    inside = np.clip(moved.event_times, observed.starts[stream], observed.ends[stream])
    return moved.replace(event_times=inside, starts=observed.starts, ends=observed.ends, source=moved.source)


def _put_together(values: NDArray[Any], carried: NDArray[Any] | None, is_imputed: NDArray[np.bool_]) -> NDArray[Any]:
    """A column of observed events with what is carried over to the imputed ones, if anything."""
    if carried is None:
        return spread(values, ~is_imputed)
    column = np.empty(len(is_imputed), dtype=np.result_type(values, carried))
    column[~is_imputed], column[is_imputed] = values, carried
    return column


def combine(observed: StreamSet, missing: StreamSet) -> tuple[StreamSet, NDArray[np.bool_]]:
    """Complete streams, and a mask [E] of their missing events.

    Both sets hold the same streams (ids, intervals, types). At equal times observed events come first.
    Extra columns are kept where both sets have them.
    """
    for name in ("ids", "types"):
        if getattr(observed, name) != getattr(missing, name):
            remedy = "pass the two sets that censor() returned, in the same order"
            raise DataError(f"observed and missing streams have different {name}", remedy=remedy)
    for i in np.flatnonzero((observed.starts != missing.starts) | (observed.ends != missing.ends))[:1]:
        raise DataError(
            f"observed on [{observed.starts[i]:g}, {observed.ends[i]:g}] but "
            f"missing on [{missing.starts[i]:g}, {missing.ends[i]:g}]",
            stream=observed.ids[i],
            remedy="give both the same start and end",
        )
    stream = np.concatenate([observed.stream_of_event, missing.stream_of_event])
    times = np.concatenate([observed.event_times, missing.event_times])
    order = np.lexsort((times, stream))
    is_missing = np.arange(len(times)) >= observed.num_events
    types = np.concatenate([observed.event_types, missing.event_types])
    shared = [name for name in observed.columns if name in missing.columns]
    columns = {name: np.concatenate([observed.columns[name], missing.columns[name]])[order] for name in shared}
    offsets = observed.offsets + missing.offsets
    source = observed.source and observed.source.merge(missing.source, order, missing.num_events)
    complete = observed.replace(
        event_times=times[order], event_types=types[order], offsets=offsets, columns=columns, source=source
    )
    return complete, is_missing[order]


def join(parts: Sequence[StreamSet], ids: Sequence[Hashable] | None = None) -> StreamSet:
    """The streams of several sets as one set, without columns; ``ids`` are (id, number of the set) by default.

    A mechanism that depends on ids still sees the original ids.
    """
    times, types, lengths, starts, ends, keys = (
        np.concatenate([getattr(part, name) for part in parts])
        for name in ("event_times", "event_types", "lengths", "starts", "ends", "id_keys")
    )
    if ids is None:
        ids = [(id, number) for number, part in enumerate(parts) for id in part.ids]
    offsets = np.concatenate([[0], np.cumsum(lengths)])
    joined = StreamSet.trusted(times, types, offsets, starts, ends, ids, parts[0].types, axis=parts[0].axis)
    joined._id_keys = keys
    return joined


def observed_first(streams: StreamSet, missing: NDArray[np.bool_]) -> tuple[StreamSet, NDArray[np.bool_]]:
    """Complete streams and the mask [E] of their missing events, in the order that ``combine`` gives.

    The order changes only among events at the same time.
    """
    same = (np.diff(streams.event_times) == 0) & (np.diff(streams.stream_of_event) == 0)
    if not (same & missing[:-1] & ~missing[1:]).any():
        return streams, missing
    order = np.lexsort((missing, streams.event_times, streams.stream_of_event))
    return streams.replace(**streams.at(order)), missing[order]
