"""Which complete streams a smoother is trained on: those that the model draws, the data, or both.

KL(p ‖ q), equation (6), asks for complete streams from p, since p weights the particles and q is to be near p's
posterior. The paper takes the training data for draws from p; by default the model draws its own here.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import Literal, get_args

import numpy as np
from numpy.typing import NDArray

from retrodict.errors import ModelError, RunawayError
from retrodict.events.combine import join
from retrodict.events.stream_set import StreamSet
from retrodict.missingness.by_type import ByType
from retrodict.models.base import Model
from retrodict.models.first_dates import dates_of
from retrodict.models.quadrature import GaussLegendre
from retrodict.models.simulate import simulate
from retrodict.proposals.filtering import Filtering
from retrodict.smc.engines import choose
from retrodict.smc.impute import impute
from retrodict.smc.options import Options
from retrodict.train.objective import epoch_seed

LearnFrom = Literal["model", "data", "both"]
_DRAWS = 1_000_000_000_000  # added to the seed of an epoch's masks gives the seed of its draws
_DEV_DRAWS = 999_999_893 + _DRAWS  # the same for the one draw in place of dev streams


class TrainingStreams:
    """The complete streams of every epoch, a function of seed and epoch alone, and those that dev scores are of.

    ``"model"``: one draw in place of every training stream, with its start and duration, drawn again every ``redraw``
    epochs; dev streams are replaced by draws too. ``"data"``: the training streams. ``"both"``: the two joined, scored
    on the dev streams themselves.
    """

    def __init__(
        self, model: Model, train: StreamSet, dev: StreamSet, learn_from: LearnFrom, seed: int, redraw: int
    ) -> None:
        if learn_from not in get_args(LearnFrom):
            raise ModelError(f"learn_from must be one of {', '.join(get_args(LearnFrom))}, but is {learn_from!r}.")
        if not (isinstance(redraw, int) and redraw > 0):
            raise ModelError(f"redraw must be a positive whole number, but is {redraw!r}.")
        self.model, self.train, self.learn_from = model, train, learn_from
        self.seed, self.redraw = seed, redraw
        self.scored = _draw(model, dev, seed + _DEV_DRAWS) if learn_from == "model" else dev
        self._drawn: tuple[int, StreamSet] | None = None  # the streams drawn last, and in which epoch

    def of_epoch(self, epoch: int) -> StreamSet:
        """The complete streams of an epoch."""
        if self.learn_from == "data":
            return self.train
        since = epoch - epoch % self.redraw
        if self._drawn is None or self._drawn[0] != since:
            drawn = _draw(self.model, self.train, epoch_seed(self.seed, since) + _DRAWS)
            self._drawn = since, drawn if self.learn_from == "model" else join([self.train, drawn])
        return self._drawn[1]

    def name_of(self, index: int) -> Hashable:
        """What to call a stream of an epoch in a message."""
        if self.learn_from == "data" or (self.learn_from == "both" and index < len(self.train)):
            return self.train.ids[index]
        return f"drawn by the model in place of {self.train.ids[index % len(self.train)]!r}"


def _draw(model: Model, like: StreamSet, seed: int) -> StreamSet:
    """Streams from the model, in place of these."""
    try:
        return draw_like(model, like, seed)
    except RunawayError as error:
        raise ModelError(
            "a smoother cannot be trained on this model's own streams: one of them had a hundred times as many events "
            "as the longest of yours, or more. The model may be explosive (a Hawkes process is, with more than one "
            'child per event on average). Train on your streams instead: learn_from="data", or --learn-from data on '
            "the command line."
        ) from error


def draw_like(model: Model, streams: StreamSet, seed: int = 0) -> StreamSet:
    """A stream from the model in place of each of these: the same id, start and, unless the model says that, duration.

    With nothing observed and everything missing, a filtering particle is a draw from the model. So the fastest engine
    draws the streams; where that is the reference, and on a GPU, ``simulate`` does, which keeps no weights. A draw that
    runs far beyond the longest of these raises a RunawayError. Streams of a model with an end atom end by themselves.
    """
    streams = model.matched(streams)
    most = 1000 + 100 * int(streams.lengths.max(initial=0))
    dates = None if model.calendar is None else dates_of(streams)
    if model.end_atom is not None:
        drawn = simulate(model, len(streams), seed=seed, max_events=most, start=dates)
        streams = streams.replace(ends=streams.starts + drawn.durations)
        times = drawn.event_times + np.repeat(streams.starts - drawn.starts, drawn.lengths)
        return _with_events(streams, times, drawn.event_types, drawn.offsets)
    everything = Filtering(model, ByType(1.0))
    if model.device.type != "cpu" or choose("auto", everything, Options(1, None, max_events=most)).name == "torch":
        drawn = simulate(model, len(streams), streams.durations, seed, max_events=most, start=dates)
        times = drawn.event_times + np.repeat(streams.starts - drawn.starts, drawn.lengths)
        return _with_events(streams, times, drawn.event_types, drawn.offsets)
    none = np.zeros(0, dtype=np.int64)
    nothing = _with_events(streams, np.zeros(0), none, np.zeros(len(streams) + 1, dtype=np.int64))
    # Every weight is 1, since q is p: one node is enough for an integral of their difference.
    found = impute(
        nothing, everything, 1, seed, resample=None, max_events=most, integral=GaussLegendre(1, graded=False)
    )
    return _with_events(streams, found.event_times, found.event_types, found.offsets)


def _with_events(
    streams: StreamSet, times: NDArray[np.float64], types: NDArray[np.int64], offsets: NDArray[np.int64]
) -> StreamSet:
    """The same streams with other events; rounding errors beyond the end are clipped."""
    times = np.minimum(times, np.repeat(streams.ends, np.diff(offsets)))
    about = (streams.starts, streams.ends, streams.ids, streams.types)
    return StreamSet.trusted(times, types, offsets, *about, axis=streams.axis)
