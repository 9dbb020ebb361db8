"""Families and lagged guesses against what the definitions say, on the records of real runs."""

from __future__ import annotations

import numpy as np
import pytest
import torch

import retrodict as rd
from retrodict.events.batch import make_batch
from retrodict.random import stream_keys
from retrodict.smc import genealogy
from retrodict.smc.engines import ENGINES
from retrodict.smc.genealogy import trace_back
from retrodict.smc.options import Options
from retrodict.smc.particles import Result
from retrodict.smc.resampling import systematic

M = 40


@pytest.fixture(scope="module", params=["torch", "native"])
def run(request) -> tuple[rd.StreamSet, Result]:
    """Three streams of unequal length, resampled often; one has nothing observed."""
    if ENGINES[request.param].unavailable():
        pytest.skip("not built")
    model, mechanism = rd.Hawkes([0.5, 0.3], [[0.3, 0.5], [0.2, 0.3]], 3.0), rd.ByType([0.5, 0.4])
    observed, _ = mechanism.censor(rd.simulate(model, 2, end=12.0, seed=3), seed=3)
    nothing = rd.EventStream([], [], end=12.0, id="nothing")
    observed = rd.StreamSet([*observed, nothing], types=observed.types)
    batch = make_batch(observed, dtype=torch.float64)
    options = Options(M, systematic, 0.8)
    keys = stream_keys(1, observed.ids)
    return observed, ENGINES[request.param].run(batch, rd.Filtering(model, mechanism), keys, options)


def ancestors(run: Result, b: int, h: int, i: int) -> np.ndarray:
    """Who drew segment i for each particle of segment h >= i, [M]."""
    lineage = np.arange(M)
    for s in range(h - 1, i - 1, -1):
        lineage = run.trace.parents[b, s].numpy()[lineage]
    return lineage


def family_weights(run: Result, b: int, h: int, i: int) -> np.ndarray:
    """The weight at h of the family of each particle that drew segment i, [M]."""
    weights = torch.softmax(run.trace.log_weights[b, h], 0).numpy()
    return np.bincount(ancestors(run, b, h, i), weights=weights, minlength=M)


def drawn(run: Result, b: int, s: int, m: int) -> tuple[tuple[float, int], ...]:
    """The events that particle m drew in segment s."""
    end = run.trace.heads[b, s - 1, run.trace.parents[b, s - 1, m]] if s else -1
    node, events = run.trace.heads[b, s, m], []
    while node != end:
        events.append((float(run.forest.times[node]), int(run.forest.types[node])))
        node = run.forest.before[node]
    return tuple(events[::-1])


def test_families_and_reach_are_what_they_are_defined_as(run):
    observed, result = run
    full, lagged, reach = trace_back(result, stream_keys(2, observed.ids))
    for b, steps in enumerate(result.steps.tolist()):
        assert np.isnan(full.families[b, steps:]).all()
        for i in range(steps):
            sizes = [1 / (family_weights(result, b, h, i) ** 2).sum() for h in range(i, steps)]
            assert full.families[b, i] == pytest.approx(sizes[-1])
            enough = [h for h, size in enumerate(sizes, i) if size >= genealogy.FAMILIES]
            assert reach[b, i] == (max(enough) if enough else i)
            assert lagged.families[b, i] == pytest.approx(sizes[reach[b, i] - i])
        assert (np.diff(reach[b, :steps]) >= 0).all()
    assert (reach[0, : int(result.steps[0])] < int(result.steps[0]) - 1).any()  # there is something to see


def test_the_full_ensemble_is_what_the_run_ends_with(run):
    observed, result = run
    full, _, _ = trace_back(result, stream_keys(2, observed.ids))
    sample = result.sample
    np.testing.assert_array_equal(full.counts, sample.counts)
    kept = torch.arange(sample.times.shape[2]) < sample.counts[..., None]
    np.testing.assert_array_equal(full.times, sample.times[kept])
    np.testing.assert_array_equal(full.types, sample.types[kept])


def test_lagged_guesses_have_each_segment_from_a_family_in_proportion_to_its_weight(run):
    """Picks are systematic, so that each is right on average and off by less than one particle in 40."""
    observed, result = run
    edges, rounds = [[0.0, *stream.times, stream.end] for stream in observed], 100
    shares = [[{} for _ in range(steps)] for steps in result.steps.tolist()]
    for r in range(rounds):
        _, lagged, reach = trace_back(result, stream_keys(r, observed.ids))
        guesses = np.split(np.column_stack([lagged.times, lagged.types]), np.cumsum(lagged.counts.reshape(-1))[:-1])
        for b, by_segment in enumerate(shares):
            for events in guesses[b * M : (b + 1) * M]:
                segment = np.searchsorted(edges[b], events[:, 0], side="left") - 1
                for s, found in enumerate(by_segment):
                    own = tuple((t, int(k)) for t, k in events[segment == s])
                    found[own] = found.get(own, 0.0) + 1 / M / rounds
    for b, by_segment in enumerate(shares):
        for s, found in enumerate(by_segment):
            weights, wanted = family_weights(result, b, int(reach[b, s]), s), {}
            for m in np.flatnonzero(weights):
                wanted[drawn(result, b, s, m)] = wanted.get(drawn(result, b, s, m), 0.0) + weights[m]
            assert set(found) <= set(wanted)
            for events, share in wanted.items():
                assert found.get(events, 0.0) == pytest.approx(share, abs=4 * np.sqrt(share / M / rounds) + 1e-9)


def test_with_families_enough_nothing_lags_and_with_none_segments_stand_alone(run, monkeypatch):
    observed, result = run
    keys = stream_keys(2, observed.ids)
    monkeypatch.setattr(genealogy, "FAMILIES", 0.0)
    _, _, reach = trace_back(result, keys)
    last = np.repeat(result.steps.numpy()[:, None] - 1, reach.shape[1], 1)
    inside = np.arange(reach.shape[1]) <= last
    np.testing.assert_array_equal(reach[inside], last[inside])
    monkeypatch.setattr(genealogy, "FAMILIES", 1e9)
    _, _, reach = trace_back(result, keys)
    np.testing.assert_array_equal(reach[inside], np.broadcast_to(np.arange(reach.shape[1]), reach.shape)[inside])


def test_threads_and_batches_change_nothing(monkeypatch):
    monkeypatch.setattr("retrodict.smc.threads._LITTLE", 1000)
    model, mechanism = rd.Hawkes([0.5, 0.3], [[0.3, 0.5], [0.2, 0.3]], 3.0), rd.ByType([0.5, 0.4])
    observed, _ = mechanism.censor(rd.simulate(model, 24, end=12.0, seed=3), seed=3)
    filtering, before = rd.Filtering(model, mechanism), torch.get_num_threads()
    try:
        torch.set_num_threads(4)
        together = rd.impute(observed, filtering, 400, seed=5)
        torch.set_num_threads(1)
        apart = rd.impute(observed[::-1], filtering, 400, seed=5, rows=1200)
    finally:
        torch.set_num_threads(before)
    for i in range(24):
        for ours, theirs in zip(
            together.lagged.of(together.observed, i), apart.lagged.of(apart.observed, 23 - i), strict=True
        ):
            assert ours == theirs
    np.testing.assert_array_equal(together.full.event_times, apart.full.of_streams(np.arange(24)[::-1]).event_times)
    np.testing.assert_array_equal(together.full.weights, apart.full.weights[::-1])
    np.testing.assert_array_equal(together.diagnostics.resamplings, apart.diagnostics.resamplings[::-1])
    np.testing.assert_array_equal(together.expected_count("0", 2.0, 9.0), apart.expected_count("0", 2.0, 9.0)[::-1])
    assert (together.chosen is together.full) == (apart.chosen is apart.full)
