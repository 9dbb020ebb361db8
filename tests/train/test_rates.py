"""Standard errors of learned missing rates, and rates that the streams do not tell."""

from __future__ import annotations

import json
import warnings

import numpy as np
import pytest
import torch

import retrodict as rd
from retrodict.train.information import information, moments
from retrodict.train.rates import RateEstimates, estimate_rates

RATES, TIME = np.array([0.8, 0.3]), 1000.0
POISSON = rd.Poisson(RATES.tolist())
HAWKES = rd.Hawkes([0.4, 0.3], [[0.3, 0.4], [0.2, 0.2]], 2.0)


def thinned(rho: list[float], seed: int = 5) -> rd.StreamSet:
    """100 streams of 10 units of time of the Poisson process, with events missing."""
    return rd.ByType(rho).censor(rd.simulate(POISSON, 100, end=10.0, seed=seed), seed=seed + 1)[0]


def test_curvature_of_the_evidence_is_exact_for_a_poisson_process():
    """There the evidence is n log (1 - ρ) + λ T ρ and a constant, so that its derivatives are known."""
    seen, rho, types = thinned([0.3, 0.6]), np.array([0.35, 0.5]), np.arange(2)
    proposal = rd.Filtering(POISSON, rd.ByType(rho.tolist()))
    found = information([moments(rd.impute(seen, proposal, 400, seed=s), types) for s in range(4)], seen, types, rho)
    n = np.bincount(seen.event_types, minlength=2)
    score, matrix = rho * ((1 - rho) * RATES * TIME - n), rho * (1 - rho) * (n - RATES * TIME * (1 - 2 * rho))
    sd = np.sqrt(np.diag(found.noise))
    assert (np.abs(found.score - score) < 4 * sd).all()
    assert (sd < 0.05 * np.sqrt(matrix)).all()
    np.testing.assert_allclose(np.diag(found.matrix), matrix, rtol=0.1)
    assert abs(found.matrix[0, 1]) < 0.1 * matrix.min()


def test_standard_errors_of_a_poisson_process_are_the_known_ones():
    """ρ = 1 - n / λT, whose standard error is √n / λT, from a first guess far away and without a round of EM."""
    seen = thinned([0.3, 0.6])
    missing, found = estimate_rates(rd.Filtering(POISSON, rd.ByType([0.7, 0.2])), seen, seed=1)
    n = np.bincount(seen.event_types, minlength=2)
    likeliest, error = 1 - n / (RATES * TIME), np.sqrt(n) / (RATES * TIME)
    np.testing.assert_allclose(found.rates, likeliest, atol=0.25 * error.max())
    np.testing.assert_allclose(found.standard_errors, error, rtol=0.12)
    np.testing.assert_allclose(missing.rates(torch.zeros(())).numpy(), found.rates)
    low, high = found.intervals().T
    odds = np.array(found.rates) / (1 - np.array(found.rates))
    np.testing.assert_allclose(low / (1 - low) * high / (1 - high), odds**2)  # symmetric in the log odds
    assert not found.doubts


def test_degenerate_particles_do_not_make_rates_look_surer():
    """Ten filtering particles share ancestors; the standard error is that of 200 particles all the same."""
    seen, _ = rd.ByType([0.6, 0.2]).censor(rd.simulate(HAWKES, 60, end=20.0, seed=3), seed=4)
    few, many = (
        estimate_rates(rd.Filtering(HAWKES, rd.ByType([0.6, 0.2])), seen, particles=m, seed=2, move=False)[1]
        for m in (10, 200)
    )
    sampling = [np.diag(found.covariance) * (1 - np.array(found.monte_carlo)) for found in (few, many)]
    np.testing.assert_allclose(np.sqrt(sampling[0]), np.sqrt(sampling[1]), rtol=0.3)
    assert (np.array(few.monte_carlo) > np.array(many.monte_carlo)).all()


def test_rates_that_the_streams_do_not_tell_are_named():
    """Two per cent of 30 events leave no trace: the information is 0.01."""
    seen = thinned([0.02, 0.6])[:4]
    with pytest.warns(rd.SuspicionNotice, match=r"missing rate of '0' (is not identified|go)|rates of '0' go to 0"):
        learned = rd.learn_missing(rd.Filtering(POISSON, rd.ByType([0.02, 0.0])), seen, rounds=1, particles=30)
    assert learned.rates is not None
    assert learned.rates.unknown == ("0",)
    assert np.isnan(learned.rates.standard_errors[0])
    assert learned.rates.intervals()[0].tolist() == [0.0, 1.0]


def test_a_type_that_was_never_observed_is_named():
    seen = thinned([1.0, 0.4])
    with pytest.warns(rd.SuspicionNotice, match="rates of '0' go to 1: hardly any event of them was observed"):
        learned = rd.learn_missing(rd.Filtering(POISSON, rd.ByType([0.6, 0.6])), seen, rounds=2, particles=20)
    assert learned.rates is not None
    assert learned.rates.unknown == ("0",)
    assert abs(learned.rates.rates[1] - 0.4) < 4 * learned.rates.standard_errors[1]


def test_learned_rates_are_kept_with_their_standard_errors(tmp_path):
    """In ``missing.yaml`` as comments, and in ``learned.json``, from where a finished run comes back."""
    seen, proposal = thinned([0.3, 0.6])[:50], rd.Filtering(POISSON, rd.ByType([0.5, 0.5]))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        learned, again = (rd.learn_missing(proposal, seen, rounds=2, particles=20, directory=tmp_path) for _ in "12")
    assert learned.rates is not None
    assert again.rates == learned.rates == RateEstimates.from_dict(json.loads(json.dumps(learned.rates.to_dict())))
    text = (tmp_path / "missing.yaml").read_text()
    assert "# 0: 0." in text and "standard error" in text  # noqa: PT018
    again_read = rd.read_missing(tmp_path / "missing.yaml").bind(seen.types).rates(torch.zeros(()))
    assert again_read.tolist() == list(learned.rates.rates)
    table = learned.rates.to_frame()
    assert list(table.columns) == ["type", "rate", "standard_error", "low", "high"]
    assert (table["low"] < table["rate"]).all()
    assert (table["rate"] < table["high"]).all()
