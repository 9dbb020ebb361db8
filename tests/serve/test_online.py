"""Online runs over HTTP say what rd.Online says, and are there again after a restart."""

from __future__ import annotations

from typing import Any

import pytest

import retrodict as rd
from tests.serve.serving import BEGIN, FEEDS, feed, serve


@pytest.fixture
def run(client):
    assert client.put("/v1/online/run", json=BEGIN).status_code == 201
    yield client
    client.delete("/v1/online/run")


def test_it_is_rd_online(run, filtering):
    about = feed(run, *FEEDS)
    assert about["now"] == {"a": 6.0, "b": 6.5}
    online = rd.Online(filtering, 5.0, particles=100, seed=3, max_events=2000)
    for each in FEEDS:
        online.feed(each["events"], until=each.get("until"), start=each.get("start"))
    asked = {"questions": [{"type": "in"}, {"start": 3, "end": 5}], "cost": 2.0, "ahead": 1.5}
    answer = run.post("/v1/online/run/ask", json=asked).json()
    posterior, future = online.posterior(), online.forecast(1.5)
    assert answer["ids"] == ["a", "b"]
    assert answer["now"] == [6.0, 6.5]
    assert answer["log_evidence"] == posterior.log_evidence.tolist()
    assert answer["answers"][0]["probability"] == posterior.probability("in").tolist()
    assert answer["answers"][1]["expected"] == posterior.expected_count(None, 3, 5).tolist()
    decoded = posterior.consensus(2.0)
    assert [stream["times"] for stream in answer["imputed"]] == [stream.times.tolist() for stream in decoded]
    for part in ("complete", "observed"):
        expected = [row[1] for row in answer["forecast"][part]["expected"]]
        assert expected == getattr(future, part).expected_count("out").tolist()
    one = run.post("/v1/online/run/ask", json={**asked, "streams": ["b"]}).json()
    assert one["answers"][0]["probability"] == answer["answers"][0]["probability"][1:]


def test_a_feed_answers_about_the_streams_that_it_told_of(run):
    feed(run, *FEEDS)
    assert feed(run, {"events": {"a": [[7.0, "out"]]}})["now"] == {"a": 7.0}
    assert feed(run, {"until": 8.0})["now"] == {"a": 8.0, "b": 8.0}


def test_a_stream_that_is_asked_about_twice_is_named(run):
    feed(run, *FEEDS)
    asked = {"streams": ["a", "a", "b"], "questions": [{"type": "in"}], "ahead": 1.0}
    answer = run.post("/v1/online/run/ask", json=asked)
    assert answer.status_code == 422, answer.text
    error = answer.json()["error"]
    assert (error["stream"], error["remedy"]) == ("a", "name each stream once")


def test_streams_are_closed_and_runs_deleted(run):
    feed(run, *FEEDS)
    assert "run" in run.get("/v1/online").json()["runs"]
    assert run.post("/v1/online/run/close", json={"streams": ["a"]}).json()["now"] == {"b": 6.5}
    assert run.post("/v1/online/run/ask", json={"streams": ["a"]}).status_code == 422
    assert run.put("/v1/online/run", json=BEGIN).status_code == 409
    assert run.delete("/v1/online/run").status_code == 204
    assert run.get("/v1/online/run").status_code == 404
    assert run.post("/v1/online/run/feed", json=FEEDS[0]).status_code == 404


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"events": {"a": [[5.0, "out"]]}}, "known up to 6 already"),
        ({"events": {"c": [[5.0, "out"]]}}, "this stream is not known yet"),
        ({"events": {"a": [[7.0, "up"]]}}, "unknown type 'up'"),
        ({"events": {"a": [[7.0]]}}, "pairs of time and type"),
        ({"events": {"a": [7.0]}}, "pairs of time and type"),
        ({"events": {"a": [["x", "out"]]}}, "time"),
        ({"until": 1e12}, "feed more often"),
        ({"until": 1e300}, "until"),
        ({"until": {"a": 1.0}}, "before"),
    ],
)
def test_feeds_that_are_refused_change_nothing(run, wrong, words):
    before = feed(run, *FEEDS)
    answer = run.post("/v1/online/run/feed", json=wrong)
    assert answer.status_code == 422, answer.text
    assert words in answer.json()["error"]["message"]
    assert run.get("/v1/online/run").json() == before


@pytest.mark.parametrize(
    "begin",
    [
        {"missing": "0.5"},
        {"lag": 0, "missing": "0.5"},
        {"lag": "5", "missing": "0.5"},
        {"lag": 5.0, "particles": 0, "missing": "0.5"},
    ],
)
def test_runs_that_are_no_runs(client, begin):
    assert client.put("/v1/online/wrong", json=begin).status_code == 400


def test_runs_that_cannot_be(client):
    for begin in ({"lag": 5.0}, {**BEGIN, "lag": 1e300}, {**BEGIN, "particles": 10**6}, {**BEGIN, "axis": {"x": 1}}):
        assert client.put("/v1/online/wrong", json=begin).status_code == 422
    for name in ("..", "a.b", "%2e%2e", "a%2fb", "é", "x" * 65):
        assert client.put(f"/v1/online/{name}", json=BEGIN).status_code in (400, 404, 405)
    assert "wrong" not in client.get("/v1/online").json()["runs"]


def test_what_runs_have_in_memory_is_counted_and_bounded(models):
    def new(count: int, first: int = 0) -> dict[str, Any]:
        return {"events": {f"s{i}": [] for i in range(first, first + count)}, "start": 0.0, "until": 1.0}

    def held(runs: Any) -> int:
        pools = [pool for run in runs._runs.values() for pool in run.online._pools]
        particles = [value for pool in pools for value in (*pool.tensors.values(), *pool.empty.values())]
        lines = [line for run in runs._runs.values() for line in run.online._lines.values()]
        return sum(value.nbytes for value in particles) + 64 * sum(len(line.times) for line in lines)

    with serve(models) as client:  # what 16 streams take
        runs = client.app.state.server.runs
        client.put("/v1/online/run", json=BEGIN)
        for number, each in enumerate([new(16), {"events": {"s1": [[2.0, "out"], [3.0, "out"]]}}, {"until": 50.0}]):
            before = held(runs)
            feed(client, each)
            assert runs.num_bytes == held(runs)
            assert [held(runs) > 10 * before, held(runs) == before + 128, held(runs) == before - 128][number]
        client.post("/v1/online/run/close", json={"streams": ["s1"]})
        most = runs.num_bytes
    with serve(models, online_memory=most + 1000) as client:
        runs = client.app.state.server.runs
        client.put("/v1/online/run", json=BEGIN)
        before = feed(client, new(16))
        answers = client.post("/v1/online/run/feed", json=new(1, 16)), client.put("/v1/online/other", json=BEGIN)
        for answer in answers:
            assert (answer.status_code, answer.json()["error"]["code"]) == (422, "limit")
            assert answer.json()["error"]["message"].startswith("bytes of online streams")
        assert client.get("/v1/online").json() == {"runs": ["run"]}
        assert client.get("/v1/online/run").json() == before
        assert runs.num_bytes == held(runs) == most
        client.post("/v1/online/run/close", json={"streams": ["s3"]})
        feed(client, new(1, 16))  # in the place of the one that ended
        client.delete("/v1/online/run")
        assert runs.num_bytes == 0
        assert client.put("/v1/online/other", json=BEGIN).status_code == 201


def test_more_streams_than_the_server_takes(models):
    with serve(models, online_streams=2) as client:
        client.put("/v1/online/run", json=BEGIN)
        feed(client, {"events": {"a": [], "b": []}, "start": 0.0, "until": 1.0})
        answer = client.post("/v1/online/run/feed", json={"events": {"c": []}, "start": 0.0, "until": 1.0})
        assert (answer.status_code, answer.json()["error"]["code"]) == (422, "limit")
