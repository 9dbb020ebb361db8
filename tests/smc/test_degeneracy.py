"""Islands leave the posterior as it is: against exact answers."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch

from retrodict.errors import ModelError
from retrodict.events.stream import EventStream
from retrodict.events.stream_set import StreamSet
from retrodict.missingness import ByType
from retrodict.models.simulate import simulate
from retrodict.proposals import Filtering
from retrodict.smc import decision, tracing
from retrodict.smc.impute import impute
from tests.conftest import random_neural_hawkes
from tests.smc.test_exact import CASES, _random_smoothing, golden_case

RUNS = 700


def many(observed: StreamSet, count: int) -> StreamSet:
    one = observed[0]
    return StreamSet([EventStream(one.times, one.types, end=one.end, id=i) for i in range(count)], types=observed.types)


def proposal_of(kind, model, mechanism):
    return Filtering(model, mechanism) if kind == "filtering" else _random_smoothing(model, mechanism)


def errors_of_islands(name, kind) -> tuple[float, list[float]]:
    """z-scores of evidence and counts of 24 runs with 200 islands of 2, which only their evidence can put right."""
    model, mechanism, observed, exact = golden_case(name)
    proposal = proposal_of(kind, model, mechanism)
    posterior = impute(observed, proposal, particles=400, seed=5, islands=200)
    evidence = np.exp(posterior.log_evidence - exact["log_evidence"])
    runs = math.sqrt(len(observed))
    scores = []
    for k in range(model.num_types):
        error = evidence * (posterior.expected_count(k) - exact["E_count"][k])
        scores.append(abs(error.mean()) / (error.std() / runs + 1e-12))
    return abs(evidence.mean() - 1) / (evidence.std() / runs + 1e-12), scores


@pytest.mark.parametrize("kind", ["filtering", "smoothing"])
@pytest.mark.parametrize("name", CASES)
def test_islands_are_exact(name, kind):
    evidence, counts = errors_of_islands(name, kind)
    assert evidence < 3.3
    assert max(counts) < 3.3


def test_islands_that_count_the_same_are_noticed(monkeypatch):
    """The test above can fail: leave their evidence out of the islands' weights."""
    plain = tracing.unite_weights

    def blind(log_weights, log_evidence, islands):
        return plain(log_weights, torch.zeros_like(log_evidence), islands)[0], plain(
            log_weights, log_evidence, islands
        )[1]

    monkeypatch.setattr(tracing, "unite_weights", blind)
    evidence, counts = errors_of_islands(CASES[0], "smoothing")
    assert max(evidence, *counts) > 5


def test_one_island_is_the_plain_run_and_the_first_of_several():
    model, mechanism = random_neural_hawkes(), ByType(0.5)
    observed, _ = mechanism.censor(simulate(model, 5, end=3.0, seed=1), seed=1)
    plain = impute(observed, Filtering(model, mechanism), particles=10, seed=2, islands=1)
    split = impute(observed, Filtering(model, mechanism), particles=20, seed=2, islands=2)
    for i in range(5):
        for ours, theirs in zip(plain.particles(i), split.particles(i)[:10], strict=True):
            np.testing.assert_allclose(ours.times, theirs.times, rtol=0, atol=1e-9)
    np.testing.assert_allclose(split.all_weights.sum(1), 1)


def test_halves_are_the_islands_with_weights_of_their_own():
    model, mechanism = random_neural_hawkes(seed=4), ByType(0.5)
    observed, _ = mechanism.censor(simulate(model, 5, end=6.0, seed=1), seed=1)
    alone = impute(observed, Filtering(model, mechanism), particles=10, seed=2, islands=1)
    posterior = impute(observed, Filtering(model, mechanism), particles=20, seed=2)
    assert posterior.full.islands == posterior.lagged.islands == 2
    first, second = posterior.full.halves()
    np.testing.assert_allclose(first.weights, alone.full.weights, rtol=1e-9)
    np.testing.assert_allclose(first.event_times, alone.full.event_times, rtol=0, atol=1e-9)
    np.testing.assert_allclose(first.families, alone.full.families, rtol=1e-9)
    np.testing.assert_allclose(second.weights.sum(1), 1)
    shares = posterior.full.weights.reshape(5, 2, 10).sum(2)
    families = 1 / (shares[:, :1] ** 2 / first.families[:, 0] + shares[:, 1:] ** 2 / second.families[:, 0])
    np.testing.assert_allclose(posterior.full.effective_families, families)
    np.testing.assert_allclose(posterior.lagged.weights, 1 / 20)


def test_expected_counts_of_halves_are_those_of_the_halves():
    model, mechanism = random_neural_hawkes(seed=4), ByType(0.5)
    observed, _ = mechanism.censor(simulate(model, 5, end=6.0, seed=1), seed=1)
    guesses = impute(observed, Filtering(model, mechanism), particles=30, seed=2, islands=3).full
    found = guesses.expected_counts_of_halves(observed)
    for half, counts in zip(guesses.halves(), found, strict=True):
        np.testing.assert_array_equal(counts, half.expected_counts(observed))
    np.testing.assert_allclose(guesses.expected_counts(observed).sum(), (guesses.weights * guesses.counts()).sum())


def test_a_sample_of_streams_chooses_what_to_decode_whatever_their_order(monkeypatch):
    model, mechanism = random_neural_hawkes(seed=4), ByType(0.5)
    observed, _ = mechanism.censor(simulate(model, 12, end=6.0, seed=1), seed=1)
    proposal, asked = Filtering(model, mechanism), []
    monkeypatch.setattr(decision, "JUDGED", 5)
    cross_fit = decision._cross_fit
    monkeypatch.setattr(decision, "_cross_fit", lambda p, *_: asked.append(p.observed.ids) or cross_fit(p, *_))
    posterior, turned = (impute(streams, proposal, 40, seed=2) for streams in (observed, observed[::-1]))
    done = []
    ours, theirs = posterior.consensus(3.0, progress=done.append), turned.consensus(3.0)
    assert done[-1] == 12
    assert [len(ids) for ids in asked] == [5, 5]
    assert set(asked[0]) == set(asked[1])
    assert ours.num_events > 0
    assert list(ours) == list(theirs)[::-1]
    decided = posterior.decide([3.0])[0]
    assert decided.streams == ours
    assert len(decided.risk) == 12


def test_a_set_without_streams_is_imputed():
    model, mechanism = random_neural_hawkes(), ByType(0.5)
    nothing = StreamSet([], types=["0", "1", "2"])
    for options in ({}, {"islands": 4}, {"engine": "torch"}):
        posterior = impute(nothing, Filtering(model, mechanism), particles=4, **options)
        assert len(posterior) == 0
        assert posterior.expected_count().shape == (0,)


def test_islands_that_do_not_divide_the_particles_are_refused():
    model, mechanism = random_neural_hawkes(), ByType(0.5)
    observed, _ = mechanism.censor(simulate(model, 2, end=3.0, seed=1), seed=1)
    with pytest.raises(ModelError, match="islands"):
        impute(observed, Filtering(model, mechanism), particles=10, islands=3)
