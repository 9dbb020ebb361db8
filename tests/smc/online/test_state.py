"""What is kept of streams that go on: bounded, saved, loaded, closed; and what is refused."""

from __future__ import annotations

import contextlib
import doctest
import hashlib
import json

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save

import retrodict as rd
from tests.conftest import EXAMPLES, random_neural_hawkes
from tests.smc.online.test_agreement import assert_same, feed_in_turn, proposal_of, streams_of

MECHANISM = rd.ByType([0.5, 0.3, 0.9])


def run(kind: str = "filtering", name: str = "hawkes", lag: float = 1.5, **options) -> tuple[rd.Online, rd.StreamSet]:
    model = EXAMPLES[name]()
    return rd.Online(proposal_of(kind, model, MECHANISM), lag, 10, **options), streams_of(model, MECHANISM)


@pytest.mark.parametrize("name", [*EXAMPLES])
@pytest.mark.parametrize("kind", ["filtering", "smoothing"])
def test_a_saved_run_goes_on_exactly(kind, name, tmp_path):
    online, streams = run(kind, name)
    early = streams.event_times <= 2.5
    feed_in_turn(online, streams.keep(early).replace(ends=np.full(len(streams), 2.5)))
    online.save(tmp_path)
    online.save(tmp_path)
    assert len(list(tmp_path.iterdir())) == 2
    again = rd.load_online(tmp_path, online.proposal)
    assert again.names == online.names
    for one in (online, again):
        late = {i: [] for i in streams.ids}
        for e in np.flatnonzero(~early):
            late[streams.ids[streams.stream_of_event[e]]].append((streams.event_times[e], int(streams.event_types[e])))
        one.feed(late, until=5.0)
    assert_same(online.posterior(), again.posterior())
    np.testing.assert_array_equal(online.log_evidence(), again.log_evidence())
    assert_same(online.forecast(1.0).observed, again.forecast(1.0).observed)


def test_nothing_grows_with_the_past(tmp_path):
    """Bytes of a saved run, and events kept, after 200 and after 600 events."""
    model = rd.Hawkes([0.5, 0.5], [[0.2, 0.2], [0.1, 0.2]], 2.0)
    online = rd.Online(rd.Filtering(model, rd.ByType([0.4, 0.1])), lag=5.0, particles=4)
    times = np.cumsum(np.random.default_rng(0).exponential(1.0, 600))
    sizes = []
    for first in (0, 200):
        last = 200 if first == 0 else 600
        online.feed({"a": [(t, 0) for t in times[first:last]]}, start=None if first else 0.0)
        online.save(tmp_path)
        sizes.append(sum(f.stat().st_size for f in tmp_path.iterdir()))
        line = online._lines["a"]
        assert line.until - 4 * online.lag <= line.marks.older.time <= line.until - online.lag
        assert line.times[0] > line.marks.older.time
    assert sizes[1] < 1.1 * sizes[0]


def test_a_feed_that_fails_changes_nothing(monkeypatch):
    online, streams = run()
    online.feed(streams)
    before = online.posterior()
    bad = {"nothing": [(6.0, 0)], 0: [(5.5, 1), (5.4, 1)]}
    with pytest.raises(rd.DataError, match="stream 0"):
        online.feed(bad)
    monkeypatch.setattr(online._carrier, "options", online._carrier.options.__class__(5, max_events=0))
    with pytest.raises(rd.RunawayError):
        online.feed({name: [(200.0, 1)] for name in ("new", *online.names)}, start={"new": 0.0})
    monkeypatch.undo()
    assert "new" not in online
    assert online.now("nothing") == 5.0
    assert_same(online.posterior(), before)
    online.feed({"newer": [(1.0, 1)]}, start=0.0)
    alone, _ = run()
    alone.feed({"newer": [(1.0, 1)]}, start=0.0)
    assert_same(online.posterior(["newer"]), alone.posterior())


def test_closed_streams_make_room():
    online, streams = run()
    online.feed(streams)
    online.close([0, "nothing"])
    assert "nothing" not in online
    slots = online._pools.head.slots
    for i in range(40):
        online.feed({f"x{i}": [(1.0, 0)]}, start=0.0, until={f"x{i}": 2.0})
        online.close([f"x{i}"])
    assert online._pools.head.slots == slots
    online.feed(streams[[0]])
    fresh, _ = run()
    fresh.feed(streams[[0]])
    assert_same(online.posterior([0]), fresh.posterior())


@pytest.mark.parametrize(
    ("events", "more", "message"),
    [
        ({"a": [(2.0, 0)]}, {}, r"stream 'a': event 1 is at 2, and the stream is known up to 3 already"),
        ({"a": [(3.0, 0)]}, {}, r"stream 'a': event 1 is at 3, and the stream is known up to 3"),
        ({"a": [(4.0, 0), (4.0, 1)]}, {}, r"stream 'a': event 2 is at 4, as the event before it"),
        ({"a": [(4.0, 0), (3.5, 1)]}, {}, r"stream 'a': event 2 is at 3.5, before the event before it, at 4"),
        ({"a": [(4.0, "d")]}, {}, r"stream 'a', row 1: unknown type 'd'; known types are '0', '1', '2'"),
        ({"a": [(4.0, 3)]}, {}, r"stream 'a', row 1: unknown type 3"),
        ({"a": [(4.0, True)]}, {}, r"stream 'a', row 1: unknown type True"),
        ({"a": [(float("nan"), 0)]}, {}, r"stream 'a', row 1: time is nan"),
        ({"a": [("soon", 0)]}, {}, r"stream 'a', row 1: .*'soon'"),
        ({"a": [4.0]}, {}, r"stream 'a': events are \[4.0\].*pairs of time and type"),
        ({"b": [(4.0, 0)]}, {}, r"stream 'b': this stream is not known yet.*start="),
        ({"b": [(-1.0, 0)]}, {"start": 0.0}, r"stream 'b': event 1 is at -1, before its start 0"),
        ({"a": [(4.0, 0)]}, {"start": 1.0}, r"stream 'a': this stream began at 0"),
        ({"a": []}, {"until": {"a": 2.0}}, r"stream 'a': until= \(2\) is before 3"),
        ({"a": [(9.0, 0)]}, {"until": {"a": 8.0}}, r"stream 'a': until= \(8\) is before 9"),
        ({}, {"until": {"c": 8.0}}, r"stream 'c': this stream is not known yet"),
        ({}, {"until": {"a": 1e9}}, r"stream 'a': nothing happened for more than 100,000 times the lag"),
        ({1.5: [(9.0, 0)]}, {}, r"a stream cannot be named 1.5"),
        ([(9.0, 0)], {}, r"by the name of the stream"),
        (rd.StreamSet([rd.EventStream([], [], start=5.0, end=6.0, id="a")], types="012"), {}, r"goes on only at 5"),
    ],
)
def test_what_cannot_be_true_is_refused_by_name(events, more, message):
    online, _ = run()
    online.feed({"a": [(1.0, 0), (2.5, 1)]}, start=0.0, until=3.0)
    with pytest.raises(rd.DataError, match=message):
        online.feed(events, **more)
    online.feed({"a": [(3.5, 0)]})


def test_one_time_for_all_leaves_streams_that_are_further():
    online, _ = run()
    online.feed({"a": [(1.0, 0)], "b": [(4.0, 1)]}, start=0.0)
    online.feed(until=2.0)
    assert (online.now("a"), online.now("b")) == (2.0, 4.0)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda p: rd.Online(p, 0.0), "lag must be a positive number"),
        (lambda p: rd.Online(p, 1.0, particles=0), "particles must be"),
        (lambda p: rd.Online(p, 1.0, particles=10, islands=3), "islands must divide"),
        (
            lambda p: rd.Online(p, 1.0, missing=rd.ReportingDelay(mean=1.0)),
            "depends on when the stream ends",
        ),
        (lambda p: rd.Online(rd.Smoothing(p.model), 1.0), "has to be told which events go missing"),
    ],
)
def test_what_cannot_run_online_is_refused_in_words(make, message):
    with pytest.raises(rd.ModelError, match=message):
        make(rd.Filtering(EXAMPLES["hawkes"](), MECHANISM))


def test_questions_about_no_stream_and_unknown_streams():
    online, _ = run()
    assert len(online.posterior()) == len(online.forecast(1.0).observed) == len(online.log_evidence()) == 0
    with pytest.raises(rd.DataError, match=r"stream 'x': this stream is not known"):
        online.posterior(["x"])
    with pytest.raises(rd.DataError, match="ahead= is -1"):
        online.forecast(-1)
    online.feed({"a": []}, start=2.0)
    for ask in (online.posterior, online.log_evidence, lambda names: online.forecast(1.0, names)):
        with pytest.raises(rd.DataError, match=r"stream 'a': this stream is named twice"):
            ask(["a", "a"])
    assert online.posterior().expected_count() == [0.0]
    assert online.log_evidence() == [0.0]


def test_another_model_or_mechanism_is_refused(tmp_path):
    online, streams = run()
    online.feed(streams)
    online.save(tmp_path)
    other = rd.Hawkes([0.5, 0.3, 0.2], np.full((3, 3), 0.1).tolist(), 1.5).double()
    with pytest.raises(rd.ModelError, match="another model"):
        rd.load_online(tmp_path, rd.Filtering(other, MECHANISM))
    with pytest.raises(rd.ModelError, match="another mechanism"):
        rd.load_online(tmp_path, rd.Filtering(EXAMPLES["hawkes"](), rd.ByType(0.5)))
    with pytest.raises(rd.DataError, match="not a saved online run"):
        rd.load_online(tmp_path / "nowhere", online.proposal)


def test_a_damaged_folder_is_refused_in_words(tmp_path):
    """Any byte of the tensors, and wrong values in the description: an error in words, nothing else."""
    online, streams = run()
    online.feed(streams)
    online.save(tmp_path)
    about, (tensors,) = tmp_path / "online.json", tmp_path.glob("*.safetensors")
    good, text = tensors.read_bytes(), about.read_text()
    generator = np.random.default_rng(0)
    for _ in range(20):
        at = int(generator.integers(len(good)))
        tensors.write_bytes(good[:at] + bytes([good[at] ^ 1]) + good[at + 1 :])
        with pytest.raises(rd.DataError, match="damaged"):
            rd.load_online(tmp_path, online.proposal)
    tensors.write_bytes(good)
    facts = json.loads(text)
    wrong = [None, -1, 1e300, "x", [], {}, True]
    for key in ["format", "version", "tensors", "names", "axis", "options", *facts["options"]]:
        for value in wrong:
            new = json.loads(text)
            (new if key in new else new["options"])[key] = value
            about.write_text(json.dumps(new))
            with contextlib.suppress(rd.RetrodictError):
                rd.load_online(tmp_path, online.proposal)
    about.write_text(text)
    assert_same(rd.load_online(tmp_path, online.proposal).posterior(), online.posterior())


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("head.state.0", float("inf")),
        ("newer.state.0", float("nan")),
        ("head.state.1", 99.0),
        ("older.window", 0.0),
        ("head.rounds", -1),
        ("head.log_weights", float("inf")),
        ("types", 3),
        ("times", 99.0),
        ("until", 1.0),
        ("older.time", 4.9),
        ("head.number", -1),
        ("events", 10**9),
    ],
)
def test_numbers_that_no_run_has_are_refused(name, value, tmp_path):
    """Even where the file is whole: somebody may have made it so."""
    online, streams = run()
    online.feed(streams)
    online.save(tmp_path)
    (file,) = tmp_path.glob("*.safetensors")
    tensors = load_file(file)
    tensors[name][0] = value
    data = save(tensors)
    new = f"online-{hashlib.blake2b(data, digest_size=16).hexdigest()}.safetensors"
    (tmp_path / new).write_bytes(data)
    about = json.loads((tmp_path / "online.json").read_text())
    (tmp_path / "online.json").write_text(json.dumps(about | {"tensors": new}))
    with pytest.raises(rd.DataError, match="damaged"):
        rd.load_online(tmp_path, online.proposal)


def test_a_writer_that_is_killed_leaves_the_old_run(tmp_path, monkeypatch):
    """The description is replaced last: where it is not, the folder holds what it held."""
    online, streams = run()
    online.feed(streams[[0]])
    online.save(tmp_path)
    online.feed(streams[[1]])

    def die(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("retrodict.smc.online.folder.write_text", die)
    with pytest.raises(KeyboardInterrupt):
        online.save(tmp_path)
    monkeypatch.undo()
    assert rd.load_online(tmp_path, online.proposal).names == [0]


def test_neural_models_in_single_precision_go_on_too():
    model = random_neural_hawkes().float()
    online = rd.Online(rd.Filtering(model, MECHANISM), lag=2.0, particles=10)
    online.feed(streams_of(model, MECHANISM))
    assert online.posterior().full.event_times.dtype == np.float64
    assert np.isfinite(online.log_evidence()).all()
    assert torch.get_default_dtype() == torch.float32


@pytest.mark.parametrize("kind", ["filtering", "smoothing"])
def test_the_recent_past_is_a_posterior_of_the_last_lag(kind, recwarn):
    """It has a segment more than observed events, each with its families, and all that a posterior answers."""
    online, streams = run(kind)
    online.feed(streams)
    past = online.posterior()
    late = streams.event_times > 3.5
    np.testing.assert_array_equal(past.observed.event_times, streams.event_times[late])
    np.testing.assert_array_equal(past.observed.starts, 3.5)
    for guesses in (past.full, past.lagged):
        known = ~np.isnan(guesses.families).any(1)
        np.testing.assert_array_equal(known.sum(1), past.observed.lengths + 1)
        assert bool((guesses.event_times > 3.5).all())
        assert bool((guesses.event_times <= 5.0).all())
    np.testing.assert_array_equal((~np.isnan(past.diagnostics.ess)).sum(1), past.observed.lengths + 1)
    past.warn()
    past.model = online.proposal.model
    with pytest.raises(rd.DataError, match=r"online.forecast\(ahead=...\)"):
        past.forecast(6.0)
    assert past.consensus(cost=0.5).num_types == 3
    np.testing.assert_allclose(past.intensity([3.5, 4.0, 5.0]) @ np.ones(3) @ [0.5, 1.0], past.expected_count())


def test_the_example_runs():
    (example,) = (test for test in doctest.DocTestFinder().find(rd.Online, "Online", globs={}) if test.examples)
    runner = doctest.DocTestRunner()
    runner.run(example)
    assert runner.summarize().failed == 0
