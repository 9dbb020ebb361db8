"""What one request may ask for, and how a request that asks for more is told so."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass, field
from typing import Any

from retrodict.errors import (
    BusyError,
    DataError,
    LimitError,
    ModelError,
    RetrodictError,
    RunawayError,
    WriteError,
)


@dataclass(frozen=True)
class ServeLimits:
    """The most that a request, or all of them together, may take; each is an option of ``retrodict serve``."""

    bytes: int = 4 << 20  # of a request's body
    streams: int = 1_000  # in a request
    events: int = 20_000  # observed, in a request
    particles: int = 10_000  # a stream
    work: int = 5_000_000  # streams x events of the longest, observed and missing, x particles
    steps: int = 2_000  # events of a stream, observed and missing, that are gone through one by one by the torch engine
    missing: int = 2_000  # missing events in one guess of a stream
    questions: int = 1_000  # in a request
    answers: int = 1_000_000  # numbers in an answer
    seconds: float = 30.0  # from the last byte of a request until its answer
    patience: float = 10.0  # seconds for the headers, for the body, and for taking the answer
    queue: int = 256  # requests that wait
    workers: int = field(default_factory=lambda: os.cpu_count() or 1)  # requests, or batches, that run at once
    held: int = 256 << 20  # bytes of the bodies of all requests together
    batch_wait: float = 0.002  # seconds that a request waits for others to share its run with
    batch_work: int = 250_000  # the most work that requests put together may be
    online_streams: int = 1_000  # online streams that are open at once
    online_memory: int = 2 << 30  # bytes of the particles and events of all of them
    grace: float = 30.0  # seconds for what runs when the server is told to stop


class RefusalError(Exception):
    """An answer other than 200: its status, a word for programs, and a sentence for people."""

    def __init__(self, status: int, code: str, message: str, *, retry_after: int | None = None, **details: Any) -> None:
        super().__init__(message)
        self.status, self.code, self.message, self.retry_after, self.details = (
            status,
            code,
            message,
            retry_after,
            details,
        )

    def body(self) -> dict[str, Any]:
        """What the client reads."""
        details = {name: value for name, value in self.details.items() if value is not None}
        return {"error": {"code": self.code, "message": self.message, **details}}


def refusal_of(error: RetrodictError) -> RefusalError:
    """What to answer to an error of the package: it names the stream, the row and the remedy."""
    text = _in_request(str(error))
    if isinstance(error, WriteError | BusyError):  # these name folders
        return RefusalError(500, "storage", "the server cannot write to its folder; its log says why.")
    if isinstance(error, DataError):
        remedy = None if error.remedy is None else _in_request(error.remedy)
        code = "limit" if isinstance(error, LimitError) else "data"
        return RefusalError(422, code, text, stream=_plain(error.stream), row=error.row, remedy=remedy)
    if isinstance(error, RunawayError):
        return RefusalError(422, "runaway", text)
    if isinstance(error, ModelError):
        return RefusalError(422, "model", text)
    return RefusalError(500, "internal", text)


# Advice that no client can follow, up to the end of its clause.
_NOT_HERE = re.compile(
    r"[,;]? or (?:pass|add it to) \w+=[^.;)]*|, or a file such as [\w.]+|[,;]? (?:or, )?if (?:this is right|there is "
    r"enough), raise the limit: limits\(\w+=\d+\)|; raise max_events if that many are plausible"
)


def _in_request(text: str) -> str:
    """A message that speaks of Python arguments, in the words of a request."""
    return re.sub(r"\b(start|end|cost|missing|unit)=", r"\1", _NOT_HERE.sub("", text))


def too_much(what: str, asked: float, most: float, remedy: str) -> RefusalError:
    """A request that is larger than a limit."""
    message = f"{what}: {asked:.12g}, and the server takes {most:.12g}. Remedy: {remedy}."
    return RefusalError(422, "limit", message, remedy=remedy)


def _plain(stream: object) -> str | int | None:
    return stream if isinstance(stream, str | int) or stream is None else str(stream)
