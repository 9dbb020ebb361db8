"""The consensus of a posterior (section 4), from the ensemble that another run agrees with, and its honest risk.

Guesses are thinned to ``DRAWS`` draws, and every consensus event is charged a pseudo-count: C_delete / N for the N
effective guesses of its segment, so that what few independent guesses say is not believed (one alone never is). Both
halves of the islands are decoded in each way, full and lagged, and scored under the full ensemble of the other half,

    R = ½ [L_B(z_A) + L_A(z_B)],

which, unlike the risk of a decode under the guesses it was made from, is not optimistic. The way of the lesser R, all
streams together, decodes all guesses; R is the risk that is reported.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from retrodict.decode import Charges, Decodes, Ensembles, decode_set, expected_distance_set, thin_set
from retrodict.decode.transport import CostLike, as_cost
from retrodict.events.stream_set import StreamSet
from retrodict.smc.guesses import Guesses

DRAWS = 200  # that the guesses of a stream are thinned to
PSEUDO_COUNT = 1.0
Way = Literal["full", "lagged"]


@dataclass(frozen=True, eq=False)
class Decision:
    """The consensus of N streams at one cost.

    ``streams`` carry columns ``probability``, ``earliest`` and ``latest``. ``risk`` [N] is the expected distance of
    each to the truth and ``nothing`` [N] that of predicting nothing, both under an independent run where there is one.
    """

    streams: StreamSet
    ensemble: Way
    risk: NDArray[np.float64]
    nothing: NDArray[np.float64]


def decide(
    full: Guesses,
    lagged: Guesses,
    observed: StreamSet,
    possible: NDArray[np.bool_],
    costs: Sequence[CostLike],
    ensemble: Way | None,
    progress: Callable[[int], None] | None,
    **options: Any,
) -> list[Decision]:
    """The consensus at each cost; ``ensemble`` None leaves the choice to the cross-fit.

    Streams that are not ``possible`` [N] get no events.
    """
    prices, ways = [as_cost(cost) for cost in costs], {"full": full, "lagged": lagged}
    expected = (full.weights * full.counts()).sum(1)
    risks: dict[Way, list[NDArray[np.float64]]] = {}
    tried: tuple[Way, ...] = ("full", "lagged") if ensemble is None else (ensemble,)
    passes = len(prices) + (2 * len(tried) if full.islands > 1 else 0)
    options["progress"] = _counter(progress, passes)
    if full.islands > 1:
        judges = full.halves()
        for way in tried:
            risks[way] = _cross_fit(ways[way].halves(), judges, observed, prices, options)
    decisions = []
    for c, price in enumerate(prices):
        best = min(tried, key=lambda way: float(risks[way][c].sum())) if risks else tried[-1]
        thinned, charges = _prepare(ways[best], observed, DRAWS)
        (found,) = decode_set(thinned, [price], charges, **options)
        risk = risks[best][c] if risks else found.risk
        streams = as_streams(found, observed)
        streams = streams if possible.all() else streams.keep(possible[streams.stream_of_event])
        decisions.append(Decision(streams, best, risk, price.insert * expected))
    return decisions


def _cross_fit(
    halves: tuple[Guesses, Guesses],
    judges: tuple[Guesses, Guesses],
    observed: StreamSet,
    costs: Sequence[Any],
    options: dict[str, Any],
) -> list[NDArray[np.float64]]:
    """R of each stream [N], for each cost."""
    risks = [np.zeros(len(observed)) for _ in costs]
    for own, judge in ((halves[0], judges[1]), (halves[1], judges[0])):
        thinned, charges = _prepare(own, observed, DRAWS // 2)
        other, decodes = _ensembles(judge), decode_set(thinned, costs, charges, **options)
        for risk, cost, found in zip(risks, costs, decodes, strict=True):
            risk += 0.5 * expected_distance_set(found.times, found.types, found.offsets, other, cost)
    return risks


def _counter(progress: Callable[[int], None] | None, passes: int) -> Callable[[], None] | None:
    """Called once for each stream and pass, calls ``progress`` with the streams that these make in all."""
    if progress is None:
        return None
    calls = itertools.count(1)
    return lambda: progress(next(calls) // passes)


def _ensembles(guesses: Guesses) -> Ensembles:
    return Ensembles(guesses.event_times, guesses.event_types, guesses.offsets, guesses.weights)


def _prepare(guesses: Guesses, observed: StreamSet, draws: int) -> tuple[Ensembles, Charges]:
    """Thinned guesses, and what a consensus event costs in each segment."""
    families = guesses.effective_families
    per_segment = 1.0 / families[~np.isnan(families)] + (1.0 / draws if draws < guesses.weights.shape[1] else 0.0)
    N = len(observed)
    offsets = observed.offsets + np.arange(N + 1)
    starts = np.empty(int(offsets[-1]))
    first = np.zeros(len(starts), dtype=bool)
    first[offsets[:-1]] = True
    starts[first], starts[~first] = observed.starts, observed.event_times
    charges = Charges(starts, PSEUDO_COUNT * per_segment, offsets)
    return thin_set(_ensembles(guesses), draws, np.full(N, 0.5)), charges


def as_streams(found: Decodes, observed: StreamSet) -> StreamSet:
    """Decodes of observed streams, with what is known of each event as columns."""
    columns = {"probability": found.probability.round(6), "earliest": found.earliest, "latest": found.latest}
    o = observed
    return StreamSet.trusted(
        found.times, found.types, found.offsets, o.starts, o.ends, o.ids, o.types, columns=columns, axis=o.axis
    )
