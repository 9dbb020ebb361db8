"""What the tests of the server share; importing it skips a file of tests where retrodict[serve] is not installed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from retrodict.models import Hawkes

for library in ("fastapi", "uvicorn", "prometheus_client", "httpx2"):
    pytest.importorskip(library, reason=f"needs {library}, of the extra retrodict[serve]")

from starlette.testclient import TestClient

from retrodict.serve import kept
from retrodict.serve.app import create_app
from retrodict.serve.batching import Batcher
from retrodict.serve.jobs import impute_job, query_job
from retrodict.serve.limits import RefusalError, ServeLimits
from retrodict.serve.metrics import Metrics
from retrodict.serve.models import Models
from retrodict.serve.online_schemas import AskRequest, OnlineRequest
from retrodict.serve.schemas import ImputeRequest, QueryRequest
from retrodict.serve.tasks import Job

__all__ = [
    "BEGIN", "FEEDS", "STREAMS", "AskRequest", "Batcher", "ImputeRequest", "Job", "Metrics", "Models", "OnlineRequest",
    "QueryRequest", "RefusalError", "ServeLimits", "TestClient",
    "create_app", "doors", "feed", "impute_job", "kept", "query_job", "serve",
]  # fmt: skip

STREAMS = [
    {"id": "day-1", "horizon": [0, 10], "times": [1.5, 4.0, 7.25], "types": ["out", "in", "out"], "shift": "early"},
    {"id": "day-2", "horizon": [0, 12.5], "times": [2.0], "types": ["out"]},
]
BEGIN = {"lag": 5.0, "missing": "in=0.5", "particles": 100, "seed": 3}  # of an online run
FEEDS = [
    {"events": {"a": [[1.0, "out"], [2.5, "in"]], "b": []}, "until": 3.0, "start": 0.0},
    {"events": {"a": [[6.0, "out"]]}, "until": {"b": 6.5}},
]


def doors() -> Hawkes:
    """Whoever comes in goes out soon, and hardly anybody else does; times in hours."""
    model = Hawkes([0.4, 0.01], [[0.0, 0.9], [0.0, 0.0]], 1.5)
    model.types, model.time_unit = ("in", "out"), "hour"
    return model


def serve(models: Models, token: str | None = None, online: Path | None = None, **limits: Any) -> TestClient:
    """A client, to be used in a ``with`` block."""
    app = create_app(models, ServeLimits(**{"workers": 1, **limits}), token, online)
    return TestClient(app, raise_server_exceptions=False)


def feed(client: Any, *feeds: dict[str, Any]) -> Any:
    """Feed the run called run; returns the last answer."""
    answers = [client.post("/v1/online/run/feed", json=each) for each in feeds]
    assert [answer.status_code for answer in answers] == [200] * len(feeds), answers[-1].text
    return answers[-1].json()
