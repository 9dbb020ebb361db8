"""Intervals for numbers of missing events: those of a Poisson model with ByType are Poisson with a known mean."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

import retrodict as rd
from retrodict.smc.totals import as_number, intervals, total_by, total_of, totals_by_type

MODEL, MISSING, END, N = rd.Poisson([2.0, 0.5]), rd.ByType([0.5, 0.2]), 5.0, 300
MEANS = {0: 5.0, 1: 0.5, None: 5.5}  # of each stream, by type and in all


@pytest.fixture(scope="module")
def posterior():
    observed, _ = MISSING.censor(rd.simulate(MODEL, N, end=END, seed=1), seed=2)
    return rd.impute(observed, rd.Filtering(MODEL, MISSING), 2000, seed=3)


def hidden(seed):
    """What is hidden of other streams of this model, whose posterior counts are the same."""
    return MISSING.censor(rd.simulate(MODEL, N, end=END, seed=seed), seed=seed)[1]


@pytest.mark.parametrize("type", MEANS)
def test_the_interval_of_a_stream_is_that_of_its_poisson_count(posterior, type):
    mean, found = MEANS[type], posterior.count_interval(type)
    exact = stats.poisson.ppf([0.05, 0.95], mean)
    assert found.shape == (N, 2)
    assert (np.abs(found - exact) <= 1).all()  # 2,000 guesses may be one off
    assert (found == exact).mean() > 0.8
    truth = hidden(4)
    counts = (
        truth.lengths if type is None else np.bincount(truth.stream_of_event[truth.event_types == type], minlength=N)
    )
    held, chance = (
        ((counts >= found[:, 0]) & (counts <= found[:, 1])).mean(),
        np.diff(stats.poisson.cdf(exact - [1, 0], mean))[0],
    )
    assert abs(held - chance) < 3.3 * np.sqrt(chance * (1 - chance) / N) + 0.01  # false alarms: 1 in 1,000
    assert chance >= 0.9


@pytest.mark.parametrize("type", MEANS)
def test_the_total_has_the_sum_of_the_variances_and_holds_the_truth(posterior, type):
    mean, found = N * MEANS[type], posterior.total_count(type)
    assert found.expected == pytest.approx(posterior.expected_count(type).sum())
    assert abs(found.expected - mean) < 5 * np.sqrt(mean / 2000) + 1
    np.testing.assert_allclose(
        [found.low, found.high], found.expected + np.sqrt(mean) * np.array([-1.645, 1.645]), atol=2
    )
    totals = [
        truth.num_events if type is None else int((truth.event_types == type).sum())
        for truth in map(hidden, range(10, 310))
    ]
    held = np.mean([found.low <= total <= found.high for total in totals])
    assert abs(held - 0.9) < 3.3 * np.sqrt(0.09 / len(totals)) + 0.015  # whole numbers hold a little more


def test_a_window_and_another_level(posterior):
    found = posterior.total_count(0, 1.0, 3.0, level=0.5)
    mean = N * 2.0
    np.testing.assert_allclose([found.low, found.high], mean + np.sqrt(mean) * np.array([-0.6745, 0.6745]), atol=4)
    assert (posterior.count_interval(level=0.5)[:, 1] < posterior.count_interval()[:, 1]).all()
    for level in (0.0, 1.0, 90):
        with pytest.raises(rd.DataError, match="give a probability between 0 and 1"):
            posterior.count_interval(level=level)


def test_one_stream_has_the_quantiles_of_its_count_and_none_has_nothing(posterior):
    counts, weights = np.array([[3, 0, 1]]), np.array([[0.04, 0.06, 0.9]])
    assert intervals(counts, weights).tolist() == [[0, 1]]
    assert intervals(counts, weights, 0.95).tolist() == [[0, 3]]
    assert total_of(counts, weights)[1:3] == (0, 1)
    assert total_of(counts[:0], weights[:0])[:3] == (0.0, 0, 0)


def test_totals_in_words():
    assert str(total_by(430.6, 300.0)) == "431 expected missing, 90 %: 402 to 459"
    assert str(total_by(0.3, 0.3)) == "0.30 expected missing, 90 %: 0 to 1"
    assert str(total_by(12345.6, 0.0)) == "12,346 expected missing, 90 %: 12,346 to 12,346"
    assert [as_number(x) for x in (0.0, 0.57, 4.26, 9.99, 10.2)] == ["0.00", "0.57", "4.3", "10.0", "10"]


@pytest.mark.parametrize("streams", [1, 12])
def test_totals_by_type_are_those_of_each_type_asked_for(streams):
    """Types that are missing together, of some streams, one of which has no probability."""
    model = rd.Hawkes([0.4, 0.2, 0.0], [[0.2, 0.7, 0.0], [0.1, 0.2, 0.0], [0.0, 0.0, 0.0]], 1.0)
    observed, _ = rd.ByType([0.8, 0.5, 0.5]).censor(rd.simulate(model, streams, end=9.0, seed=2), seed=3)
    made = rd.impute(observed, rd.Filtering(model, rd.ByType([0.8, 0.5, 0.5])), 50, seed=4)
    if streams > 1:
        made.log_evidence[3] = -np.inf
    found = totals_by_type(made.chosen, np.flatnonzero(made.is_possible), 3)
    for total, type in zip(found, (0, 1, 2, None), strict=True):
        assert total == pytest.approx(made.total_count(type))
    assert found[2] == (0.0, 0, 0, 0.9)
