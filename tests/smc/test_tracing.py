"""Ensembles are worked out when they are asked for, once, and say the same however streams were cut into batches."""

from __future__ import annotations

import pickle
import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

import retrodict as rd
from retrodict.smc import genealogy
from retrodict.smc.guesses import Guesses
from retrodict.smc.posterior import FIRST, _draw
from retrodict.smc.tracing import Tracing

MODEL, MISSING = rd.Hawkes([0.5, 0.3], [[0.3, 0.5], [0.2, 0.3]], 3.0), rd.ByType([0.5, 0.4])
OBSERVED, _ = MISSING.censor(rd.simulate(MODEL, FIRST + 10, end=6.0, seed=3), seed=3)
FILTERING = rd.Filtering(MODEL, MISSING)


def same(a: Guesses, b: Guesses) -> None:
    for name in ("event_times", "event_types", "offsets", "weights", "families"):
        np.testing.assert_allclose(
            getattr(a, name), getattr(b, name), rtol=1e-12, err_msg=name
        )  # sums of weights round


@pytest.fixture
def traced(monkeypatch) -> list[int]:
    """The numbers of runs that were traced back, so far."""
    sizes: list[int] = []
    plain = genealogy.trace_back

    def counted(run, *rest):
        sizes.append(len(run.log_evidence))
        return plain(run, *rest)

    monkeypatch.setattr(genealogy, "trace_back", counted)
    return sizes


def test_a_single_batch_is_traced_once_and_only_when_it_is_asked_for(traced):
    posterior = rd.impute(OBSERVED, FILTERING, 20, engine="torch")
    assert np.isfinite(posterior.log_evidence).all()
    assert posterior.is_possible.all()
    assert traced == []
    assert posterior.num_particles == 20
    assert posterior.diagnostics.ess.shape[0] == len(OBSERVED)
    assert posterior.chosen in (posterior.full, posterior.lagged)
    assert traced == [2 * len(OBSERVED)]


def test_all_but_the_last_of_several_batches_are_traced_meanwhile(traced):
    whole = rd.impute(OBSERVED, FILTERING, 20, engine="torch")
    parts = rd.impute(OBSERVED, FILTERING, 20, engine="torch", rows=400)  # 20 streams at once
    assert traced == [40, 40]
    same(parts.full, whole.full)
    same(parts.lagged, whole.lagged)
    there = ~np.isnan(whole.diagnostics.ess)
    for name in ("ess", "ahead"):
        own, other = (getattr(posterior.diagnostics, name)[there] for posterior in (parts, whole))
        np.testing.assert_allclose(own, other, err_msg=name)
    np.testing.assert_array_equal(parts.diagnostics.resamplings, whole.diagnostics.resamplings)


def test_many_threads_that_ask_at_once_are_given_the_same(traced):
    posterior = rd.impute(OBSERVED, FILTERING, 20, engine="torch")
    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(lambda _: posterior.lagged, range(8)))
    assert all(guesses is found[0] for guesses in found)
    assert len(traced) == 1


def test_a_posterior_that_nobody_has_asked_can_be_pickled():
    posterior = rd.impute(OBSERVED, FILTERING, 20, engine="torch")
    copy = pickle.loads(pickle.dumps(posterior))
    same(copy.full, posterior.full)
    same(copy.lagged, posterior.lagged)


def test_what_a_posterior_does_not_have_is_said_as_always():
    posterior = rd.impute(OBSERVED, FILTERING, 20, engine="torch")
    with pytest.raises(AttributeError, match="'Posterior' object has no attribute 'fuller'"):
        posterior.fuller  # noqa: B018


@pytest.mark.parametrize("rows", [None, 300])
def test_the_draw_that_is_at_hand_is_one_of_the_full_ensemble(monkeypatch, rows):
    kept: list[Tracing] = []
    plain = Tracing.__init__
    monkeypatch.setattr(Tracing, "__init__", lambda self, *given: (plain(self, *given), kept.append(self))[0])
    posterior = rd.impute(OBSERVED, FILTERING, 20, engine="torch", rows=rows)
    expected = _draw(posterior.full, OBSERVED[:FIRST], np.random.default_rng(0))
    assert expected.num_events > FIRST
    assert kept[0].first_draw() == expected


def test_an_engine_that_fails_leaves_no_thread_behind():
    with pytest.raises(rd.RunawayError):
        rd.impute(OBSERVED, FILTERING, 20, engine="torch", rows=400, max_events=2)
    assert not [thread for thread in threading.enumerate() if "trace" in thread.name]
