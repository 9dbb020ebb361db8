"""Streams as JSON objects, in and out: those of JSON Lines files (``events/io/jsonl.py``)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from retrodict.errors import DataError
from retrodict.events.io.jsonl import from_objects
from retrodict.events.io.own_lines import own_lines
from retrodict.events.io.request import Request
from retrodict.events.stream_set import StreamSet
from retrodict.models.base import Model
from retrodict.proposals.smoothers import type_names
from retrodict.serve.limits import ServeLimits, too_much


@dataclass(frozen=True)
class Given:
    """The streams of a request as they were given (``own``) and over the model's types, in its unit (``matched``)."""

    own: StreamSet
    matched: StreamSet
    notices: tuple[str, ...]

    @property
    def scale(self) -> float:
        """How many of the model's units of time one unit of the client's is."""
        own, model = self.own.axis, self.matched.axis
        return 1.0 if own.unit == model.unit else own.units_in(model)

    def on_model_axis(self, time: float | str | None) -> float | str | None:
        """A time of the client's on the model's axis; dates stay as they are."""
        if not isinstance(time, int | float):
            return time
        return float(self.own.axis.convert(np.array([float(time)]), self.matched.axis)[0])


def read_streams(objects: Sequence[dict[str, Any]], model: Model, most: ServeLimits) -> Given:
    """The streams of a request, checked; errors name the stream and its place in the list, counted from 1."""
    if len(objects) > most.streams:
        raise too_much("streams in a request", len(objects), most.streams, "send fewer at a time")
    lengths = [len(value.get("times") or ()) for value in objects if isinstance(value.get("times"), list)]
    if sum(lengths) > most.events:
        raise too_much("events in a request", sum(lengths), most.events, "send fewer, or shorter, streams at a time")
    request = Request(types=type_names(model))
    own = from_objects(list(enumerate(objects, start=1)), request)
    with np.errstate(over="ignore"):
        endless = np.flatnonzero(~np.isfinite(own.durations))
    for i in endless[:1].tolist():
        raise DataError("its duration is not finite", stream=own.ids[i], row=i + 1, remedy="correct its horizon")
    return Given(own, model.matched(own), tuple(request.notices))


def write_streams(streams: StreamSet) -> list[dict[str, Any]]:
    """The objects that streams were read from, with the events that were put in since."""
    return list(own_lines(streams))
