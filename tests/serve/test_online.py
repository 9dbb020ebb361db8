"""Online runs over HTTP say what rd.Online says, and are there again after a restart."""

from __future__ import annotations

import json
from typing import Any

import pytest

import retrodict as rd
from tests.serve.serving import serve

BEGIN = {"lag": 5.0, "missing": "in=0.5", "particles": 100, "seed": 3}
FEEDS = [
    {"events": {"a": [[1.0, "out"], [2.5, "in"]], "b": []}, "until": 3.0, "start": 0.0},
    {"events": {"a": [[6.0, "out"]]}, "until": {"b": 6.5}},
]


@pytest.fixture
def run(client):
    assert client.put("/v1/online/run", json=BEGIN).status_code == 201
    yield client
    client.delete("/v1/online/run")


def feed(client: Any, *feeds: dict[str, Any]) -> Any:
    answers = [client.post("/v1/online/run/feed", json=each) for each in feeds]
    assert [answer.status_code for answer in answers] == [200] * len(feeds), answers[-1].text
    return answers[-1].json()


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


def test_more_streams_than_the_server_takes(models):
    with serve(models, online_streams=2) as client:
        client.put("/v1/online/run", json=BEGIN)
        feed(client, {"events": {"a": [], "b": []}, "start": 0.0, "until": 1.0})
        answer = client.post("/v1/online/run/feed", json={"events": {"c": []}, "start": 0.0, "until": 1.0})
        assert (answer.status_code, answer.json()["error"]["code"]) == (422, "limit")


def test_a_run_goes_on_after_a_restart(models, tmp_path):
    asked = {"questions": [{"type": "in"}], "ahead": 1.0}
    with serve(models, online=tmp_path / "kept") as client:
        client.put("/v1/online/run", json=BEGIN)
        feed(client, FEEDS[0])
        client.put("/v1/online/gone", json=BEGIN)
        client.delete("/v1/online/gone")
        first = client.app.state.server.runs
        assert first.num_streams == 2
    with serve(models, online=tmp_path / "kept") as client:  # nothing was saved at the end: all of it was before
        assert client.get("/v1/online").json() == {"runs": ["run"]}
        feed(client, FEEDS[1])
        again = client.post("/v1/online/run/ask", json=asked).content
    with serve(models) as client:
        client.put("/v1/online/run", json=BEGIN)
        feed(client, *FEEDS)
        assert client.post("/v1/online/run/ask", json=asked).content == again


def test_a_run_of_another_model_is_refused_at_the_start(models, folders, tmp_path):
    with serve(models, online=tmp_path) as client:
        client.put("/v1/online/run", json=BEGIN)
    kept = json.loads((tmp_path / "run" / "asked.json").read_text())
    (tmp_path / "run" / "asked.json").write_text(json.dumps({**kept, "missing": "in=0.4"}))
    with pytest.raises(rd.ModelError, match="another mechanism"):
        serve(models, online=tmp_path)
    (tmp_path / "run" / "asked.json").write_text("{")
    with pytest.raises(rd.DataError, match="cannot be gone on with"):
        serve(models, online=tmp_path)


def test_a_full_disk_is_told_of_and_loses_nothing(models, tmp_path, monkeypatch):
    with serve(models, online=tmp_path / "kept") as client:
        client.put("/v1/online/run", json=BEGIN)
        feed(client, FEEDS[0])
        with monkeypatch.context() as patch:

            def full(*_: Any) -> None:
                raise rd.WriteError("the disk is full", file=tmp_path)

            patch.setattr(rd.Online, "save", full)
            answer = client.post("/v1/online/run/feed", json=FEEDS[1])
            assert answer.status_code == 500
            assert answer.json()["error"]["code"] == "storage"
            assert str(tmp_path) not in answer.text
        assert client.get("/v1/online/run").json()["now"]["a"] == 6.0  # taken in, and kept with the next feed
