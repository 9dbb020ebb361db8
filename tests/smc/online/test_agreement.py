"""What is fed bit by bit is answered as ``rd.impute`` answers it at once."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

import retrodict as rd
from retrodict.models.start import StartAtom
from tests.conftest import EXAMPLES, each_engine
from tests.test_extending import PAGE, defined


def streams_of(model: rd.Model, mechanism: rd.Missingness, number: int = 5, end: float = 5.0) -> rd.StreamSet:
    """Observed streams, and one in which nothing was."""
    observed, _ = mechanism.censor(rd.simulate(model, number, end=end, seed=1), seed=1)
    nothing = rd.EventStream([], [], end=end, id="nothing")
    return rd.StreamSet([*observed, nothing], types=observed.types)


def feed_in_turn(online: rd.Online, streams: rd.StreamSet, per_feed: int = 1) -> None:
    """All events in order of time, some at once, then the ends."""
    online.feed({name: [] for name in streams.ids}, start=dict(zip(streams.ids, streams.starts, strict=True)))
    order = np.argsort(streams.event_times, kind="stable")
    for first in range(0, len(order), per_feed):
        events: dict = {}
        for e in order[first : first + per_feed]:
            name = streams.ids[streams.stream_of_event[e]]
            events.setdefault(name, []).append((streams.event_times[e], int(streams.event_types[e])))
        online.feed(events)
    online.feed(until=dict(zip(streams.ids, streams.ends, strict=True)))


def assert_same(one: rd.Posterior, other: rd.Posterior, exactly: bool = True) -> None:
    """The same particles and weights."""
    compare = np.testing.assert_array_equal if exactly else np.testing.assert_allclose
    for ensemble in ("full", "lagged"):
        a, b = getattr(one, ensemble), getattr(other, ensemble)
        np.testing.assert_array_equal(a.offsets, b.offsets)
        np.testing.assert_array_equal(a.event_types, b.event_types)
        for field in ("event_times", "weights", "families"):
            compare(getattr(a, field), getattr(b, field))
    compare(one.log_evidence, other.log_evidence)
    compare(one.diagnostics.ess, other.diagnostics.ess)
    np.testing.assert_array_equal(one.diagnostics.ahead, other.diagnostics.ahead)


def proposal_of(kind: str, model: rd.Model, mechanism: rd.Missingness) -> rd.Proposal:
    if kind == "filtering":
        return rd.Filtering(model, mechanism)
    torch.manual_seed(0)
    smoothing = rd.Smoothing(model, mechanism, 6)
    torch.nn.init.normal_(smoothing.readout, std=0.3)
    return smoothing


@each_engine
@pytest.mark.parametrize("kind", ["filtering", "smoothing"])
@pytest.mark.parametrize("name", [*EXAMPLES, "recovering", "with an atom"])
def test_within_the_lag_it_is_the_batch_posterior_bit_for_bit(name, kind, engine):
    if name == "recovering":
        if not PAGE.exists():
            pytest.skip("no docs beside the tests")
        model = defined("Recovering")([0.7, 1.5, 0.4], [0.9, 0.5, 0.2], 0.8)
    elif name == "with an atom":
        model = EXAMPLES["hawkes"]()
        model.start_atom = StartAtom(torch.tensor([0.2, 0.3, 0.3, 0.2], dtype=torch.float64).log())
    else:
        model = EXAMPLES[name]()
    unknown = ("recovering", "nonlinear_hawkes", "neural_hawkes", "state_space", "state_space_layers")
    if engine == "native" and name in unknown:
        pytest.skip("the native engine knows no such model, or another first state in its last bits")
    mechanism = rd.ByType([0.5, 0.3, 0.9])
    observed = streams_of(model, mechanism)
    proposal = proposal_of(kind, model, mechanism)
    online = rd.Online(proposal, lag=50.0, particles=20, seed=3, ess_threshold=1.1, engine=engine)
    feed_in_turn(online, observed)
    batch = rd.impute(observed, proposal, 20, seed=3, engine=engine, ess_threshold=1.1)
    # Matrix products of other numbers of rows may differ in their last bits.
    exactly = name in ("poisson", "hawkes", "with an atom") and (kind == "filtering" or engine == "native")
    assert_same(online.posterior(), batch, exactly)
    if kind == "filtering":
        np.testing.assert_allclose(online.log_evidence(), batch.log_evidence, rtol=1e-12)


@pytest.mark.parametrize("kind", ["filtering", "smoothing"])
@pytest.mark.parametrize("mechanism", ["windows", "rate limit", "contextual", "both"])
def test_mechanisms_that_vary_or_look_back_are_carried_along(mechanism, kind):
    if mechanism == "rate limit" and not PAGE.exists():
        pytest.skip("no docs beside the tests")
    windows = rd.Windows([(1.0, 2.5), (4.0, 4.5)], inside=0.9, outside=0.2)
    missing = {
        "windows": lambda: windows,
        "rate limit": lambda: defined("RateLimit")(2, 1.0),
        "contextual": lambda: rd.Contextual(["0", "1", "2"], scales=[0.5], hidden=3),
        "both": lambda: windows * rd.ByType([0.3, 0.0, 0.1]),
    }[mechanism]()
    model = EXAMPLES["hawkes"]()
    observed = streams_of(model, missing)
    proposal = proposal_of(kind, model, missing)
    online = rd.Online(proposal, lag=50.0, particles=20, ess_threshold=1.1)
    assert online.engine == "torch"
    feed_in_turn(online, observed, per_feed=3)
    assert_same(online.posterior(), rd.impute(observed, proposal, 20, engine="torch", ess_threshold=1.1), False)


PIECES = st.lists(st.floats(0.0, 12.0), min_size=0, max_size=6)


@settings(max_examples=20, deadline=None)
@given(
    cuts=PIECES,
    others=st.booleans(),
    kind=st.sampled_from(["filtering", "smoothing"]),
    engine=st.sampled_from(["auto", "torch"]),
)
def test_answers_do_not_depend_on_how_events_were_fed_nor_on_other_streams(cuts, others, kind, engine):
    """One stream with long silences and a short lag, fed at once and in pieces, alone and among others."""
    model, mechanism = EXAMPLES["hawkes"](), rd.ByType([0.5, 0.3, 0.9])
    proposal = proposal_of(kind, model, mechanism)
    times, types = [0.0, 0.4, 0.5, 1.1, 6.0, 6.1, 6.6, 9.7], [0, 1, 2, 0, 0, 2, 1, 0]
    answers = []
    for pieces, with_others in (([], False), (sorted({*cuts} - {12.0}), others)):
        online = rd.Online(proposal, lag=1.3, particles=10, seed=5, ess_threshold=0.9, engine=engine)
        online.feed({"x": []}, start=0.0)
        known = -1.0
        for cut in [*pieces, 12.0]:
            now = [(t, k) for t, k in zip(times, types, strict=True) if known < t <= cut]
            extra = {f"other {cut}": [(cut + 0.1, 1)]} if with_others else {}
            online.feed({"x": now, **extra}, until={"x": cut}, start=dict.fromkeys(extra, cut))
            known = cut
        answers.append((online.posterior(["x"]), online.log_evidence(["x"]), online.forecast(2.0, ["x"])))
    (one, evidence, future), (two, again, later) = answers
    assert_same(one, two)
    np.testing.assert_array_equal(evidence, again)
    for name in ("complete", "observed"):
        assert_same(getattr(future, name), getattr(later, name))


@each_engine
def test_poisson_streams_have_their_exact_answers_after_any_past(engine):
    """Missing events of the last lag are Poisson, the evidence is exact, and the future is Poisson, thinned by ρ."""
    rates, rho = [1.0, 0.5, 2.0], [0.5, 0.0, 1.0]
    model, mechanism = rd.Poisson(rates), rd.ByType(rho)
    observed, _ = mechanism.censor(rd.simulate(model, 6, end=60.0, seed=1), seed=2)
    online = rd.Online(rd.Filtering(model, mechanism), lag=3.0, particles=500, engine=engine)
    feed_in_turn(online, observed, per_feed=20)
    seen = -60.0 * sum(r * (1 - p) for r, p in zip(rates, rho, strict=True))
    exact = [seen + sum(np.log(rates[k] * (1 - rho[k])) for _, k in stream) for stream in observed]
    np.testing.assert_allclose(online.log_evidence(), exact, rtol=0, atol=1e-6)
    posterior = online.posterior()
    np.testing.assert_allclose(posterior.log_evidence, exact, rtol=0, atol=1e-6)
    np.testing.assert_allclose(posterior.all_weights, 1 / 500, atol=1e-9)
    future = online.forecast(2.0)
    means = {(posterior, 0): 1.5, (posterior, 2): 6.0, (future.complete, 0): 2.0, (future.complete, 2): 4.0}
    means |= {(future.observed, 0): 1.0, (future.observed, 1): 1.0}
    for (answer, k), mean in means.items():
        counts = answer._counts(answer.full, k, None, None).reshape(-1)
        top = int(mean + 4 * np.sqrt(mean))
        pmf = stats.poisson.pmf(np.arange(top), mean)
        found = np.bincount(np.minimum(counts, top), minlength=top + 1)
        assert stats.chisquare(found, np.append(pmf, 1 - pmf.sum()) * len(counts)).pvalue > 1e-4
    assert future.observed.expected_count(2).max() == 0.0
    assert bool((posterior.event_times >= 57.0).all())
    assert bool(((future.complete.event_times > 60.0) & (future.complete.event_times <= 62.0)).all())


def test_dates_are_read_on_the_axis_of_the_streams():
    table = "2024-03-01T08:00", "2024-03-01T08:09", "2024-03-01T08:30"
    import pandas as pd

    frame = pd.DataFrame({"stream": ["n", "n", "n"], "time": pd.to_datetime(list(table)), "type": ["a", "b", "a"]})
    streams = rd.read_events(frame, start="2024-03-01T07:30", end="2024-03-01T09:00", unit="hour")
    model = rd.Hawkes([1.0, 0.5], [[0.1, 0.6], [0.0, 0.2]], 3.0)
    model.adapt(streams)
    model.start_atom = None
    proposal = rd.Filtering(model, rd.Windows([("08:10", "08:20")], every="day", inside=1.0))
    whole = rd.Online(proposal, lag=5.0, particles=20, axis=streams.axis)
    whole.feed(streams)
    online = rd.Online(proposal, lag=5.0, particles=20, axis=streams.axis)
    online.feed({"n": [(table[0], "a"), (table[1], "b")]}, start="2024-03-01T07:30")
    online.feed({"n": [(table[2], "a")]}, until="2024-03-01 09:00")
    assert_same(whole.posterior(), rd.impute(streams, proposal, 20, engine="torch"))
    np.testing.assert_allclose(online.log_evidence(), whole.log_evidence(), rtol=1e-9)
    count = online.posterior().expected_count(start="2024-03-01T08:10", end="2024-03-01T08:20")
    assert count == online.posterior().expected_count()
    with pytest.raises(rd.DataError, match=r"stream 'n'.*known up to 2024-03-01 09:00:00"):
        online.feed({"n": [("2024-03-01T08:50", "a")]})
