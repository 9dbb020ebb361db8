"""Questions a posterior answers, on a small one whose answers can be counted by hand, and what it writes."""

from __future__ import annotations

import sys
import warnings
from dataclasses import fields, replace

import numpy as np
import pandas as pd
import pytest

import retrodict as rd
from retrodict.errors import ModelError
from retrodict.events.time_axis import TimeAxis
from retrodict.smc import diagnostics
from retrodict.smc.diagnostics import Diagnostics
from retrodict.smc.guesses import Guesses
from retrodict.smc.posterior_folder import save_posterior


@pytest.fixture
def posterior() -> rd.Posterior:
    """Two streams, three particles each, weights 0.5, 0.3, 0.2."""
    observed = rd.StreamSet(
        [rd.EventStream([1.0], [0], end=4.0, id="x"), rd.EventStream([], [], end=4.0, id="y")], types=["a", "b"]
    )
    particles = [([0.5, 2.0], [1, 0]), ([2.5], [1]), ([], []), ([3.0], [0]), ([3.5], [0]), ([0.0, 1.0, 2.0], [1, 1, 1])]
    lengths = [len(t) for t, _ in particles]
    guesses = Guesses(
        np.concatenate([t for t, _ in particles]),
        np.concatenate([k for _, k in particles]).astype(np.int64),
        np.cumsum([0, *lengths]),
        np.tile([0.5, 0.3, 0.2], (2, 1)),
        np.array([[[2.0, 3.0]], [[3.0, np.nan]]]),
    )
    ess = np.array([[2.0, 3.0], [3.0, np.nan]])
    return rd.Posterior(
        observed,
        guesses,
        guesses,
        np.array([-1.0, -2.0]),
        Diagnostics(ess, ahead=np.zeros((2, 2), int), resamplings=np.zeros(2, int)),
        rd.Poisson([1.0, 1.0]),
    )


def test_counts_and_probabilities(posterior):
    np.testing.assert_allclose(posterior.expected_count(), [1.3, 1.4])
    np.testing.assert_allclose(posterior.expected_count("b"), [0.8, 0.6])
    np.testing.assert_allclose(posterior.expected_count(0, 2.0, 3.0), [0.5, 0.5])
    np.testing.assert_allclose(posterior.probability(start=1.5, end=2.5), [0.8, 0.2])
    np.testing.assert_allclose(posterior.probability("b", 0.0, 1.0), [0.5, 0.2])
    np.testing.assert_allclose(posterior.expectation(lambda z: len(z) ** 2), [4 * 0.5 + 0.3, 0.8 + 9 * 0.2])
    np.testing.assert_allclose(posterior.probability("a"), [0.5, 0.8])
    grid = posterior.intensity([0.0, 2.0, 4.0])
    np.testing.assert_allclose(grid[0], [[0, 0.25], [0.25, 0.15]])
    with pytest.raises(rd.DataError, match="unknown type 'c'; known types are 'a', 'b'"):
        posterior.probability("c")
    with pytest.raises(rd.DataError, match="not an increasing list"):
        posterior.intensity([1.0, 0.0])


def test_particles_and_draws(posterior):
    assert [len(z) for z in posterior.particles(1)] == [1, 1, 3]
    assert posterior.weights(0).tolist() == [0.5, 0.3, 0.2]
    draws = posterior.draws(2000, seed=1)
    lengths = np.array([d.lengths for d in draws])
    assert abs((lengths[:, 0] == 2).mean() - 0.5) < 0.05
    assert abs((lengths[:, 1] == 3).mean() - 0.2) < 0.04
    assert posterior.complete(draws[0]).num_events == draws[0].num_events + 1


def test_forecast_goes_on_from_each_particle(posterior):
    streams, weights = posterior.forecast(6.0, seed=1)
    assert streams.ids == ("x/0", "x/1", "x/2", "y/0", "y/1", "y/2")
    assert (streams.starts == 4.0).all()
    assert (streams.ends == 6.0).all()
    assert weights.shape == (2, 3)


def test_consensus_is_one_stream_each(posterior):
    decoded = posterior.consensus(cost=2.0)
    assert decoded.ids == ("x", "y")
    assert decoded.types == ("a", "b")
    assert "probability" in decoded.columns


def test_frames_and_files(posterior, tmp_path):
    frame = posterior.to_frame()
    assert list(frame.columns) == ["stream", "draw", "weight", "time", "type"]
    assert len(frame) == 8
    assert frame["type"].tolist()[:3] == ["b", "a", "b"]
    posterior.save(tmp_path / "p")
    loaded = rd.load_posterior(tmp_path / "p")
    assert loaded.observed == posterior.observed
    np.testing.assert_array_equal(loaded.log_evidence, posterior.log_evidence)
    for ours, theirs in ((loaded.full, posterior.full), (loaded.lagged, posterior.lagged)):
        for field in fields(Guesses):
            np.testing.assert_array_equal(getattr(ours, field.name), getattr(theirs, field.name))
    for field in fields(Diagnostics):
        np.testing.assert_array_equal(
            getattr(loaded.diagnostics, field.name), getattr(posterior.diagnostics, field.name)
        )
    (tmp_path / "p" / "lagged_events.parquet").write_bytes(b"junk")
    with pytest.raises(rd.DataError, match="not a saved posterior, or it is damaged"):
        rd.load_posterior(tmp_path / "p")
    with pytest.raises(rd.DataError, match="not a saved posterior"):
        rd.load_posterior(tmp_path)


def test_warnings_in_words():
    model, mechanism = rd.Hawkes([0.5, 0.2], [[0.1, 0.9], [0.1, 0.1]], 3.0), rd.ByType({"1": 1.0})
    impossible = rd.StreamSet([rd.EventStream([1.0], [1], end=2.0, id="odd")], types=["0", "1"])
    posterior = rd.impute(impossible, rd.Filtering(model, mechanism), particles=10)
    assert posterior.log_evidence[0] == -np.inf
    with pytest.warns(rd.DataNotice, match="stream 'odd': the model gives what was observed no probability at all"):
        posterior.warn()
    np.testing.assert_allclose(posterior.all_weights, 0.1)


def test_a_stretch_with_few_families_is_named():
    """Without resampling one particle soon has all the weight, also at the observed event itself."""
    busy = rd.StreamSet([rd.EventStream(np.linspace(0.1, 5, 40), [0] * 40, end=5.0, id="busy")], types=["0", "1"])
    model, mechanism = rd.Hawkes([0.01, 0.2], [[0.1, 0.1], [3.0, 0.1]], 3.0), rd.ByType([0.0, 1.0])
    thin = rd.impute(busy, rd.Filtering(model, mechanism), particles=20, resample=None, engine="torch")
    with pytest.warns(rd.DataNotice, match=r"stream 'busy' between .* and .*: fewer than 10 independent guesses"):
        thin.warn()
    fewest = rd.impute(busy, rd.Filtering(model, mechanism), particles=8)  # they cannot be ten families
    with pytest.warns(rd.DataNotice, match="fewer than 10 independent guesses"):
        fewest.warn()
    many = rd.impute(busy, rd.Filtering(model, mechanism), particles=4000)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        many.warn()


def test_the_longest_stretch_is_named_where_there_are_several(monkeypatch):
    """Segments 0 and 4 to 6 of nine have few families; the events are at 1, 2, ..., 8."""
    observed = rd.StreamSet([rd.EventStream(np.arange(1.0, 9.0), [0] * 8, end=9.0, id="busy")], types=["0"])
    posterior = rd.impute(observed, rd.Filtering(rd.Poisson([1.0]), rd.ByType([0.5])), particles=20)
    thin = np.isin(np.arange(9), [0, 4, 5, 6])
    monkeypatch.setattr(diagnostics, "_thin_segments", lambda posterior: (np.zeros(9, dtype=np.int64), thin))
    with pytest.warns(rd.DataNotice, match=r"stream 'busy' between 4(\.0)? and 7(\.0)?: fewer than 10"):
        posterior.warn()


def test_lagged_guesses_keep_families_where_the_full_ensemble_loses_them(tmp_path):
    model, mechanism = rd.Hawkes([0.5, 0.2], [[0.1, 0.9], [0.1, 0.1]], 3.0), rd.ByType([0.5, 0.5])
    observed, _ = mechanism.censor(rd.simulate(model, 3, end=40.0, seed=1))
    posterior = rd.impute(observed, rd.Filtering(model, mechanism), 100, ess_threshold=1.1, resample="multinomial")
    assert np.nanmin(posterior.full.effective_families) < 4
    assert np.nanmin(posterior.lagged.effective_families) > 15
    assert posterior.chosen is posterior.lagged
    assert posterior.diagnostics.ahead[:, 0].max() < observed.lengths.max()
    posterior.save(tmp_path)
    saved = pd.read_parquet(tmp_path / "draws.parquet")
    assert posterior.full.event_times.size != len(saved) == posterior.lagged.event_times.size
    np.testing.assert_array_equal(saved["time"], posterior.lagged.event_times)
    assert saved["type"].tolist() == [observed.types[k] for k in posterior.lagged.event_types]


@pytest.mark.parametrize("cost", [0.001, 0.3, 10.0])
def test_a_full_ensemble_of_few_families_is_never_decoded(cost):
    """At low costs its halves impute nothing, which is no reason to believe the four families of both together."""
    model, mechanism = rd.Hawkes([0.5, 0.2], [[0.1, 0.9], [0.1, 0.1]], 3.0), rd.ByType([0.5, 0.5])
    observed, _ = mechanism.censor(rd.simulate(model, 3, end=40.0, seed=1))
    proposal = rd.Filtering(model, mechanism)
    thin = rd.impute(observed, proposal, 100, ess_threshold=1.1, resample="multinomial")
    assert np.nanmean(thin.full.families) < 20
    decision = thin.decide([cost])[0]
    assert decision.ensemble == "lagged"
    np.testing.assert_array_equal(decision.streams.event_times, thin.consensus(cost).event_times)


def test_impossible_requests_are_refused():
    proposal = rd.Filtering(rd.Poisson([1.0]), rd.ByType(0.5))
    stream = rd.EventStream([1.0], [0], end=2.0)
    for arguments, message in (
        ({"particles": 0}, "particles must be a positive whole number"),
        ({"resample": "magic"}, "unknown resampling scheme 'magic'"),
        ({"engine": "steam"}, "unknown engine 'steam'"),
        ({"sampler": "dice"}, "unknown sampler 'dice'"),
    ):
        with pytest.raises(rd.ModelError, match=message):
            rd.impute(stream, proposal, **arguments)
    busy = rd.Filtering(rd.Poisson([1e3]), rd.ByType(0.99))
    assert rd.impute(stream, busy, particles=1).expected_count()[0] > 1500
    with pytest.raises(rd.RunawayError, match="more than 500 missing events"):
        rd.impute(stream, busy, particles=1, max_events=500)


@pytest.mark.parametrize("version", ["arviz", "arviz_base"])
def test_arviz_gets_counts_and_times_of_every_draw(posterior, version, monkeypatch):
    """An InferenceData of ArviZ 0.x and a DataTree of 1.x, whose from_dict is that of arviz-base."""
    arviz = pytest.importorskip(version)
    if version == "arviz_base":
        monkeypatch.setitem(sys.modules, "arviz", None)
    data = posterior.to_arviz(draws=4000, seed=1)
    is_old = version == "arviz" and arviz.__version__.startswith("0.")
    assert type(data).__name__ == ("InferenceData" if is_old else "DataTree")
    assert data.attrs["particles"] == posterior.num_particles
    assert list(data.posterior["count"].dims) == ["chain", "draw", "stream", "type"]
    assert data.posterior["count"].shape == (1, 4000, 2, 2)
    mean = data.posterior["count"].mean(("chain", "draw"))
    np.testing.assert_allclose(mean.sel(type="b"), posterior.expected_count("b"), atol=0.06)
    first = data.posterior["first_time"].values[0, :, 0]
    assert set(first[~np.isnan(first)]) == {0.5, 2.5}
    assert np.isnan(first).mean() == pytest.approx(0.2, abs=0.03)
    np.testing.assert_array_equal(data.constant_data["log_evidence"], [-1.0, -2.0])
    if version == "arviz":
        assert len(arviz.summary(data, var_names=["count"])) == 4


def test_arviz_that_is_lacking_is_named(posterior, monkeypatch):
    for name in ("arviz", "arviz_base"):
        monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(ModelError, match=r"to_arviz needs ArviZ.*retrodict\[arviz\]"):
        posterior.to_arviz()


def test_the_draws_as_a_polars_frame(posterior):
    polars = pytest.importorskip("polars")
    frame = posterior.to_frame(library="polars")
    assert isinstance(frame, polars.DataFrame)
    pd.testing.assert_frame_equal(frame.to_pandas(), posterior.to_frame(), check_dtype=False, check_categorical=False)


@pytest.mark.parametrize("zone", [None, "America/Denver", "-07:00"])
def test_dates_gave_zeros_or_a_raw_numpy_error(posterior, zone):
    """Time 0 is 06:00 UTC (or naive), and the unit is an hour."""
    origin = pd.Timestamp("2013-07-01 06:00")
    dated = replace(posterior, observed=posterior.observed.replace(axis=TimeAxis("hour", origin.value, zone)))
    local = origin if zone is None else origin.tz_localize("UTC").tz_convert(zone)
    edges = [local + pd.Timedelta(hours=h) for h in (2.0, 3.0)]
    naive = [edge.tz_localize(None) for edge in edges]
    forms = [edges, [edge.isoformat() for edge in edges], [edge.to_pydatetime() for edge in edges], naive]
    forms += [[str(edge) for edge in naive], [np.datetime64(edge) for edge in naive], [2.0, 3.0]]
    for start, end in forms:
        np.testing.assert_allclose(dated.expected_count(0, start, end), posterior.expected_count(0, 2.0, 3.0))
        np.testing.assert_allclose(dated.probability("b", start, end), posterior.probability("b", 2.0, 3.0))
        np.testing.assert_allclose(dated.intensity([start, end]), posterior.intensity([2.0, 3.0]))
    until = local + pd.Timedelta(hours=6)
    assert dated.forecast(until)[0] == dated.forecast(6.0)[0]
    np.testing.assert_allclose(dated.intensity(pd.DatetimeIndex(edges)), posterior.intensity([2.0, 3.0]))
    with pytest.raises(rd.DataError, match=r"start=: cannot read 'at noon' as a time(?!.*name a column)"):
        dated.probability(start="at noon")
    with pytest.raises(rd.DataError, match="end= is a date, but the streams have plain numbers as times"):
        posterior.probability(end=until)
    frame = dated.consensus(1.0).to_frame().dropna(subset="time")
    assert len(frame)
    assert str(frame["earliest"].dtype).startswith("datetime64[")
    assert ((frame["earliest"] <= frame["time"]) & (frame["time"] <= frame["latest"])).all()
    assert str(dated.consensus(1.0).to_frame("polars")["latest"].dtype).startswith("Datetime")


def test_integral_raised_a_raw_type_error():
    filtering = rd.Filtering(rd.Hawkes([0.2, 0.1], [[0.0, 0.9], [0.0, 0.0]], 2.0), rd.ByType([1.0, 0.0]))
    stream = rd.EventStream([3.0, 7.0], [1, 1], end=10.0)
    four, eight = (
        rd.impute(stream, filtering, 20, integral=rule) for rule in (rd.GaussLegendre(4), rd.GaussLegendre(8))
    )
    np.testing.assert_allclose(four.log_evidence, eight.log_evidence, atol=1e-3)
    for wrong in ("simpson", rd.GaussLegendre, 4):
        with pytest.raises(rd.ModelError, match=r"integral must be a rule such as rd.GaussLegendre\(8\)"):
            rd.impute(stream, filtering, 20, integral=wrong)


def test_a_folder_that_only_the_package_reads_has_no_draws_of_another_posterior(tmp_path):
    model, mechanism = rd.Hawkes([0.5, 0.2], [[0.1, 0.9], [0.1, 0.1]], 3.0), rd.ByType([0.5, 0.5])
    observed, _ = mechanism.censor(rd.simulate(model, 3, end=10.0, seed=1))
    posterior = rd.impute(observed, rd.Filtering(model, mechanism), 20)
    posterior.save(tmp_path)
    save_posterior(posterior, tmp_path, readable=False)
    assert not (tmp_path / "draws.parquet").exists()
    loaded = rd.load_posterior(tmp_path)
    np.testing.assert_array_equal(loaded.chosen.event_times, posterior.chosen.event_times)
    np.testing.assert_array_equal(loaded.full.weights, posterior.full.weights)
