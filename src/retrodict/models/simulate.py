"""Draw complete streams from a model by thinning, many streams at once.

Each round looks a window ahead of every unfinished stream: it bounds the total intensity there and thins candidates
from a Poisson process at that bound (``models/thinning.py``). Windows only follow from a stream's own past and its
own random numbers, so that the same seed gives the same stream in any batch.

A model with an end atom says after each event whether it was the last one (``models/end.py``): the stream ends there.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from torch import Tensor

from retrodict.errors import DataError, ModelError, RunawayError
from retrodict.events.batch import make_batch
from retrodict.events.stream_set import StreamSet
from retrodict.events.time_axis import TimeAxis
from retrodict.models.base import Model
from retrodict.models.first_dates import on_axis
from retrodict.models.state import put, take
from retrodict.models.thinning import CANDIDATES, categorical, thin
from retrodict.random import split, stream_keys, uniform

_START, _ONWARDS, _END = 3, 4, 7  # branches of each stream's random numbers beside those of thinning


class Drawn(NamedTuple):
    """Events as they come: which row, when, which type."""

    row: Any
    time: Any
    type: Any


@torch.no_grad()
def simulate(
    model: Model,
    num_streams: int | None = None,
    end: float | ArrayLike | None = None,
    seed: int = 0,
    *,
    num_events: int | ArrayLike | None = None,
    start: Any = None,
    history: StreamSet | None = None,
    batch_size: int | None = None,
    max_events: int = 1_000_000,
    progress: Callable[[int], None] | None = None,
) -> StreamSet:
    """Simulate streams on [0, end], or the first ``num_events`` events of each, or onwards from a history.

    ``end`` and ``num_events`` are one value or one per stream. With ``num_events`` a stream ends at its last
    event (or at ``end``, if that comes first). Streams of a model with an end atom end by themselves, at an event:
    neither needs to be given, and both only cut short. ``start`` gives streams dates: one, or one per stream, from
    which ``end`` then counts; a model with a calendar needs it. With ``history`` the streams go on from the end of each
    given stream to ``end`` (a time on the history's own axis) and only the new events are returned, under
    the same ids; an end atom then speaks of the new events alone. A stream that would exceed ``max_events`` raises a
    RunawayError: nothing is cut silently.
    ``batch_size`` streams are drawn at a time, by default as suits the device; ``progress`` is called with the number
    done.
    """
    if history is not None:
        given, history = history, model.matched(history)
        num_streams = len(history)
        if end is not None and given.axis.unit != history.axis.unit:
            end = np.asarray(end, dtype=np.float64) * given.axis.units_in(history.axis)
    if num_streams is None or num_streams < 0:
        raise ModelError("simulate needs num_streams, the number of streams to draw, or a history.")
    may_go_on = end is None or not np.isfinite(np.asarray(end, dtype=np.float64)).all()
    if num_events is None and may_go_on and (model.end_atom is None or history is not None):
        raise ModelError("simulate needs end=, the time to stop at, or num_events=, the number to stop after.")
    origin, axis = _origins(model, num_streams, start, history)
    begin = np.zeros(num_streams) if history is None else history.durations
    stop = _per_stream(np.inf if end is None else end, num_streams, "end") - (0.0 if history is None else origin)
    limit = _per_stream(np.inf if num_events is None else num_events, num_streams, "num_events")
    if (stop < begin).any():
        i = int(np.argmax(stop < begin))
        raise DataError(
            f"end {stop[i] + origin[i]:g} lies before {begin[i] + origin[i]:g}, where simulation starts",
            stream=i if history is None else history.ids[i],
            remedy="choose a later end",
        )
    ids = list(range(num_streams)) if history is None else list(history.ids)
    parts, over = [], []
    batch_size = batch_size or (1024 if model.device.type == "cpu" else 16_384)
    for first in range(0, max(num_streams, 1), batch_size):
        rows = np.arange(first, min(first + batch_size, num_streams))
        keys = stream_keys(seed, [ids[i] for i in rows]).to(model.device)
        if history is not None:  # other numbers than those the history itself may have been drawn with
            keys = split(keys, _ONWARDS)
        state = model.initial((len(rows),)) if history is None else read_history(model, history, rows)
        before = np.zeros(len(rows), dtype=np.int64) if history is None else history.lengths[rows]
        ends = Ends(model, keys, before)
        stretch = begin[rows], stop[rows], limit[rows]
        starts = torch.as_tensor(origin[rows] + axis.since_1970, device=model.device)
        drawn = simulate_batch(model, state, keys, *stretch, history is None, max_events, ends=ends, starts=starts)
        parts.append((drawn.row + first, drawn.time, drawn.type))
        over.append(ends.over.cpu().numpy())
        if progress is not None:
            progress(first + len(rows))
    events = Drawn(*(np.concatenate([p.cpu().numpy() for p in field]) for field in zip(*parts, strict=True)))
    streams = _collect(model, events, begin, stop, limit, np.concatenate(over), origin, ids, axis)
    return streams if history is None or given.axis.unit is None else streams.with_unit(given.axis.unit)


def _origins(model: Model, count: int, start: Any, history: StreamSet | None) -> tuple[NDArray[np.float64], TimeAxis]:
    """When streams start [count], on which axis."""
    if history is not None:
        return history.starts, history.axis
    if start is not None:
        return on_axis(start, count, model.time_unit, None if model.calendar is None else model.calendar.zone)
    if model.calendar is not None:
        raise ModelError(
            "the model knows hours and days: say when simulated streams start, with start=, such as "
            'start="2024-03-01T08:00".'
        )
    return np.zeros(count), TimeAxis(unit=model.time_unit)


def _per_stream(value: Any, count: int, name: str) -> NDArray[np.float64]:
    array = np.asarray(value, dtype=np.float64)
    if array.ndim > 1 or (array.ndim == 1 and len(array) != count) or np.isnan(array).any():
        raise ModelError(f"{name} must be one number or {count} numbers, one per stream.")
    return np.broadcast_to(array, count)


class Ends:
    """Says of every event that R rows draw whether it was the last one, by the model's end atom; never without one.

    ``before`` [R]: how many events each row has had.
    """

    def __init__(self, model: Model, keys: Tensor, before: NDArray[np.int64]) -> None:
        self.model, self.keys = model, split(keys, _END)
        self.counts = torch.as_tensor(before.copy(), device=keys.device)
        self.over = torch.zeros_like(keys, dtype=torch.bool)

    def draw(self, rows: Tensor, state: Any, types: Tensor, times: Tensor) -> None:
        """After one more event of some rows, with the states that it leaves behind."""
        atom = self.model.end_atom
        if atom is None:
            return
        self.counts[rows] += 1
        odds = atom.log_odds(self.model.features(state, times), types, times, self.counts[rows])
        self.over[rows] = uniform(self.keys[rows], self.counts[rows]) < torch.sigmoid(odds)


def simulate_batch(
    model: Model,
    state: Any,
    keys: Tensor,
    begin: NDArray[np.float64],
    stop: NDArray[np.float64],
    limit: NDArray[np.float64],
    from_start: bool,
    max_events: int,
    watch: Callable[[Drawn, Any], None] | None = None,
    ends: Ends | None = None,
    starts: Tensor | None = None,
) -> Drawn:
    """Events of R rows after ``begin`` until ``stop``, since the start of each, given the model's states [R, ...].

    ``watch`` is called with events as they are drawn, at most one of each row at a time, and the states before them.
    ``ends`` says which rows end with one; without it they go on. ``starts`` [R] are when rows started, since 1970,
    which a model with a calendar needs.
    """
    device = model.device
    now = torch.as_tensor(begin.copy(), device=device)
    right = torch.as_tensor(stop.copy(), device=device)
    left = torch.as_tensor(limit.copy(), device=device)
    draws: list[Drawn] = []
    if from_start and model.start_atom is not None:
        state = _draw_start(model, state, keys, left, draws)
        if ends is not None and draws:
            ends.draw(draws[0].row, take(state, draws[0].row), draws[0].type, draws[0].time)
            left[ends.over] = 0
    round_, drawn = torch.zeros_like(keys), torch.zeros_like(keys)
    window = torch.full_like(now, torch.inf)
    while True:
        active = ((now < right) & (left > 0)).nonzero()[:, 0]
        if not len(active):
            break
        part = take(state, active)
        reach = torch.minimum(now[active] + window[active], right[active])
        reach = torch.where(torch.isfinite(reach), reach, now[active] + 1.0)
        bound, rates = model.bound(part, now[active], reach), partial(model.intensity, part)
        if model.calendar is not None:
            assert starts is not None
            bound = bound * model.calendar.bound(now[active], reach, starts[active])
            rates = partial(_seasonal, model, part, starts[active, None])
        rate = bound.sum(-1).to(torch.float64)
        found, time, types, moved, _ = thin(rates, rate, keys[active], round_[active], now[active], reach)
        if bool(((rate == 0) & torch.isinf(right[active])).any()):
            raise ModelError(
                "a stream's intensity fell to zero: it will never reach num_events, or its own end. Give end= too."
            )
        # About half of the candidates fit into the next window, whose length thus follows the stream's rate.
        window[active] = 0.5 * CANDIDATES / rate
        round_[active] += 1
        now[active] = moved
        hit = active[found]
        if len(hit):
            before = take(part, found)
            if watch is not None:
                watch(Drawn(hit, time[found], types[found]), before)
            after = model.update(before, types[found], time[found])
            state = put(state, hit, after)
            left[hit] -= 1
            if ends is not None:
                ends.draw(hit, after, types[found], time[found])
                left[ends.over] = 0
            drawn[hit] += 1
            draws.append(Drawn(hit, time[found], types[found]))
            if int(drawn.max()) > max_events:
                raise RunawayError(
                    f"a simulated stream exceeded {max_events:,} events. The process may be explosive (for a Hawkes "
                    "process: more than one child per event on average); use a shorter end, or raise max_events."
                )
    nothing = Drawn(now[:0].long(), now[:0], now[:0].long())
    return Drawn(*(torch.cat(field) for field in zip(nothing, *draws, strict=True)))


def _seasonal(model: Model, state: Any, start: Tensor, t: Tensor) -> Tensor:
    """λ_k at times [R, N] with the calendar's factor, [R, N, K]."""
    assert model.calendar is not None
    return model.intensity(state, t) * model.calendar.factor(t, start)


def _draw_start(model: Model, state: Any, keys: Tensor, left: Tensor, draws: list[Drawn]) -> Any:
    """Draw the event at the start instant, or none, from the model's start atom."""
    assert model.start_atom is not None
    probs = model.start_atom.log_probs.exp().expand(len(keys), -1)
    outcome = categorical(probs, uniform(split(keys, _START), torch.zeros_like(keys)))
    hit = ((outcome > 0) & (left > 0)).nonzero()[:, 0]
    if not len(hit):
        return state
    types, zeros = outcome[hit] - 1, torch.zeros(len(hit), dtype=torch.float64, device=keys.device)
    left[hit] -= 1
    draws.append(Drawn(hit, zeros, types))
    return put(state, hit, model.update(take(state, hit), types, zeros))


def read_history(model: Model, streams: StreamSet, rows: NDArray[np.int64]) -> Any:
    """The model's state after reading all events of the streams at ``rows``."""
    batch = make_batch(streams, rows, dtype=model.dtype, device=model.device)
    state = model.initial((len(rows),))
    for i in range(batch.types.shape[1]):
        live = batch.mask[:, i].nonzero()[:, 0]
        state = put(state, live, model.update(take(state, live), batch.types[live, i], batch.times[live, i]))
    return state


def _collect(
    model: Model,
    events: Drawn,
    begin: NDArray[np.float64],
    stop: NDArray[np.float64],
    limit: NDArray[np.float64],
    over: NDArray[np.bool_],
    origin: NDArray[np.float64],
    ids: list[Any],
    axis: TimeAxis,
) -> StreamSet:
    """Put the drawn events into streams; each stream's own events were drawn in time order."""
    order = np.argsort(events.row, kind="stable")
    counts = np.bincount(events.row, minlength=len(ids))
    offsets = np.concatenate([[0], np.cumsum(counts)])
    times = events.time[order]
    ends = stop.copy()
    full = (counts >= limit) | over
    ends[full] = np.where(counts[full] > 0, times[offsets[1:][full] - 1], begin[full])
    return StreamSet.trusted(
        times + np.repeat(origin, counts),
        events.type[order],
        offsets,
        begin + origin,
        ends + origin,
        ids,
        model.types or [str(k) for k in range(model.num_types)],
        axis=axis,
    )
