"""Impute test streams, decode at every cost, and measure the distance to the truth (section 5.4)."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Literal, NamedTuple

import retrodict as rd
from experiments.baselines import best_rules, constant_rate, median_rules
from experiments.data import TEST_MASK, mechanism, test_pair
from experiments.sizes import DETERMINISTIC
from experiments.store import Run
from retrodict.decode import Ensembles, decode_set, most_probable
from retrodict.evaluate import TransportScore, transport_score
from retrodict.events.stream_set import StreamSet
from retrodict.smc.decision import as_streams


class Method(NamedTuple):
    """A proposal (``ours`` and ``paper`` are smoothers), options of ``rd.impute``, and how particles are decoded."""

    proposal: str
    options: Mapping[str, Any] = MappingProxyType({})
    decode: Literal["exact", "local"] | None = "exact"

    def prepare(self, run: Run, dataset: str, setting: str, device: str) -> rd.Proposal:
        """The proposal, on a device."""
        if self.proposal in ("ours", "paper"):
            return rd.load_proposal(run.model(dataset, f"{self.proposal}-{setting}"), device)
        train = run.splits(dataset).train
        missing = mechanism(setting, dataset, train.types)
        if self.proposal == "filtering":
            return rd.Filtering(rd.load_model(run.model(dataset), device), missing)
        return constant_rate(train, missing).to(device)


# As the paper has it: one run, multinomial resampling, one random point an interval, local search in all particles.
_PAPER = {"resample": "multinomial", "integral": rd.MonteCarlo(1), "islands": 1}
METHODS = {
    "smoothing": Method("ours"),
    "filtering": Method("filtering"),
    "paper-smoothing": Method("paper", _PAPER, "local"),
    "paper-filtering": Method("filtering", _PAPER, "local"),
    "constant-rate": Method("constant rate"),
    "smoothing-unresampled": Method("ours", {"resample": None}, None),
    "filtering-unresampled": Method("filtering", {"resample": None}, None),
}


def impute(
    run: Run, dataset: str, setting: str, method: str, particles: int, first: int, stop: int, device: str
) -> dict[str, Any]:
    """Impute test streams ``first`` to ``stop``: terms of the distance, and what the particles say, by stream."""
    observed, missing = (part[first:stop] for part in test_pair(run, dataset, setting))
    if not len(observed):
        return {"missing": []}
    chosen, costs = METHODS[method], run.kind(dataset).costs
    proposal = chosen.prepare(run, dataset, setting, device)
    posterior = rd.impute(observed, proposal, particles, **chosen.options)
    result = {
        "missing": missing.lengths,
        "ess": posterior.diagnostics.final_ess,
        "histories": _distinct_histories(posterior),
    }
    if chosen.decode is not None:
        if chosen.decode == "exact":
            answers = [decision.streams for decision in posterior.decide(costs)]
        else:
            particles_of = Ensembles(*(getattr(posterior.full, name) for name in Ensembles._fields))
            answers = [as_streams(found, observed) for found in decode_set(particles_of, costs, method=chosen.decode)]
        result["consensus"] = _terms([transport_score(missing, *pair) for pair in zip(answers, costs, strict=True)])
    if method == "smoothing":
        heaviest = [most_probable(posterior.particles(i), posterior.weights(i)) for i in range(len(posterior))]
        single = StreamSet(heaviest, observed.types, observed.axis)
        result["most_probable"] = _terms([transport_score(missing, single, cost) for cost in costs])
    return result


def _distinct_histories(posterior: rd.Posterior) -> list[int]:
    """How many different guesses particles with weight have of the first half of each stream."""
    half = posterior.observed.starts + 0.5 * posterior.observed.durations
    result = []
    for i in range(len(posterior)):
        pairs = zip(posterior.particles(i), posterior.weights(i), strict=True)
        early = {(z.times[z.times <= half[i]].tobytes(), z.types[z.times <= half[i]].tobytes()) for z, w in pairs if w}
        result.append(len(early))
    return result


def median_rule(run: Run, dataset: str) -> dict[str, Any]:
    """The rule that puts a hidden event the median time before each seen one; its variant is chosen on dev."""
    train, dev, _ = run.splits(dataset)
    kind = run.kind(dataset)
    missing = mechanism(DETERMINISTIC, dataset, train.types)
    best = best_rules(median_rules(train, missing), *missing.censor(dev, seed=TEST_MASK), kind.costs)
    observed, truth = (part[: kind.imputed] for part in test_pair(run, dataset, DETERMINISTIC))
    pairs = zip(best, kind.costs, strict=True)
    scores = [transport_score(truth, rule.impute(observed), cost) for rule, cost in pairs]
    return {"missing": truth.lengths, "consensus": _terms(scores)}


def _terms(scores: list[TransportScore]) -> dict[str, Any]:
    """The two terms of the distance, [cost][stream]: insertions and deletions, and time moved."""
    return {
        "edits": [score.inserted.sum(1) + score.deleted.sum(1) for score in scores],
        "moved": [score.moved.sum(1) for score in scores],
    }
