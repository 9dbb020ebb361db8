"""What several clients do to one run at the same moment comes out as if one had waited for the other."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import pytest

import retrodict as rd
from tests.serve.serving import BEGIN, FEEDS, feed, serve


def meanwhile(patch: pytest.MonkeyPatch, method: str, do: Callable[[], Any], *, before: bool = False) -> list[Any]:
    """Let another client do something, once, after (or before) a method of rd.Online; what it gets comes later."""
    true, found, threads = getattr(rd.Online, method), list[Any](), list[threading.Thread]()

    def other() -> None:
        if not threads:
            threads.append(threading.Thread(target=lambda: found.append(do())))
            threads[0].start()
            threads[0].join(1.0)  # it may have to wait for the first one

    def both(self: Any, *given: Any, **more: Any) -> Any:
        if before:
            other()
        result = true(self, *given, **more)
        other()
        return result

    patch.setattr(rd.Online, method, both)
    return found


def test_a_stream_that_is_closed_right_after_a_feed_was_fed(models, monkeypatch):
    with serve(models, workers=2) as client:
        client.put("/v1/online/run", json=BEGIN)
        feed(client, FEEDS[0])
        close = lambda: client.post("/v1/online/run/close", json={"streams": ["a"]}).status_code  # noqa: E731
        closed = meanwhile(monkeypatch, "_take", close)
        assert feed(client, FEEDS[1])["now"] == {"a": 6.0, "b": 6.5}
        assert client.post("/v1/online/run/ask", json={"streams": ["b"]}).status_code == 200
        assert closed == [200]


def test_an_answer_is_of_one_moment(models, monkeypatch):
    with serve(models, workers=2) as client:
        client.put("/v1/online/run", json=BEGIN)
        feed(client, FEEDS[0])
        meanwhile(monkeypatch, "posterior", lambda: feed(client, FEEDS[1]))
        answer = client.post("/v1/online/run/ask", json={"cost": 1.0}).json()
        assert answer["now"] == [stream["horizon"][1] for stream in answer["imputed"]] == [3.0, 3.0]


def test_a_feed_in_flight_does_not_come_into_a_new_run_of_the_same_name(models, monkeypatch, tmp_path):
    def begin_anew() -> list[int]:
        answers = client.delete("/v1/online/run"), client.put("/v1/online/run", json=BEGIN)
        return [answer.status_code for answer in answers]

    with serve(models, online=tmp_path, workers=2) as client:
        client.put("/v1/online/run", json=BEGIN)
        feed(client, FEEDS[0])
        begun = meanwhile(monkeypatch, "_take", begin_anew, before=True)
        assert client.post("/v1/online/run/feed", json=FEEDS[1]).status_code == 404
        assert begun == [[204, 201]]
        assert client.get("/v1/online/run").json()["now"] == {}
    with serve(models, online=tmp_path) as client:
        assert client.get("/v1/online/run").json()["now"] == {}


def test_runs_that_are_fed_at_once_keep_to_the_limit_together(models, monkeypatch):
    feeds = {name: {"events": {name: [], f"{name}-2": []}, "start": 0.0, "until": 1.0} for name in ("run", "other")}
    with serve(models, online_streams=3, workers=2) as client:
        for name in feeds:
            client.put(f"/v1/online/{name}", json=BEGIN)
        also = lambda: client.post("/v1/online/other/feed", json=feeds["other"]).status_code  # noqa: E731
        others = meanwhile(monkeypatch, "_take", also, before=True)
        feed(client, feeds["run"])
        assert others == [422]
        assert client.app.state.server.runs.num_streams == 2
