"""What there is to see of one imputed stream."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from retrodict.events.stream import EventStream
from retrodict.events.time_axis import TimeAxis

_HIGH = 20.0  # events expected in a stream, if its rate were a high one throughout


class Window(NamedTuple):
    """A window of a stream in which more events of some types go missing than outside of it."""

    start: float
    end: float
    types: tuple[int, ...]


@dataclass(frozen=True)
class StreamView:
    """One stream, what is believed to be missing from it, and one answer.

    ``imputed`` is the consensus, with columns probability, earliest and latest. ``rates`` [G, K] are the expected
    missing events of each type per unit of time, in G equal cells of the stream. ``families`` [S] are the effective
    families of the segments between observed events; below ``few`` of them what is imputed looks surer than it is.
    ``truth`` is what is really missing, where that is known, and ``windows`` those in which more goes missing.
    """

    observed: EventStream
    imputed: EventStream
    draws: list[EventStream]
    rates: NDArray[np.float64]
    families: NDArray[np.float64]
    few: float
    types: tuple[str, ...]
    axis: TimeAxis
    truth: EventStream | None = None
    windows: Sequence[Window] = ()

    def heights(self) -> NDArray[np.float64]:
        """How high to draw the rates, [G, K] from 0 to 1: roots of shares of the highest rate of the stream.

        By the root an event whose time is known does not flatten all the rest. A stream that has no high rate is drawn
        on the scale of one event expected in a twentieth of its length, so that what is hardly believed looks so.
        """
        if not self.observed.duration > 0:
            return np.zeros_like(self.rates)
        return np.sqrt(self.rates / max(float(self.rates.max(initial=0.0)), _HIGH / self.observed.duration))

    def rows(self) -> list[int]:
        """The types to show: those that were seen, imputed or hidden, or of which something is expected."""
        streams = [self.observed, self.imputed] + ([] if self.truth is None else [self.truth])
        shown = {int(k) for stream in streams for k in stream.types}
        cell = self.observed.duration / max(len(self.rates), 1)
        return sorted(shown | set(np.flatnonzero(self.rates.sum(0) * cell >= 0.05).tolist()))
