"""Requests that share a run get the answers that they would get alone; the queue has an end."""

from __future__ import annotations

import asyncio
import json
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from tests.conftest import compiled
from tests.serve.serving import (
    Batcher,
    ImputeRequest,
    Job,
    Metrics,
    QueryRequest,
    RefusalError,
    ServeLimits,
    impute_job,
    query_job,
    serve,
)

LIMITS = ServeLimits(workers=1)


def request_of(number: int, **more: Any) -> dict[str, Any]:
    """A request of one or two streams; ids come again in other requests, with other events."""
    streams = [
        {"id": i, "horizon": [0, 8 + number], "times": [1.0 + number / 7, 5.5], "types": ["in", "out"]}
        for i in range(1 + number % 2)
    ]
    return {"streams": streams, "missing": "0.4", "particles": 100, **more}


def jobs_of(models: Any, requests: list[dict[str, Any]]) -> list[Job]:
    made = []
    for asked in requests:
        kind, make = (QueryRequest, query_job) if "questions" in asked else (ImputeRequest, impute_job)
        made.append(make(kind.model_validate(asked), models, LIMITS))  # type: ignore[operator]
    return made


def run(jobs: list[Job], at_once: bool) -> tuple[list[bytes], float]:
    """The answers, and how many runs they took."""
    metrics = Metrics()
    batcher = Batcher(LIMITS, metrics)
    if not at_once:
        batcher.start()
    answers = []
    for job in jobs:
        batcher.submit(job)
        if not at_once:
            answers.append(job.future.result(60))
    if at_once:
        batcher.start()
        answers = [job.future.result(60) for job in jobs]
    batcher.stop(10)
    runs = metrics.registry.get_sample_value("retrodict_batch_requests_count")
    return answers, runs or 0.0


@compiled
def test_answers_are_the_same_bytes_in_any_batch(models):
    requests = [request_of(number, cost=1.0 + number) for number in range(5)]
    requests += [request_of(1, seed=7), request_of(2, seed=7), request_of(1, questions=[{"type": "in", "end": 4}])]
    alone, runs_alone = run(jobs_of(models, requests), at_once=False)
    together, runs = run(jobs_of(models, requests), at_once=True)
    backwards, _ = run(jobs_of(models, requests)[::-1], at_once=True)
    assert runs_alone == len(requests)
    assert runs == 2  # one for each seed
    assert together == alone
    assert backwards[::-1] == alone
    assert len(set(alone)) == len(requests)


@compiled
def test_a_smoother_gives_the_same_bytes_in_any_batch(models):
    served = models.find("flights")
    arrivals = [name for name in served.types if name.startswith("arrive")]
    requests = [
        {
            "model": "flights",
            "streams": [{"horizon": [0, 6 + n], "times": [1.0, 3.0 + n][: 1 + n % 2], "types": arrivals[: 1 + n % 2]}],
            "particles": 100,
        }
        for n in range(4)
    ]
    alone, _ = run(jobs_of(models, requests), at_once=False)
    together, runs = run(jobs_of(models, requests), at_once=True)
    assert runs == 1
    assert together == alone


def test_one_bad_request_does_not_spoil_those_it_was_run_with(models, monkeypatch):
    jobs = jobs_of(models, [request_of(0), request_of(1), request_of(2)])
    for job in jobs:
        job.max_events = 40
    jobs[1].observed = jobs[1].observed.replace(ends=jobs[1].observed.ends + 500)
    metrics = Metrics()
    batcher = Batcher(LIMITS, metrics)
    for job in jobs:
        batcher.submit(job)
    batcher.start()
    assert json.loads(jobs[0].future.result(60))["streams"]
    assert json.loads(jobs[2].future.result(60))["streams"]
    with pytest.raises(RefusalError, match="more than 40 missing events"):
        jobs[1].future.result(60)
    batcher.stop(10)
    assert metrics.registry.get_sample_value("retrodict_streams_total") == 2  # those that were imputed


def test_a_request_that_the_server_fails_on_fails_alone(models, monkeypatch):
    import retrodict.serve.batching as batching

    true = batching._impute

    def fail_on_the_second(jobs: Any) -> Any:
        if any(len(job.observed) == 2 for job in jobs):
            raise ZeroDivisionError
        return true(jobs)

    monkeypatch.setattr(batching, "_impute", fail_on_the_second)
    jobs = jobs_of(models, [request_of(0), request_of(1), request_of(2)])
    batcher = Batcher(LIMITS, Metrics())
    for job in jobs:
        batcher.submit(job)
    batcher.start()
    assert json.loads(jobs[0].future.result(60))["streams"]
    assert json.loads(jobs[2].future.result(60))["streams"]
    with pytest.raises(RefusalError) as refused:
        jobs[1].future.result(60)
    assert refused.value.status == 500
    batcher.stop(10)


def test_what_nobody_waits_for_is_not_run(models):
    metrics = Metrics()
    batcher = Batcher(LIMITS, metrics)
    jobs = jobs_of(models, [request_of(0), request_of(1)])
    for job in jobs:
        batcher.submit(job)
    jobs[0].abandon()
    batcher.start()
    assert jobs[1].future.result(60)
    batcher.stop(10)
    assert jobs[0].future.cancelled()
    assert metrics.registry.get_sample_value("retrodict_streams_total") == 2


def test_a_full_queue_refuses_and_says_when_to_come_back(models):
    batcher = Batcher(ServeLimits(workers=1, queue=2), Metrics())
    jobs = jobs_of(models, [request_of(n) for n in range(4)])
    batcher.submit(jobs[0])
    batcher.submit(jobs[1])
    with pytest.raises(RefusalError) as refused:
        batcher.submit(jobs[2])
    assert refused.value.status == 429
    assert refused.value.retry_after is not None
    assert refused.value.retry_after >= 1
    jobs[0].abandon()  # makes room
    batcher.submit(jobs[3])


class Held:
    """Lets no run begin before ``go``."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        import retrodict.serve.batching as batching

        self.go, true = threading.Event(), batching._impute

        def wait(jobs: Any) -> Any:
            self.go.wait(20)
            return true(jobs)

        monkeypatch.setattr(batching, "_impute", wait)


def test_requests_over_http_meet_the_limits_of_queue_and_time(models, monkeypatch):
    held = Held(monkeypatch)
    with serve(models, queue=1, seconds=1.0, batch_wait=0.0001) as client, ThreadPoolExecutor(3) as pool:
        answers = []
        for number in range(3):
            answers.append(pool.submit(client.post, "/v1/impute", json=request_of(0, seed=number)))
            time.sleep(0.2)
        statuses = [answer.result(20) for answer in answers]
        held.go.set()
    assert [answer.status_code for answer in statuses] == [504, 503, 429]  # running, waiting, no room
    assert all(int(answer.headers["retry-after"]) >= 1 for answer in statuses[1:])


def test_a_run_that_ends_late_does_no_harm(models, monkeypatch):
    held = Held(monkeypatch)
    with serve(models, seconds=0.3) as client:
        assert client.post("/v1/impute", json=request_of(0)).status_code == 504
        held.go.set()
        assert client.post("/v1/impute", json=request_of(0)).status_code == 200


def test_the_end_waits_no_longer_than_the_grace_since_the_server_was_told_to_stop(models, monkeypatch):
    held = Held(monkeypatch)
    with serve(models, seconds=0.3, grace=1.0) as client:
        server = client.app.state.server
        assert client.post("/v1/impute", json=request_of(0)).status_code == 504  # and its run goes on
        assert not server.is_stopping
        server.stop()
        assert client.get("/health/ready").json() == {"status": "stopping"}
        time.sleep(0.7)  # as long as connections took to end
        begin = time.monotonic()
    assert time.monotonic() - begin < 0.8
    held.go.set()


def test_the_event_loop_answers_while_the_engine_works(models, monkeypatch):
    held = Held(monkeypatch)
    with serve(models) as client, ThreadPoolExecutor(1) as pool:
        answer = pool.submit(client.post, "/v1/impute", json=request_of(0))
        time.sleep(0.1)
        begin = time.perf_counter()
        assert client.get("/health/live").status_code == 200
        assert time.perf_counter() - begin < 1
        held.go.set()
        assert answer.result(20).status_code == 200


def test_a_client_that_leaves_takes_its_request_along(models, monkeypatch):
    held = Held(monkeypatch)
    with serve(models, batch_wait=0.0001) as client, ThreadPoolExecutor(1) as pool:
        server = client.app.state.server
        first = pool.submit(client.post, "/v1/impute", json=request_of(0))
        time.sleep(0.2)
        asyncio.run(_ask_and_leave(client.app, json.dumps(request_of(1, seed=3)).encode()))
        held.go.set()
        assert first.result(20).status_code == 200
        assert client.post("/v1/impute", json=request_of(0)).status_code == 200  # comes after it in the queue
        assert server.metrics.registry.get_sample_value("retrodict_disconnected_total") == 1
        assert server.metrics.registry.get_sample_value("retrodict_streams_total") == 2  # of the other two


async def _ask_and_leave(app: Any, body: bytes) -> None:
    """One request by hand, whose client disconnects while it waits."""
    messages: asyncio.Queue[dict[str, Any]] = asyncio.Queue()
    messages.put_nowait({"type": "http.request", "body": body, "more_body": False})
    asyncio.get_running_loop().call_later(0.2, messages.put_nowait, {"type": "http.disconnect"})
    scope = {
        "type": "http", "method": "POST", "path": "/v1/impute", "raw_path": b"/v1/impute", "query_string": b"",
        "headers": [(b"content-type", b"application/json")], "http_version": "1.1", "scheme": "http",
        "server": ("test", 80), "client": ("test", 1), "root_path": "",
    }  # fmt: skip

    async def send(message: Any) -> None:
        pass

    await app(scope, messages.get, send)
