"""Is an imputation to be believed? Hidden events of complete streams against what the posterior says of them.

Given what was observed, the truth is one more draw from an exact posterior. So, stream by stream, the number of hidden
events is on average the expected one, its rank among the posterior's guesses is uniform (simulation-based
calibration, Talts et al., 2018), an event of probability 0.8 is there 8 times out of 10, and a 90 % interval holds
the true time 9 times out of 10.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields

import numpy as np
from numpy.typing import NDArray

from retrodict.decode.transport import as_cost
from retrodict.evaluate.findings import Finding, legendre, mean_finding, worst
from retrodict.evaluate.matching import pair_streams
from retrodict.evaluate.scores import INTERVAL_LEVEL, transport_score
from retrodict.events.stream_set import StreamSet
from retrodict.smc.diagnostics import FEW
from retrodict.smc.posterior import Posterior

PART = "imputation"
COVERAGE, RELIABILITY, DISTANCE = "90 % intervals that hold the truth", "probability, more than true", "distance"
TOP, TENTHS = "probability of 0.9 or more, more than true", "probability by tenths, more than true"
EXCESS = "expected events, more than hidden"
WIDE = "90 % intervals with the truth well inside"
SPREAD, FAMILIES = "spread of the ranks", "streams with few independent guesses"
SCOPES = ("all hidden events", "first half", "second half", "by type")  # columns of ``ranks``
_COUNTS, _COUNTS_BY_TYPE, _RANKS, _COVERAGE, _PROBABILITY, _DISTANCE = 0.05, 0.1, 0.15, 0.1, 0.05, 0.05
_WIDE = 0.05  # at most 95 % of the true times between the ends of their 90 % intervals, ends left out
_FEWEST = 10.0  # events of a type, expected or hidden, for a finding about it
_FEWEST_ALIGNED = 20.0  # imputed events for a finding about intervals and probabilities
BINS = 10  # of probabilities


@dataclass(frozen=True)
class Calibration:
    """N streams, K types, C costs.

    ``hidden``, ``expected`` and ``variance`` [N, K + 1]: events by type and, last, in all; how many there were, and
    mean and variance of their number in the posterior. ``ranks`` [N, K + 3]: of the number hidden in all, in the first
    half, in the second, and of each type, uniform on [0, 1] if all is well. ``aligned``, ``covered``, ``inside`` [N]:
    imputed events aligned to a true one, how many of their intervals hold it, and how many hold it other than at an end
    (at most 90 % for any exact posterior, also where a time is certain). ``probability``, ``found``, ``held``,
    ``owner`` and ``kind`` [E]: of each imputed event, whether it is aligned to a true one, whether its interval holds
    that, its stream and its type. ``distance`` and ``constant`` [N, C]: to
    the truth, of the consensus and of that of a process of constant rates. ``families`` [N], ``possible`` [N]: see
    ``effective_families``, and whether the model gives what was observed any probability.
    """

    hidden: NDArray[np.int64]
    expected: NDArray[np.float64]
    variance: NDArray[np.float64]
    ranks: NDArray[np.float64]
    aligned: NDArray[np.int64]
    covered: NDArray[np.int64]
    inside: NDArray[np.int64]
    probability: NDArray[np.float64]
    found: NDArray[np.bool_]
    held: NDArray[np.bool_]
    owner: NDArray[np.int64]
    kind: NDArray[np.int64]
    distance: NDArray[np.float64]
    constant: NDArray[np.float64]
    families: NDArray[np.float64]
    possible: NDArray[np.bool_]

    @classmethod
    def concatenate(cls, parts: Sequence[Calibration]) -> Calibration:
        """Those of several groups of streams."""
        first = np.cumsum([0, *(len(p.hidden) for p in parts)])
        joined = {f.name: np.concatenate([getattr(p, f.name) for p in parts]) for f in fields(cls)}
        joined["owner"] = np.concatenate([p.owner + n for p, n in zip(parts, first, strict=False)])
        return cls(**joined)

    def by_stream(self, events: NDArray[np.float64]) -> NDArray[np.float64]:
        """Sums over each stream's imputed events, [N]."""
        return np.bincount(self.owner, events, len(self.hidden)).astype(np.float64)

    def scope(self, number: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """The ranks of one of ``SCOPES`` and the weight of each, [N, *]; types weigh as much as is expected of them."""
        if number < 3:
            return self.ranks[:, number : number + 1], np.ones((len(self.ranks), 1))
        weights = np.sqrt(self.expected[:, :-1] + 0.01)
        weights[:, self.hidden[:, :-1].sum(0) + self.expected[:, :-1].sum(0) < 1e-9] = 0.0
        return self.ranks[:, 3:], weights

    def findings(self, types: Sequence[str], costs: Sequence[float]) -> list[Finding]:
        """Everything that can raise an alarm or a remark; the middle cost is that of coverage and probabilities."""
        total = self.hidden[:, -1]
        excess = self.expected - self.hidden
        nothing = total[:, None] * np.asarray(costs)
        gain = [
            mean_finding(
                PART, f"{DISTANCE} at cost {cost:.3g}, share of predicting nothing", self.distance[:, c], nothing[:, c],
                expected=1.0, tolerance=_DISTANCE, side=1,
            )
            for c, cost in enumerate(costs)
        ]  # fmt: skip
        by_type = [
            mean_finding(
                PART, "expected events of a type, more than hidden", excess[:, k], self.hidden[:, k],
                tolerance=_COUNTS_BY_TYPE, least=self.variance[:, k], of=types[k],
            )
            for k in range(len(types))
            if self.hidden[:, k].any() and max(self.hidden[:, k].sum(), self.expected[:, k].sum()) >= _FEWEST
        ]  # fmt: skip
        return [
            mean_finding(PART, EXCESS, excess[:, -1], total, tolerance=_COUNTS, least=self.variance[:, -1]),
            *worst(by_type),
            *(finding for number in range(len(SCOPES)) for finding in self._rank_findings(number)),
            self.coverage(),
            mean_finding(PART, WIDE, self.inside, self.aligned, expected=INTERVAL_LEVEL, tolerance=_WIDE, side=1,
                         least=INTERVAL_LEVEL * (1 - INTERVAL_LEVEL) * self.aligned, fewest=_FEWEST_ALIGNED,
                         harmless=True),
            self.excess_of(np.ones(len(self.owner), dtype=bool), RELIABILITY),
            self.excess_of(self.bins == BINS - 1, TOP),
            *worst([self.excess_of(self.bins == b, TENTHS, of=f"{b / BINS:g} to {(b + 1) / BINS:g}")
                    for b in np.unique(self.bins) if b < BINS - 1]),
            *worst(gain),
            mean_finding(PART, FAMILIES, self.families < FEW, tolerance=0.5, side=1, least=0.01),
            mean_finding(PART, "streams that the model finds impossible", ~self.possible, tolerance=0.01, side=1,
                         least=0.01),
        ]  # fmt: skip

    @property
    def bins(self) -> NDArray[np.int64]:
        """The bin that the probability of each imputed event lies in, [E]."""
        return np.minimum((self.probability * BINS).astype(np.int64), BINS - 1)

    def excess_of(self, chosen: NDArray[np.bool_], name: str, of: str | None = None) -> Finding:
        """By how much the probabilities of chosen events [E] are above the share of these that was there."""
        off, known = self.probability - self.found, self.probability * (1 - self.probability)
        return mean_finding(
            PART, name, self.by_stream(chosen * off), self.by_stream(chosen.astype(np.float64)),
            tolerance=_PROBABILITY, fewest=_FEWEST_ALIGNED, least=self.by_stream(chosen * known), of=of,
        )  # fmt: skip

    def coverage(self) -> Finding:
        """How many of the 90 % intervals of imputed events hold the true time."""
        least = INTERVAL_LEVEL * (1 - INTERVAL_LEVEL) * self.aligned
        return mean_finding(
            PART, COVERAGE, self.covered, self.aligned, expected=INTERVAL_LEVEL, tolerance=_COVERAGE, side=-1,
            least=least, fewest=_FEWEST_ALIGNED,
        )  # fmt: skip

    def _rank_findings(self, number: int) -> list[Finding]:
        """Neyman's smooth test: means of Legendre polynomials of the ranks."""
        ranks, weights = self.scope(number)
        mean = weights / np.maximum(weights.sum(1, keepdims=True), 1e-300)
        some = weights.sum(1) > 0
        return [
            mean_finding(PART, f"{name}, {SCOPES[number]}", (mean * values).sum(1)[some], tolerance=_RANKS)
            for name, values in zip(("centre of the ranks", SPREAD), legendre(ranks), strict=True)
        ]


def effective_families(posterior: Posterior) -> NDArray[np.float64]:
    """The effective families of the thinnest segment of each stream, [N]: what path degeneracy leaves."""
    return np.asarray(np.nanmin(posterior.full.effective_families, axis=1))


def calibrate(
    posterior: Posterior, baseline: Posterior, hidden: StreamSet, costs: Sequence[float], seed: int, done: int = 0
) -> Calibration:
    """Compare a posterior, and that of constant rates, with the events that were hidden.

    ``done`` is the number of streams compared before these: ties among ranks are broken by numbers of their own.
    """
    observed, hidden = posterior.observed, hidden.with_types(posterior.observed.types)
    guess, actual = _table(posterior), _true_table(hidden)
    weights = posterior.all_weights[..., None]
    mean = (weights * guess).sum(1)
    variance = (weights * (guess - mean[:, None]) ** 2).sum(1)
    draws = np.random.default_rng([seed, done]).random(actual.shape)
    middle = len(costs) // 2
    decodes, constant = ([each.consensus(cost) for cost in costs] for each in (posterior, baseline))
    best = decodes[middle]
    when = pair_streams(hidden, best).aligned_times(as_cost(costs[middle]))
    low, high, probability = (best.columns.get(name, np.zeros(0)) for name in ("earliest", "latest", "probability"))

    def distances(answers: list[StreamSet]) -> NDArray[np.float64]:
        each = [transport_score(hidden, answer, cost) for answer, cost in zip(answers, costs, strict=True)]
        return np.stack([score.distance_by_stream for score in each], 1)

    def by_stream(events: NDArray[np.bool_]) -> NDArray[np.int64]:
        return np.bincount(best.stream_of_event[events], minlength=len(observed))

    types_then_all = [*range(3, actual.shape[1]), 0]
    return Calibration(
        hidden=actual[:, types_then_all],
        expected=mean[:, types_then_all],
        variance=variance[:, types_then_all],
        ranks=rank_among(weights, guess, actual, posterior.diagnostics.final_ess[:, None], draws),
        aligned=by_stream(~np.isnan(when)),
        covered=by_stream((low <= when) & (when <= high)),
        inside=by_stream((low < when) & (when < high)),
        probability=probability,
        found=~np.isnan(when),
        held=(low <= when) & (when <= high),
        owner=best.stream_of_event,
        kind=best.event_types,
        distance=distances(decodes),
        constant=distances(constant),
        families=effective_families(posterior),
        possible=np.isfinite(posterior.log_evidence),
    )


def _table(posterior: Posterior) -> NDArray[np.int64]:
    """Events of each particle in all, in the first half, in the second, and of each type, [N, M, K + 3]."""
    N, M = posterior.all_weights.shape
    particle = np.repeat(np.arange(N * M), np.diff(posterior.offsets))
    middle = (posterior.observed.starts + 0.5 * posterior.observed.durations)[particle // M]
    table = _count(particle, posterior.event_times > middle, posterior.event_types, N * M, posterior.observed.num_types)
    return table.reshape(N, M, -1)


def _true_table(hidden: StreamSet) -> NDArray[np.int64]:
    """The same of the hidden events, [N, K + 3]."""
    owner = hidden.stream_of_event
    middle = (hidden.starts + 0.5 * hidden.durations)[owner]
    return _count(owner, hidden.event_times > middle, hidden.event_types, len(hidden), hidden.num_types)


def _count(
    row: NDArray[np.int64], late: NDArray[np.bool_], types: NDArray[np.int64], rows: int, num_types: int
) -> NDArray[np.int64]:
    table = np.zeros((rows, num_types + 3), dtype=np.int64)
    np.add.at(table, (row, np.where(late, 2, 1)), 1)
    np.add.at(table, (row, types + 3), 1)
    table[:, 0] = table[:, 1] + table[:, 2]
    return table


def rank_among(
    weights: NDArray[np.float64],
    guess: NDArray[np.int64],
    actual: NDArray[np.int64],
    ess: NDArray[np.float64],
    draws: NDArray[np.float64],
) -> NDArray[np.float64]:
    """Where the truth falls among weighted guesses, ties broken at random, on [0, 1].

    Exactly uniform for n independent draws: the truth takes one of n + 1 places. Weighted particles count for their
    effective number n; that many of them share ancestors is what the ranks are to show.
    """
    below = (weights * (guess < actual[:, None])).sum(1)
    equal = (weights * (guess == actual[:, None])).sum(1)
    return (ess * below + draws * (ess * equal + 1)) / (ess + 1)
