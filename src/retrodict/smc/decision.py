"""The consensus of a posterior (section 4), from the ensemble that another run agrees with, and its honest risk.

Guesses are thinned to ``DRAWS`` draws, and every consensus event is charged a pseudo-count: C_delete / N for the N
effective guesses of its segment, so that what few independent guesses say is not believed (one alone never is). Both
halves of the islands are decoded in each way, full and lagged, and scored under the full ensemble of the other half,

    R = ½ [L_B(z_A) + L_A(z_B)],

which, unlike the risk of a decode under the guesses it was made from, is not optimistic. The way of the lesser R, over
``JUDGED`` streams together (all, if there are no more), decodes all guesses; R is the risk that is reported. A choice
between two ways needs no more streams: where they cannot tell the ways apart, it matters little which is taken.

The full ensemble is tried only where, like the lagged one, it has ``genealogy.FAMILIES`` families a segment on each
island (the harmonic mean, as noise goes with 1 / N). Half of it may otherwise have two families, impute nothing and
look harmless, where both halves together believe what four say.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from retrodict.decode import Charges, Decodes, Ensembles, decode_set, expected_distance_set, thin_set
from retrodict.decode.transport import Cost, CostLike, as_cost
from retrodict.events.io.known_layouts import has_layout
from retrodict.events.properties import carry
from retrodict.events.stream_set import StreamSet
from retrodict.smc.choice import JUDGED
from retrodict.smc.genealogy import FAMILIES
from retrodict.smc.guesses import Guesses

DRAWS = 200  # that the guesses of a stream are thinned to
PSEUDO_COUNT = 1.0
Way = Literal["full", "lagged"]
Risks = dict[Way, list[NDArray[np.float64]]]


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


class Judged(NamedTuple):
    """Both ensembles of N observed streams, those that are not ``possible`` [N] among them."""

    full: Guesses
    lagged: Guesses
    observed: StreamSet
    possible: NDArray[np.bool_]

    def of_streams(self, which: NDArray[np.int64]) -> Judged:
        """Some of the streams."""
        full, lagged = self.full.of_streams(which), self.lagged.of_streams(which)
        return Judged(full, lagged, self.observed[which], self.possible[which])


def decide(
    posterior: Judged,
    costs: Sequence[CostLike],
    ensemble: Way | None,
    progress: Callable[[int], None] | None,
    **options: Any,
) -> list[Decision]:
    """The consensus at each cost with its risk; ``ensemble`` None leaves the choice to the cross-fit.

    Streams that are not ``possible`` get no events.
    """
    prices, full = [as_cost(cost) for cost in costs], posterior.full
    expected = (full.weights * full.counts()).sum(1)
    judged = _some_streams(posterior.observed)
    tried = _ways(full.families[judged]) if ensemble is None else (ensemble,)
    passes = len(prices) + (2 * len(tried) if full.islands > 1 else 0)
    options["progress"] = _counter(progress, passes)
    risks = _cross_fit(posterior, tried, prices, options)
    decisions = []
    for c, price in enumerate(prices):
        best = _least(risks, tried, c, judged)
        found, streams = _decode(posterior, best, price, options)
        risk = risks[best][c] if risks else found.risk
        decisions.append(Decision(streams, best, risk, price.insert * expected))
    return decisions


def answer(
    posterior: Judged,
    cost: CostLike,
    ensemble: Way | None,
    progress: Callable[[int], None] | None,
    which: NDArray[np.int64] | None = None,
    **options: Any,
) -> StreamSet:
    """The consensus that ``decide`` gives, without its risk, for which every stream would be decoded three times.

    ``which`` names the streams to decode, if not all; which guesses are decoded does not hang on that.
    """
    price, way = as_cost(cost), ensemble
    if way is None:
        judged = _some_streams(posterior.observed)
        some = posterior if len(judged) == len(posterior.observed) else posterior.of_streams(judged)
        way = choose_way(some, price, options)
    posterior = posterior if which is None else posterior.of_streams(which)
    return _decode(posterior, way, price, options | {"progress": _counter(progress, 1)})[1]


def choose_way(some: Judged, cost: CostLike, options: dict[str, Any]) -> Way:
    """The way that decodes these streams best, by the cross-fit."""
    tried = _ways(some.full.families)
    if len(tried) == 1:
        return tried[0]
    return _least(_cross_fit(some, tried, [as_cost(cost)], options), tried, 0, slice(None))


def _ways(families: NDArray[np.float64]) -> tuple[Way, ...]:
    """What there is to choose from, given the effective families of the full ensemble, [N, I, S]."""
    noise = 1.0 / families[~np.isnan(families)]
    return ("lagged",) if len(noise) and noise.mean() > 1 / FAMILIES else ("full", "lagged")


def _some_streams(observed: StreamSet) -> NDArray[np.int64]:
    """The streams that choose the way, in their order; which they are follows from the ids of all."""
    if len(observed) <= JUDGED:
        return np.arange(len(observed))
    return np.sort(np.argsort(observed.id_keys, kind="stable")[:JUDGED])


def _least(risks: Risks, tried: Sequence[Way], cost: int, judged: Any) -> Way:
    """The way of the least risk over some streams; the last one tried where there is no independent run."""
    return min(tried, key=lambda way: float(risks[way][cost][judged].sum())) if risks else tried[-1]


def _decode(posterior: Judged, way: Way, price: Cost, options: dict[str, Any]) -> tuple[Decodes, StreamSet]:
    """The consensus of one ensemble, and as streams; those that are not possible have no events."""
    observed, possible = posterior.observed, posterior.possible
    thinned, charges = _prepare(getattr(posterior, way), observed, DRAWS)
    (found,) = decode_set(thinned, [price], charges, **options)
    streams = as_streams(found, observed)
    return found, streams if possible.all() else streams.keep(possible[streams.stream_of_event])


def _cross_fit(posterior: Judged, tried: Sequence[Way], costs: Sequence[Cost], options: dict[str, Any]) -> Risks:
    """R of each stream [N], for each way and cost; nothing where there is one island alone."""
    if posterior.full.islands < 2:
        return {}
    halves = posterior.full.halves()
    judges = [_ensembles(half) for half in halves]
    risks: Risks = {}
    for way in tried:
        risks[way] = [np.zeros(len(posterior.observed)) for _ in costs]
        owns = halves if way == "full" else posterior.lagged.halves()
        for own, other in zip(owns, reversed(judges), strict=True):
            thinned, charges = _prepare(own, posterior.observed, DRAWS // 2)
            decodes = decode_set(thinned, costs, charges, **options)
            for risk, cost, found in zip(risks[way], costs, decodes, strict=True):
                risk += 0.5 * expected_distance_set(
                    found.times, found.types, found.offsets, other, cost, threads=options.get("threads")
                )
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
    """Decodes of observed streams, with what is known of each event as columns, and of its stream in plain tables."""
    columns = {"probability": found.probability.round(6), "earliest": found.earliest, "latest": found.latest}
    if observed.source is None or not has_layout(observed.source.names):
        columns |= carry(observed, np.repeat(np.arange(len(observed)), np.diff(found.offsets)))
    o = observed
    return StreamSet.trusted(
        found.times, found.types, found.offsets, o.starts, o.ends, o.ids, o.types, columns=columns, axis=o.axis
    )
