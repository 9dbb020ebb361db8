"""What every request passes first and every answer last: the token, the clock, the counters."""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING, Any

from starlette.datastructures import Headers
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from retrodict.serve.auth import is_right
from retrodict.serve.limits import RefusalError

if TYPE_CHECKING:
    from retrodict.serve.app import Server


class Front:
    """Refuses requests without the token, gives up on clients that do not take their answer, and counts."""

    def __init__(self, app: ASGIApp, server: Server, token: str | None) -> None:
        self.app, self.server, self.token = app, server, token

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """One request."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        begin, status = time.perf_counter(), 500

        async def counted(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                message.setdefault("headers", []).append((b"x-content-type-options", b"nosniff"))
            async with asyncio.timeout(self.server.limits.patience):  # a client that does not read is left
                await send(message)

        try:
            if self._may_pass(scope):
                await self.app(scope, receive, counted)
            else:
                refusal = RefusalError(401, "token", "give the server's token: Authorization: Bearer TOKEN.")
                answer = JSONResponse(refusal.body(), 401, {"WWW-Authenticate": "Bearer"})
                await answer(scope, receive, counted)
        finally:
            self._count(scope, status, time.perf_counter() - begin)

    def _may_pass(self, scope: Scope) -> bool:
        if self.token is None or scope["path"].startswith("/health/"):
            return True
        return is_right(Headers(scope=scope).get("authorization"), self.token)

    def _count(self, scope: Scope, status: int, seconds: float) -> None:
        route: Any = scope.get("route")
        endpoint = getattr(route, "path", "other")  # never a path that a client made up
        metrics = self.server.metrics
        metrics.requests.labels(endpoint, str(status)).inc()
        metrics.latency.labels(endpoint).observe(seconds)
        if status in (408, 413, 429, 503, 504):
            metrics.refused.labels(str(status)).inc()
