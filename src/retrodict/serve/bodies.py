"""Reading a request's body: not longer, not slower and not more of them at once than the limits say."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import TypeVar

from pydantic import BaseModel, ValidationError
from starlette.requests import ClientDisconnect, Request

from retrodict.errors import show
from retrodict.events.plain import parse_json
from retrodict.serve.limits import RefusalError, ServeLimits

T = TypeVar("T", bound=BaseModel)


class Bodies:
    """The bodies that are held in memory at the moment."""

    def __init__(self, limits: ServeLimits) -> None:
        self.limits, self.held = limits, 0

    @asynccontextmanager
    async def read(self, request: Request) -> AsyncIterator[bytes]:
        """The body of a JSON request; its bytes are counted until the block is left."""
        _check_headers(request, self.limits.bytes)
        pieces: list[bytes] = []
        size = 0
        try:
            try:
                async with asyncio.timeout(self.limits.patience):
                    async for piece in request.stream():
                        size += len(piece)
                        self.held += len(piece)
                        if size > self.limits.bytes:
                            raise _too_large(size, self.limits.bytes)
                        if self.held > self.limits.held:
                            message = "the server holds as many requests as it may. Try again later."
                            raise RefusalError(503, "busy", message, retry_after=1)
                        pieces.append(piece)
            except TimeoutError:
                message = f"the body did not arrive within {self.limits.patience:g} seconds."
                raise RefusalError(408, "slow", message) from None
            except ClientDisconnect:
                raise RefusalError(499, "gone", "the client left.") from None
            yield b"".join(pieces)
        finally:
            self.held -= size


def parse(body: bytes, kind: type[T]) -> T:
    """The request in a body, checked as far as its envelope goes."""
    try:
        value = parse_json(body.decode("utf-8"), strict=True)
    except UnicodeDecodeError:
        raise RefusalError(400, "json", "the body is not UTF-8 text.") from None
    except ValueError as error:
        reason = error.msg if isinstance(error, json.JSONDecodeError) else str(error)
        raise RefusalError(400, "json", f"the body is not JSON: {reason}.") from None
    try:
        return kind.model_validate(value)
    except ValidationError as error:
        first = error.errors(include_url=False, include_context=False)[0]
        where = ".".join(str(part) for part in first["loc"][:4])
        problem = f"{where}: {first['msg']}" if where else first["msg"]
        given = "" if first["type"] == "missing" else f", but got {show(first.get('input'))}"
        raise RefusalError(400, "request", f"{problem}{given}.") from None
    except RecursionError:
        raise RefusalError(400, "json", "the body is nested too deeply.") from None


def _check_headers(request: Request, most: int) -> None:
    """Refuse what can be refused before anything is read."""
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind != "application/json":
        raise RefusalError(415, "media", "send the request as application/json.")
    if request.headers.get("content-encoding", "identity").lower() != "identity":
        raise RefusalError(415, "media", "send the request uncompressed.")
    length = request.headers.get("content-length", "")
    if length.isdecimal() and int(length[:18]) > most:
        raise _too_large(int(length[:18]), most)


def _too_large(size: int, most: int) -> RefusalError:
    return RefusalError(413, "large", f"the body has {size:,} bytes or more, and the server takes {most:,}.")
