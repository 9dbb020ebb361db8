"""Streams unlike those a model was fitted to: other starts or ends than it knows are refused, far longer ones told."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

import retrodict as rd
from retrodict.errors import DataError, SuspicionNotice
from retrodict.models.end_fit import learn_end

RATES = [0.5, 0.5]


@pytest.fixture(scope="module")
def model():
    """A model that knows that streams begin and end with an event."""
    complete = between_events(120, 1)
    poisson = rd.Poisson(RATES)
    poisson.adapt(complete)
    learn_end(poisson, complete, complete)
    assert poisson.end_atom is not None
    assert poisson.start_atom is not None
    return poisson


def between_events(count, seed, before=0.0, after=0.0):
    """Streams from their first to their last event, or from ``before`` it to ``after`` it."""
    drawn = rd.simulate(rd.Poisson(RATES), count, end=20.0, seed=seed)
    streams = [
        rd.EventStream(s.times, s.types, start=s.times[0] - before, end=s.times[-1] + after, id=s.id) for s in drawn
    ]
    return rd.StreamSet(streams, types=drawn.types)


def impute(model, streams, rates, **options):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SuspicionNotice)
        return rd.impute(streams, rd.Filtering(model, rd.ByType(rates)), 20, **options)


@pytest.mark.parametrize("edge", ["begin", "end"])
def test_streams_without_the_event_that_the_model_expects_are_refused(model, edge):
    streams = between_events(40, 2, **{"before" if edge == "begin" else "after": 1.0})
    with pytest.raises(DataError, match=f"40 of 40 streams {edge} where no event was observed.*at most 30%.*fit and"):
        impute(model, streams, [0.3, 0.1])


def test_streams_that_were_just_watched_longer_are_taken_where_one_says_so(model):
    posterior = impute(model, between_events(40, 2, after=1.0), [0.3, 0.1], cut=True)
    assert (posterior.consensus(5.0).event_times <= posterior.observed.ends.max()).all()


def test_ends_that_may_have_gone_missing_are_imputed(model):
    complete = between_events(60, 3)
    for rates in ([0.3, 0.3], [0.0, 1.0], [0.9, 0.9]):
        observed, _ = rd.ByType(rates).censor(complete, seed=4)
        impute(model, observed, rates)


def test_where_nothing_can_go_missing_at_the_end_streams_were_cut(model):
    streams, until = between_events(40, 2, after=1.0), 3.0
    windows = rd.Windows([(1.0, until)])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        rd.impute(streams[streams.durations > until + 0.5], rd.Filtering(model, windows), 20)


def test_streams_far_longer_than_any_of_the_fit_are_told():
    train = rd.simulate(rd.Poisson(RATES), 60, end=10.0, seed=5)
    model = rd.fit(rd.Poisson, train, train[:20], progress=False)
    filtering = rd.Filtering(model, rd.ByType(0.1))
    with pytest.warns(SuspicionNotice, match="half of the streams last at least 9 times as long as the longest"):
        told = rd.impute(rd.simulate(rd.Poisson(RATES), 30, end=90.0, seed=6), filtering, 20)
    assert any("9 times as long" in text for text in told.about["edges"])
    with warnings.catch_warnings():
        warnings.simplefilter("error", SuspicionNotice)
        rd.impute(rd.simulate(rd.Poisson(RATES), 30, end=20.0, seed=6), filtering, 20)
    assert np.isfinite(told.log_evidence).all()


def test_rates_that_are_learned_or_varied_refuse_nothing(model):
    complete = between_events(60, 7)
    observed, _ = rd.ByType([0.6, 0.6]).censor(complete, seed=8)
    with pytest.raises(DataError, match="where no event was observed"):
        impute(model, observed, [0.02, 0.02])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        learned = rd.learn_missing(rd.Filtering(model, rd.ByType([0.02, 0.02])), observed, rounds=2, particles=20)
        assert (np.array(learned.missing.meaning()[1]) > 0.02).all()
        found = rd.sensitivity(observed, rd.Filtering(model, rd.ByType([0.6, 0.6])), 1.0, (0.01, 1.0), particles=20)
    assert len(found.rows) == 2
