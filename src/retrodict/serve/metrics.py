"""What the server counts, for Prometheus."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest

_SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60)
_SIZES = (1, 2, 4, 8, 16, 32, 64, 128, 256)


class Metrics:
    """The counters of one server."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        own: dict[str, Any] = {"registry": self.registry}
        self.requests = Counter("retrodict_requests", "Requests by endpoint and status.", ("endpoint", "status"), **own)
        self.latency = Histogram(
            "retrodict_request_seconds", "From the first byte to the answer.", ("endpoint",), buckets=_SECONDS, **own
        )
        self.refused = Counter("retrodict_refused", "Requests that were not run, by reason.", ("reason",), **own)
        self.gone = Counter("retrodict_disconnected", "Clients that left before their answer.", **own)
        self.streams = Counter("retrodict_streams", "Streams that were imputed.", **own)
        self.batch = Histogram("retrodict_batch_requests", "Requests that shared a run.", buckets=_SIZES, **own)
        self.run = Histogram("retrodict_run_seconds", "Imputation of a batch.", buckets=_SECONDS, **own)
        self.answer = Histogram("retrodict_answer_seconds", "Decoding and writing an answer.", buckets=_SECONDS, **own)

    def watch(self, name: str, text: str, value: Callable[[], float]) -> None:
        """A gauge that is read when it is asked for."""
        Gauge(name, text, registry=self.registry).set_function(value)

    def page(self) -> bytes:
        """The text that Prometheus reads."""
        return generate_latest(self.registry)
