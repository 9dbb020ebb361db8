"""The end atom: what it learns of how streams end, in likelihood, simulation and on disk."""

from __future__ import annotations

import json
import warnings

import numpy as np
import pytest
import torch
from scipy import stats

import retrodict as rd
from retrodict.errors import ModelError
from retrodict.events.batch import make_batch
from retrodict.models.end import EndAtom, features_after, last_events
from retrodict.models.end_fit import learn_end, log_probability, minimise
from tests.conftest import KINDS, example_model

HAZARDS = [0.0, 0.1, 0.4, 0.2, 0.7]


def with_ends(kind: str = "hawkes", dtype: torch.dtype = torch.float64) -> rd.Model:
    """A model whose ends depend on count, type, time and features."""
    model = example_model(kind).to(dtype)
    atom = EndAtom.of_counts(HAZARDS, model)
    atom.by_type.copy_(torch.linspace(-0.5, 0.5, model.num_types))
    atom.by_time.fill_(0.3), atom.time_scale.fill_(2.0)
    atom.by_feature.copy_(torch.linspace(-0.4, 0.4, model.num_features))
    model.end_atom = atom
    return model


@pytest.mark.parametrize("kind", KINDS)
def test_ends_are_scored_event_by_event(kind):
    """log p has log π of a last event at the end and log(1 - π) of all others, from the model's five methods alone."""
    model = with_ends(kind)
    ended = rd.EventStream([0.5, 0.7, 1.5], [0, 2, 1], end=1.5)
    cut = rd.EventStream([0.5, 0.7, 1.5], [0, 2, 1], end=1.6)
    streams = rd.StreamSet([ended, cut, rd.EventStream([], [], end=1.0)], types=["0", "1", "2"])
    state, logs = model.initial((1,)), []
    for n, (kind_, time) in enumerate(zip([0, 2, 1], [0.5, 0.7, 1.5], strict=True)):
        when = torch.tensor([time], dtype=torch.float64)
        state = model.update(state, torch.tensor([kind_]), when)
        odds = np.log(HAZARDS[n] + 1e-12) - np.log1p(-HAZARDS[n]) + [-0.5, 0.0, 0.5][kind_] + 0.15 * time
        odds += float(model.features(state, when)[0].detach() @ torch.linspace(-0.4, 0.4, model.num_features).double())
        logs.append((float(-np.logaddexp(0, -odds)), float(-np.logaddexp(0, odds))))
    found = (model.log_likelihood(streams) - model.log_likelihood(streams, score_end=False)).detach().numpy()
    going = logs[0][1] + logs[1][1]
    np.testing.assert_allclose(found, [going + logs[2][0], going + logs[2][1], 0.0], atol=1e-6)


@pytest.mark.parametrize("kind", KINDS)
def test_simulated_streams_end_as_the_model_says(kind):
    """At an event, with the numbers of events and the total probability of ends that the atom gives."""
    model = with_ends(kind)
    model.end_atom.by_type.zero_(), model.end_atom.by_time.zero_(), model.end_atom.by_feature.zero_()
    streams = rd.simulate(model, 1500, seed=4)
    assert (streams.event_times[streams.offsets[1:] - 1] == streams.ends).all()
    going = np.cumprod([1.0, *(1 - np.array(HAZARDS))])
    expected = [*(going[:5] * HAZARDS)[:5], going[5] * 0.7, going[5] * 0.3]
    seen = np.bincount(np.minimum(streams.lengths, 7), minlength=8)[1:]
    assert not seen[0]
    assert stats.chisquare(seen[1:], np.array(expected[1:]) * 1500).pvalue > 1e-3


def test_ends_depend_on_all_that_they_may():
    """Σ (ended - π) over streams, in all and times each part of the log odds, has mean zero."""
    model = with_ends("neural_hawkes")
    streams = rd.simulate(model, 1000, seed=5)
    other = rd.simulate(model, 50, seed=5, batch_size=7)
    np.testing.assert_allclose(other.ends, streams.ends[:50], rtol=1e-9)
    batch = make_batch(streams, dtype=torch.float64)
    off = last_events(batch).double() - torch.sigmoid(model.end_atom._batch_log_odds(model, batch))
    off = torch.where(batch.mask, off, 0.0)
    features = features_after(model, batch)
    parts = [torch.ones_like(off), (batch.types == 2).double(), batch.times, features[..., 0], features[..., -1]]
    for part in parts:
        sums = (off * part).sum(1)
        assert abs(float(sums.mean())) < 3.5 * float(sums.std()) / len(sums) ** 0.5


def test_a_cut_and_a_history_of_streams_with_ends():
    """``end`` and ``num_events`` cut short; from a history on, counts go on; one of them is needed then."""
    model = with_ends("poisson")
    whole, short = rd.simulate(model, 200, seed=1), rd.simulate(model, 200, end=0.5, seed=1)
    assert (short.ends == np.minimum(whole.ends, 0.5)).all()
    assert rd.simulate(model, 200, num_events=2, seed=1).lengths.max() == 2
    model.end_atom = EndAtom.of_counts([0.0, 0.0, 0.0, 1.0], model)
    history = rd.StreamSet(
        [rd.EventStream([0.1, 0.2], [0, 1], end=0.3, id=i) for i in range(20)], types=["0", "1", "2"]
    )
    onwards = rd.simulate(model, history=history, end=1e6, seed=2)
    assert (onwards.lengths == 2).all()
    assert (onwards.ends == onwards.event_times[1::2]).all()
    with pytest.raises(ModelError, match="needs end="):
        rd.simulate(model, history=history)


def hawkes() -> rd.Model:
    return rd.Hawkes([0.5, 0.3], [[0.3, 0.4], [0.1, 0.2]], 2.0)


def test_a_cut_after_16_events_is_learned():
    streams = rd.simulate(hawkes(), 400, num_events=16, seed=1)
    train, dev, test = streams.split(0.6, 0.2, seed=0)
    model = hawkes()
    record = learn_end(model, train, dev)
    assert record["end_atom"]["dev_log_probability_per_stream"] > -0.1
    gain = model.log_likelihood(test) - model.log_likelihood(test, score_end=False)
    assert float(gain.detach().mean()) > -0.1
    lengths = rd.simulate(model, 300, seed=2).lengths
    assert (lengths == 16).mean() > 0.95


def test_ends_of_the_papers_recipe_are_learned():
    """11 to 20 events, each as probable: a stream's end is worth -log 10 on average."""
    lengths = np.random.default_rng(0).integers(11, 21, 800)
    streams = rd.simulate(hawkes(), 800, num_events=lengths, seed=1)
    model = hawkes()
    learn_end(model, streams[:500], streams[500:600])
    gain = (model.log_likelihood(streams[600:]) - model.log_likelihood(streams[600:], score_end=False)).mean()
    assert abs(float(gain.detach()) + np.log(10)) < 0.12
    drawn = rd.simulate(model, 1000, seed=2).lengths
    assert 15.0 < drawn.mean() < 16.0
    assert 9 <= drawn.min() < drawn.max() <= 24


def test_ends_that_depend_on_type_and_state_are_learned():
    """The likelihood of held-out ends comes close to that of the process they were drawn from."""
    truth = with_ends("neural_hawkes")
    streams = rd.simulate(truth, 3000, seed=3)
    model = with_ends("neural_hawkes")
    learn_end(model, streams[:2000], streams[2000:2300])
    test = streams[2300:]
    own, best, plain = (m.log_likelihood(test).mean() for m in (model, truth, truth.endless()))
    assert 0 <= float(best - own) < 0.03 * float(plain - best)


def test_newton_steps_find_the_minimum():
    rng = np.random.default_rng(0)
    X = np.concatenate([np.ones((300, 1)), rng.normal(size=(300, 4))], 1)
    y = rng.random(300) < 1 / (1 + np.exp(-X @ [-1.0, 2.0, -1.0, 0.0, 0.5]))
    penalties = np.array([0.02, 1.0, 1.0, 1.0, 1.0])
    found = minimise(X, y, penalties, np.zeros(5))
    loss = lambda w: 0.5 * penalties @ w**2 - log_probability(X, y, w)  # noqa: E731
    for direction in np.eye(5):
        assert loss(found) <= min(loss(found + 1e-3 * direction), loss(found - 1e-3 * direction))


def test_fit_learns_ends_where_nearly_all_streams_end_at_an_event(tmp_path):
    streams = rd.simulate(hawkes(), 120, num_events=16, seed=1)
    later = streams.replace(ends=streams.ends + (np.arange(120) % 20 == 0))  # one in twenty was watched for longer
    with warnings.catch_warnings():
        warnings.simplefilter("error", rd.SuspicionNotice)
        model = rd.fit(hawkes(), later, directory=tmp_path, epochs=2, progress=False)
    assert model.end_atom is not None
    assert "end_atom" in model.training_record
    loaded = rd.load_model(tmp_path)
    assert torch.equal(loaded.log_likelihood(streams), model.log_likelihood(streams))
    assert loaded.digest() == model.digest() != model.endless().digest()
    with pytest.warns(rd.DataNotice, match="had finished"):
        again = rd.fit(hawkes(), later, directory=tmp_path, epochs=2, progress=False)
    assert again.digest() == model.digest()
    scales = rd.fit(lambda train: rd.Hawkes.from_streams(train, scales=[2.0, 0.2]), streams, progress=False)
    assert scales.end_atom is not None
    half = streams.replace(ends=streams.ends + (np.arange(120) % 2 == 0))
    assert rd.fit(model, half, epochs=1, progress=False).end_atom is None


@pytest.mark.parametrize("kind", KINDS)
def test_a_saved_model_has_its_end(kind, tmp_path):
    model = with_ends(kind, torch.float32)
    streams = rd.simulate(model, 20, seed=1)
    model.save(tmp_path)
    assert torch.equal(rd.load_model(tmp_path).log_likelihood(streams), model.log_likelihood(streams))


@pytest.mark.parametrize("value", [0, -1, True, 1.5, "5", 10**9, 6])
def test_a_wrong_number_of_counts_is_refused(value, tmp_path):
    with_ends().save(tmp_path)
    about = json.loads((tmp_path / "model.json").read_text())
    (tmp_path / "model.json").write_text(json.dumps({**about, "end_atom": value}))
    with pytest.raises(ModelError):
        rd.load_model(tmp_path)


def test_a_folder_of_before_there_were_ends_is_read(tmp_path):
    model = example_model("hawkes")
    model.save(tmp_path)
    about = json.loads((tmp_path / "model.json").read_text())
    del about["end_atom"]
    (tmp_path / "model.json").write_text(json.dumps(about))
    assert rd.load_model(tmp_path).end_atom is None
