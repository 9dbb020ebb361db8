"""What the page shows, before it is packed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from retrodict.events.stream_set import StreamSet
from retrodict.report.stream_view import StreamView


@dataclass(frozen=True)
class Score:
    """An answer of N streams and K types against the truth.

    ``distance`` [N, K] to it and what is really ``missing`` [N, K]; ``aligned`` [N] imputed events that stand for a
    missing one, of whose 90 % intervals ``covered`` [N] hold its time.
    """

    distance: NDArray[np.float64]
    missing: NDArray[np.int64]
    aligned: NDArray[np.int64]
    covered: NDArray[np.int64]


@dataclass(frozen=True)
class Answer:
    """The consensus of N streams at one cost, with its risk [N] and that of predicting nothing [N].

    ``score`` is there where the truth is known.
    """

    cost: float
    streams: StreamSet
    risk: NDArray[np.float64]
    nothing: NDArray[np.float64]
    score: Score | None = None


@dataclass(frozen=True)
class Doubt:
    """A reason not to trust some streams: a word or two, a sentence, and which streams, [N]."""

    name: str
    text: str
    streams: NDArray[np.bool_]


@dataclass(frozen=True)
class Content:
    """A page about N streams with K types.

    ``expected`` [N, K] are missing events, of each type and of all together from ``intervals`` [K + 1, 2] on and up to
    there with a probability of 90 %, ``surprise`` [N] nats an observed event below the median stream, and
    ``families`` [N] the fewest effective families of a segment in which events are missing, not to be
    trusted below ``few``. ``view`` gives what there
    is to see of stream i; its consensus is that of ``answers[first]``. ``facts`` say how it was made, in words.
    """

    title: str
    observed: StreamSet
    answers: list[Answer]
    first: int
    expected: NDArray[np.float64]
    intervals: NDArray[np.int64]
    surprise: NDArray[np.float64]
    families: NDArray[np.float64]
    few: float
    doubts: list[Doubt]
    warnings: list[str]
    view: Callable[[int], StreamView]
    check: dict[str, Any] | None
    facts: list[tuple[str, str]]
