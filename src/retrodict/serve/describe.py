"""The OpenAPI description: bodies that are read by hand, and answers that are no success."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi
from pydantic import BaseModel

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


def schema_of(kind: type[BaseModel]) -> dict[str, Any]:
    """What an endpoint says of its body."""
    schema = {"$ref": f"#/components/schemas/{kind.__name__}"}
    return {"requestBody": {"required": True, "content": {"application/json": {"schema": schema}}}}


def describe(app: FastAPI, bodies: Sequence[type[BaseModel]], needs_token: bool) -> dict[str, Any]:
    """The description of an application, with the schemas of its bodies; made once."""
    if app.openapi_schema is None:
        made = get_openapi(title=app.title, version=app.version, description=app.description, routes=app.routes)
        known = made.setdefault("components", {}).setdefault("schemas", {})
        for kind in bodies:
            schema = kind.model_json_schema(ref_template="#/components/schemas/{model}")
            known |= schema.pop("$defs", {})
            known[kind.__name__] = schema
        if needs_token:
            made["components"]["securitySchemes"] = {"bearer": {"type": "http", "scheme": "bearer"}}
            made["security"] = [{"bearer": []}]
            for path, item in made["paths"].items():
                for operation in item.values() if path.startswith("/health") else ():
                    operation["security"] = []
        app.openapi_schema = made
    return app.openapi_schema
