"""Health, metrics, and a description that tells the truth."""

from __future__ import annotations

import time

from tests.serve.serving import STREAMS, serve


def test_live_at_once_and_ready_when_warm(models):
    with serve(models) as client:
        assert client.get("/health/live").json() == {"status": "live"}
        until = time.monotonic() + 60
        while (answer := client.get("/health/ready")).status_code != 200 and time.monotonic() < until:
            assert answer.json() == {"status": "starting"}
            time.sleep(0.05)
        assert answer.json() == {"status": "ready"}
        client.app.state.server.stop()
        assert client.get("/health/ready").status_code == 503


def test_metrics_count_requests_by_endpoint_and_status(models):
    with serve(models) as client:
        client.post("/v1/impute", json={"streams": STREAMS, "missing": "0.5", "particles": 20})
        client.post("/v1/impute", json={})
        client.get("/made/up")
        text = client.get("/metrics").text
    assert 'retrodict_requests_total{endpoint="/v1/impute",status="200"} 1.0' in text
    assert 'retrodict_requests_total{endpoint="/v1/impute",status="400"} 1.0' in text
    assert 'retrodict_requests_total{endpoint="other",status="404"} 1.0' in text
    assert "made" not in text  # a label for every path that somebody tries would fill the memory
    assert "retrodict_streams_total 2.0" in text
    assert "retrodict_queue_length 0.0" in text
    assert "retrodict_held_bytes 0.0" in text


def test_the_examples_of_the_description_are_answered(client):
    described = client.get("/openapi.json").json()
    tried = 0
    for path, item in described["paths"].items():
        content = item.get("post", {}).get("requestBody", {}).get("content", {})
        for media in content.values():
            name = media["schema"]["$ref"].rsplit("/", 1)[1]
            for example in described["components"]["schemas"][name].get("examples", []):
                answer = client.post(path.replace("{", "").replace("}", ""), json=example)
                assert answer.status_code in (200, 201, 404), (path, answer.text)
                tried += answer.status_code == 200
    assert tried >= 2


def test_the_description_says_which_statuses_may_come(client):
    described = client.get("/openapi.json").json()
    statuses = set(described["paths"]["/v1/impute"]["post"]["responses"])
    assert statuses == {"200", "400", "401", "404", "408", "413", "415", "422", "429", "500", "503", "504"}
