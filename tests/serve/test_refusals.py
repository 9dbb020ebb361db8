"""Requests that cannot be answered: the right status, in words, at once."""

from __future__ import annotations

import json
import time
from typing import Any

import pytest

from tests.serve.serving import STREAMS, serve

STREAM = {"id": "a", "horizon": [0, 10], "times": [1.0, 2.0], "types": ["in", "out"]}
JSON = {"content-type": "application/json"}


def impute(client: Any, *streams: dict[str, Any], **more: Any) -> Any:
    return client.post("/v1/impute", json={"streams": list(streams), "missing": "0.5", "particles": 20, **more})


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"times": [1.0, 20.0]}, "time 20 lies after the stream's end 10"),
        ({"times": [1.0]}, "there are 1 times but 2 types"),
        ({"times": [1.0, "x"]}, "event 2: the time 'x' in 'times' is not a number"),
        ({"times": [1.0, True]}, "event 2: the time True"),
        ({"times": [[1.0], 2.0]}, "'times' is not a flat list"),
        ({"types": ["in", "up"]}, "event 2: unknown type 'up'; known types are 'in', 'out'"),
        ({"types": [0, 7]}, "unknown type"),
        ({"types": ["in", 1]}, "event 2: the type 1 in 'types' is not a str like the first"),
        ({"horizon": [10, 0]}, "ends at 0"),
        ({"horizon": [0]}, "the horizon [0] is malformed"),
        ({"horizon": [-1e308, 1e308]}, "duration is not finite"),
        ({"horizon": [0, 1e308]}, "events would be missing"),
        ({"horizon": [0, 1e9]}, "events would be missing"),
        ({"times": [1.0, 10**400]}, "too large"),
        ({"id": None}, "the id None is not text or an integer"),
        ({"columns": {"imputed": [1, 2]}}, "a column 'imputed' of its own"),
        ({"columns": [1]}, "'columns' is not an object of lists"),
        ({"axis": {"unit": "hour", "timezone": "../etc/passwd"}}, "'axis' is malformed"),
    ],
)
def test_streams_that_cannot_be_used(client, change, words):
    answer = impute(client, {**STREAM, **change})
    error = answer.json()["error"]
    assert answer.status_code == 422, answer.text
    assert words in error["message"]
    assert "types=" not in error["message"]
    assert len(answer.content) < 4000


def test_errors_name_the_stream_its_place_and_the_remedy(client):
    error = impute(client, STREAMS[0], {**STREAM, "times": [1.0, -5.0]}).json()["error"]
    assert (error["stream"], error["row"], error["code"]) == ("a", 2, "data")
    assert error["remedy"] in error["message"]
    assert impute(client, STREAM, STREAM).json()["error"]["message"].startswith("stream 'a', row 2: the id was used")


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"{",
        b"[1]",
        b"null",
        b"\xff\xfe",
        b'{"streams": [{"horizon": [0, NaN], "times": [], "types": []}]}',
        b'{"streams": [{"horizon": [0, Infinity], "times": [], "types": []}]}',
        b"[" * 200_000,
        b'{"streams":' + b'{"a":' * 100_000,
        b'{"streams": [{"horizon": [0, 1' + b"0" * 10_000 + b'], "times": [], "types": []}]}',
        b'{"streams": [], "missing": "0.5"}',
        b'{"streams": [1], "missing": "0.5"}',
        b'{"streams": {"times": []}}',
        b'{"streams": [{"id": "\\ud800", "horizon": [0, 1], "times": [], "types": []}]}',
        json.dumps({"streams": [STREAM], "cost": 0}).encode(),
        json.dumps({"streams": [STREAM], "cost": "1"}).encode(),
        json.dumps({"streams": [STREAM], "seed": -1}).encode(),
        json.dumps({"streams": [STREAM], "seed": True}).encode(),
        json.dumps({"streams": [STREAM], "particles": 1.5}).encode(),
        json.dumps({"streams": [STREAM], "costs": 1}).encode(),
        json.dumps({"streams": [STREAM], "missing": []}).encode(),
        json.dumps({"streams": [STREAM], "missing": 0.5}).encode(),
    ],
)
def test_bodies_that_are_no_request(client, body):
    answer = client.post("/v1/impute", content=body, headers=JSON)
    assert answer.status_code == 400, answer.text
    assert answer.json()["error"]["code"] in ("json", "request")
    assert len(answer.content) < 2000


@pytest.mark.parametrize(
    ("missing", "words"),
    [
        ("in=2", "A rate is a probability"),
        ("up=0.5", "no event type"),
        ("secret.yaml", "cannot understand the missing rate"),
        ({"mechanism": "contextual", "types": 1, "scales": [1], "hidden": 10**9}, "the server takes no mechanism"),
        ({"mechanism": "custom"}, "the server takes no mechanism"),
        ({"mechanism": "anything"}, "the server takes no mechanism"),
        ({"mechanism": "windows", "windows": [[0, 1e-9]], "every": 1e-8}, "recurs less often"),
        ({"mechanism": "windows", "windows": [[i, i + 1] for i in range(9000)]}, None),
        ({"mechanism": "windows", "windows": 3}, "the windows are 3"),
        ({"mechanism": "by_type", "rates": {"in": 1e300}}, "A rate is a probability"),
        ({}, "the key 'mechanism' is missing"),
        ([{"mechanism": "by_type", "rates": 0.1}, 3], None),
    ],
)
def test_mechanisms_that_cannot_be_used(client, missing, words):
    answer = impute(client, STREAM, missing=missing)
    assert answer.status_code in ((422,) if words else (200, 400, 422)), answer.text
    assert words is None or words in answer.json()["error"]["message"]
    assert ".yaml" not in answer.json()["error"]["message"].replace("'secret.yaml'", "") if words else True


def test_what_is_not_there(client):
    assert client.get("/v1/nothing").status_code == 404
    assert client.get("/v1/impute").headers["allow"] == "POST"
    assert impute(client, STREAM, model="../doors").status_code == 404
    assert impute(client, STREAM, smoother="other").status_code == 422
    nothing_said = client.post("/v1/impute", json={"streams": [STREAM]})
    assert nothing_said.status_code == 422
    assert 'Say so with "missing"' in nothing_said.json()["error"]["message"]


def test_bodies_of_the_wrong_kind_or_size(models):
    with serve(models, bytes=1000) as client:
        assert client.post("/v1/impute", content=b"a=1").status_code == 415
        packed = {**JSON, "content-encoding": "gzip"}
        assert client.post("/v1/impute", content=b"x", headers=packed).status_code == 415
        assert client.post("/v1/impute", content=b" " * 1001, headers=JSON).status_code == 413
        in_pieces = client.post("/v1/impute", content=iter([b" " * 600] * 2), headers=JSON)
        assert in_pieces.status_code == 413
        assert client.app.state.server.bodies.held == 0


def test_more_than_the_server_takes(models):
    with serve(models, streams=2, events=10, particles=50, work=400, questions=1, answers=20) as client:
        assert impute(client, STREAM).status_code == 200
        for answer in (
            impute(client, *({**STREAM, "id": i} for i in range(3))),
            impute(client, {**STREAM, "times": [1.0] * 11, "types": [0] * 11}),
            impute(client, STREAM, particles=51),
            impute(client, {**STREAM, "times": [1.0] * 10, "types": [0] * 10}, particles=50),
            client.post("/v1/query", json={"streams": [STREAM], "missing": "0.5", "questions": [{}, {}]}),
            client.post("/v1/query", json={"streams": [STREAM], "missing": "0.5", "grid": [*range(50)]}),
        ):
            assert answer.status_code == 422, answer.text
            assert answer.json()["error"]["code"] == "limit"
            assert answer.json()["error"]["remedy"]


def test_a_million_events_are_refused_before_they_are_read(models):
    body = json.dumps({"streams": [{**STREAM, "times": [1] * 1_000_000, "types": [0] * 1_000_000}]}).encode()
    with serve(models, bytes=16 << 20) as client:
        begin = time.perf_counter()
        answer = client.post("/v1/impute", content=body, headers=JSON)
        assert (answer.status_code, answer.json()["error"]["code"]) == (422, "limit")
        assert time.perf_counter() - begin < 5
    with serve(models) as client:
        assert client.post("/v1/impute", content=body, headers=JSON).status_code == 413


def test_a_guess_that_runs_away_is_told_of(models):
    with serve(models, missing=12) as client:
        answer = impute(client, {**STREAM, "horizon": [0, 100]})
        assert answer.status_code == 422, answer.text
        assert answer.json()["error"]["code"] == "runaway"


def test_the_token(models):
    token = "correct-horse-battery"
    with serve(models, token=token) as client:
        assert client.get("/health/live").status_code == 200
        for path in ("/v1/models", "/metrics", "/openapi.json", "/nothing"):
            assert client.get(path).status_code == 401
            assert client.get(path).headers["www-authenticate"] == "Bearer"
        for wrong in (token, f"Basic {token}", "Bearer", f"Bearer {token}x", "Bearer é", f"Bearer {token[:-1]}"):
            assert client.get("/v1/models", headers={"authorization": wrong.encode()}).status_code == 401
        right = {"authorization": f"Bearer {token}"}
        assert client.get("/v1/models", headers=right).status_code == 200
        described = client.get("/openapi.json", headers=right).json()
        assert described["security"] == [{"bearer": []}]
        assert described["paths"]["/health/live"]["get"]["security"] == []


def test_no_answer_tells_where_files_are(client, folders):
    bodies = [b"{", b"[]", json.dumps({"streams": [STREAM], "model": "x"}).encode(), b'{"streams":[{}]}']
    told = "".join(client.post("/v1/impute", content=body, headers=JSON).text for body in bodies)
    told += client.get("/v1/models").text + client.get("/openapi.json").text
    assert str(folders[0].parent) not in told
    assert "Traceback" not in told
