"""Long streams and many types: estimates before the work, limits that follow the length, the same answers."""

from __future__ import annotations

import re
import warnings

import numpy as np
import pytest
import torch

import retrodict as rd
from retrodict.models import hawkes as hawkes_file
from retrodict.smc import options as smc_options
from tests.conftest import compiled

MODEL = rd.Hawkes([0.5, 0.5], [[0.1, 0.1], [0.1, 0.1]], 2.0)
FILTERING = rd.Filtering(MODEL, rd.ByType(0.5))


def stream(events: int) -> rd.StreamSet:
    times = np.cumsum(np.random.default_rng(0).exponential(1.0, events))
    return rd.StreamSet([rd.EventStream(times, [0] * events, end=times[-1] + 1)], types=["0", "1"])


def test_more_particles_than_fit_are_refused_with_an_estimate_before_any_work():
    estimate = r"1,000 particles of 1 streams would need about 2.6 GiB .* rd.Online .* \(100,000 events\)"
    with rd.limits(memory=1e9), pytest.raises(rd.LimitError, match=estimate):
        rd.impute(stream(100_000), FILTERING, particles=1000)


@compiled
def test_by_default_a_long_stream_gets_as_many_particles_as_fit():
    with rd.limits(memory=4e7), pytest.warns(rd.DataNotice, match="particles are used for each stream, not 1,000"):
        posterior = rd.impute(stream(3000), FILTERING)
    assert 50 <= posterior.num_particles < 1000
    with warnings.catch_warnings():
        warnings.simplefilter("error", rd.DataNotice)
        assert rd.impute(stream(30), FILTERING).num_particles == 1000


def test_a_long_stream_may_have_more_missing_events(monkeypatch):
    """By default ten times its observed events, where that is more than the usual limit, which is lowered here."""
    monkeypatch.setattr("retrodict.smc.afford.MOST_EVENTS", 100)
    rd.impute(stream(1000), FILTERING, particles=2)
    with pytest.raises(rd.RunawayError, match="more than 100 missing"):
        rd.impute(stream(1000), FILTERING, particles=2, max_events=100)
    assert smc_options.MOST_EVENTS == 100_000


def test_a_hawkes_process_of_too_many_types_is_refused_when_it_is_made():
    with rd.limits(memory=1e6), pytest.raises(rd.LimitError, match=re.escape("300 types, each of which may excite")):
        rd.Hawkes([0.1] * 300, np.zeros((300, 300)).tolist(), 1.0)


@pytest.mark.parametrize(("decay", "chunk"), [(1.5, 5), ([1.5, 0.8, 3.0], 3)])
def test_shorter_chunks_change_no_likelihood(decay, chunk, monkeypatch):
    model = rd.Hawkes([0.5, 0.3, 0.2], [[0.3, 0.2, 0.0], [0.1, 0.2, 0.3], [0.4, 0.0, 0.1]], decay)
    streams = rd.simulate(model, 5, end=40.0, seed=0)
    before = model.log_likelihood(streams)
    monkeypatch.setattr(hawkes_file, "_PAIRS", 150)
    assert model._chunk(5) == chunk
    torch.testing.assert_close(model.log_likelihood(streams), before)


@compiled
@pytest.mark.parametrize("decay", [2.0, "by type"])
def test_a_model_of_many_types_has_the_evidence_of_the_reference(decay):
    """Hawkes processes of 60 types: native and torch agree on 16 streams in the mean log evidence."""
    generator = np.random.default_rng(0)
    excitation = np.zeros((60, 60))
    excitation[np.arange(60), generator.integers(0, 60, 60)] = 0.4
    model = rd.Hawkes([0.05] * 60, excitation.tolist(), generator.uniform(1, 3, 60).tolist() if decay != 2.0 else 2.0)
    missing = rd.ByType(0.4)
    observed, _ = missing.censor(rd.simulate(model, 16, end=3.0, seed=1), seed=1)
    one, other = (
        rd.impute(observed, rd.Filtering(model, missing), particles=200, seed=2, engine=engine).log_evidence
        for engine in ("native", "torch")
    )
    assert abs((one - other).mean()) < 3.3 * (one - other).std() / np.sqrt(16)
