"""Requests that are nearly right, and requests that follow the server's own description: no crash, no wrong status."""

from __future__ import annotations

import copy
import json
import os
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from tests.serve.serving import STREAMS

schemathesis = pytest.importorskip("schemathesis", reason="needs schemathesis")
SMALL = settings(deadline=None, suppress_health_check=list(HealthCheck), derandomize=True, phases=[Phase.generate])
JSON = {"content-type": "application/json"}
NASTY = [
    None, True, False, 0, -1, 1, 2**31, 2**63, -(2**63), 10**400, 0.5, -0.0, 1e-308, 5e-324, 1e15, 1e16, 1e308, -1e308,
    "", "in", "up", "0.5", "in=1", "*=0.5", "NaN", "2024-01-01", "9999-12-31T23:59", "é\u0000\u202e", "x" * 5000,
    [], {}, [[]], [None], [0.1] * 50, ["in"] * 50, {"mechanism": "windows", "windows": [[0, 1]], "every": 0.001},
    {"mechanism": "reporting_delay", "mean": 1e-9}, {"mechanism": "after", "trigger": "in", "within": 1e300},
    {"mechanism": "time_varying", "times": [0, 0, 1], "rates": [0, 1, 0.5], "steps": True}, {"a": {"b": {"c": []}}},
]  # fmt: skip
BASES: list[tuple[str, dict[str, Any]]] = [
    ("/v1/impute", {"streams": STREAMS, "missing": "in=0.5", "particles": 20, "cost": 1.0, "level": 0.9, "seed": 1}),
    (
        "/v1/query",
        {
            "streams": [
                {**STREAMS[0], "axis": {"unit": "hour", "origin": 0, "timezone": "UTC"}, "columns": {"x": [1, 2, 3]}}
            ],
            "missing": [{"mechanism": "windows", "windows": [["08:00", "09:00"]], "every": "day"}, "0.1"],
            "particles": 20,
            "questions": [{"type": "in", "start": 1, "end": 5}],
            "grid": [0, 1, 2],
        },
    ),
    ("/v1/online/hostile/feed", {"events": {"a": [[1.0, "in"], [2.0, "out"]]}, "until": 3.0, "start": 0.0}),
    ("/v1/online/hostile/ask", {"streams": ["kept"], "questions": [{"start": 0, "end": 1}], "cost": 1.0, "ahead": 1.0}),
]  # fmt: skip


def places(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """The ways to all values in a value."""
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [path, *(place for key, item in inner for place in places(item, (*path, key)))]


def put(value: Any, path: tuple[Any, ...], new: Any) -> Any:
    """A copy with another value at a place."""
    if not path:
        return new
    changed = copy.deepcopy(value)
    at = changed
    for key in path[:-1]:
        at = at[key]
    at[path[-1]] = new
    return changed


@settings(SMALL, max_examples=int(os.environ.get("HOSTILE", "300")))
@given(data=st.data())
def test_requests_that_are_nearly_right(client, data):
    if client.get("/v1/online/hostile").status_code == 404:
        client.put("/v1/online/hostile", json={"lag": 5.0, "missing": "in=0.5", "particles": 20})
        client.post("/v1/online/hostile/feed", json={"events": {"kept": [[0.5, "out"]]}, "start": 0.0})
    path, asked = data.draw(st.sampled_from(BASES))
    for _ in range(data.draw(st.integers(1, 2))):
        asked = put(asked, data.draw(st.sampled_from(places(asked))), data.draw(st.sampled_from(NASTY)))
    answer = client.post(path, content=json.dumps(asked), headers=JSON)
    assert answer.status_code in (200, 400, 404, 422), (asked, answer.text)
    if answer.status_code != 200:
        error = answer.json()["error"]
        assert error["message"]
        assert len(answer.content) < 10_000, asked


def test_requests_that_follow_the_description(client):
    """A small run; benchmarks/serve_fuzz.py makes 10,000 requests to a real server."""
    described = schemathesis.openapi.from_dict(client.get("/openapi.json").json())
    statuses = [status for found in described.get_all_operations() for status in answers_to(client, found.ok())]
    assert len(statuses) > 100
    assert 200 in statuses


def answers_to(client: Any, operation: Any) -> list[int]:
    """The statuses of the answers to requests that are made from an operation's description."""
    declared, statuses = {int(status) for status in operation.definition.raw["responses"]}, []

    @settings(SMALL, max_examples=12)
    @given(case=operation.as_strategy())
    def ask(case: Any) -> None:
        sent = case.as_transport_kwargs(base_url="http://testserver")
        some = {key: sent[key] for key in ("method", "url", "json", "data", "headers", "params") if key in sent}
        answer = client.request(**some)
        statuses.append(answer.status_code)
        assert answer.status_code in declared - {500}, (operation.label, answer.status_code, answer.text)

    ask()
    return statuses
