"""What the OpenAPI description says of answers that are no success."""

from __future__ import annotations

from typing import Any

from retrodict.serve.schemas import Error

_WHY = {
    400: "The path or the body is not of the right form.",
    401: "The bearer token is missing or wrong.",
    404: "There is no such model or run.",
    408: "The body took too long to arrive.",
    409: "There is a run of that name already.",
    413: "The body is too large.",
    415: "The body is not application/json.",
    422: "The streams, the mechanism or the questions cannot be used; the message says why.",
    429: "Too many requests wait; see Retry-After.",
    500: "The server failed.",
    503: "The server is starting, stopping or busy; see Retry-After.",
    504: "The answer took longer than a request may.",
}


def errors(*statuses: int) -> dict[int | str, dict[str, Any]]:
    """The statuses that an endpoint may answer with, besides 401 and 500."""
    return {status: {"model": Error, "description": _WHY[status]} for status in (401, *statuses, 500)}


ASKED = errors(400, 404, 408, 413, 415, 422, 429, 503, 504)
