"""The application: what is asked where, and what becomes of it."""

from __future__ import annotations

import asyncio
import logging
import threading
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, TypeVar

from anyio import CapacityLimiter
from anyio.to_thread import run_sync
from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse, Response
from fastapi.routing import APIRoute
from pydantic import BaseModel
from starlette.exceptions import HTTPException

from retrodict._version import __version__
from retrodict.errors import RetrodictError
from retrodict.serve.batching import Batcher, unexpected
from retrodict.serve.bodies import Bodies, parse
from retrodict.serve.describe import ASKED, describe, errors, schema_of
from retrodict.serve.front import Front
from retrodict.serve.jobs import impute_job, query_job
from retrodict.serve.limits import RefusalError, ServeLimits, refusal_of
from retrodict.serve.metrics import Metrics
from retrodict.serve.models import Models
from retrodict.serve.online import Runs
from retrodict.serve.online_routes import BODIES, add_online
from retrodict.serve.schemas import (
    Health,
    ImputeAnswer,
    ImputeRequest,
    ModelList,
    QueryAnswer,
    QueryRequest,
)
from retrodict.serve.tasks import Task
from retrodict.serve.warm import warm_up

log = logging.getLogger("retrodict.serve")
T = TypeVar("T")


class Server:
    """What the endpoints share."""

    def __init__(self, models: Models, limits: ServeLimits, folder: Path | None) -> None:
        self.models, self.limits, self.metrics = models, limits, Metrics()
        self.runs = Runs(models, limits, folder)
        self.batcher, self.bodies = Batcher(limits, self.metrics), Bodies(limits)
        self.is_ready = False
        self._end: float | None = None  # on the clock: when what still runs is left
        self._readers = CapacityLimiter(max(2, limits.workers))
        self.metrics.watch("retrodict_queue_length", "Requests that wait.", lambda: self.batcher.waiting)
        self.metrics.watch("retrodict_running", "Requests that are run.", lambda: self.batcher.running)
        self.metrics.watch("retrodict_held_bytes", "Bytes of the bodies in memory.", lambda: self.bodies.held)
        self.metrics.watch("retrodict_online_streams", "Online streams.", lambda: self.runs.num_streams)
        self.metrics.watch("retrodict_online_bytes", "Their particles and events.", lambda: self.runs.num_bytes)
        unusable = "Online runs that are kept and cannot be gone on with."
        self.metrics.watch("retrodict_online_unusable", unusable, lambda: self.runs.num_unusable)

    @property
    def is_stopping(self) -> bool:
        """Whether it was told to stop."""
        return self._end is not None

    def stop(self) -> float:
        """Say that it stops; returns the seconds that are left for what runs, counted from the first time."""
        if self._end is None:
            self._end = time.monotonic() + self.limits.grace
        return max(0.0, self._end - time.monotonic())

    async def in_thread(self, work: Callable[..., T], *arguments: Any) -> T:
        """Work that would hold up other requests, in a thread."""
        return await run_sync(lambda: work(*arguments), limiter=self._readers)

    async def run(self, request: Request, kind: type[Any], make: Callable[[Any], Task]) -> Response:
        """Read a request, let it be run, and answer."""
        async with self.bodies.read(request) as body:
            loop = asyncio.get_running_loop()
            until = loop.time() + self.limits.seconds
            job = await self.in_thread(lambda: make(parse(body, kind)))
            answer = await self._wait(request, job, until)
        return Response(answer, media_type="application/json")

    async def _wait(self, request: Request, job: Task, until: float) -> bytes:
        """The answer to a job; it is given up when the client leaves or the time is over."""
        loop = asyncio.get_running_loop()
        future: asyncio.Future[Any] = asyncio.wrap_future(self.batcher.submit(job))
        future.add_done_callback(lambda done: done.cancelled() or done.exception())
        gone: asyncio.Future[Any] = loop.create_task(_leave(request))
        try:
            await asyncio.wait({future, gone}, timeout=until - loop.time(), return_when=asyncio.FIRST_COMPLETED)
            if future.done() and not future.cancelled():
                answer: bytes = future.result()
                return answer
            if gone.done():
                self.metrics.gone.inc()
                raise RefusalError(499, "gone", "the client left.")
            if job.is_started:
                message = f"the answer took longer than {self.limits.seconds:g} seconds. Ask for less at a time."
                raise RefusalError(504, "time", message)
            message = f"other requests took all of the {self.limits.seconds:g} seconds. Try again later."
            raise RefusalError(503, "busy", message, retry_after=self.batcher.retry_after())
        finally:
            gone.cancel()
            if not future.done():
                job.abandon()


async def _leave(request: Request) -> None:
    """Until the client has gone."""
    while (await request.receive())["type"] != "http.disconnect":
        pass


def create_app(
    models: Models, limits: ServeLimits | None = None, token: str | None = None, online: Path | None = None
) -> FastAPI:
    """The application for some models; with a ``token`` every request but those for health must carry it.

    Online runs are kept in the folder ``online``, if there is one.
    """
    server = Server(models, limits or ServeLimits(), online)

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        server.batcher.start()
        threading.Thread(target=_get_ready, args=(server,), daemon=True).start()
        yield
        await run_sync(server.batcher.stop, server.stop())

    app = FastAPI(
        title="retrodict",
        version=__version__,
        description="Impute the events missing from event streams, and ask about them.",
        lifespan=lifespan,
        docs_url=None,  # their pages load scripts from elsewhere
        redoc_url=None,
    )
    app.state.server = server
    app.add_middleware(Front, server=server, token=token)
    _add_handlers(app)
    _add_watching(app, server)
    _add_imputation(app, server)
    add_online(app, server)
    bodies: list[type[BaseModel]] = [ImputeRequest, QueryRequest, *BODIES]
    app.openapi = lambda: describe(app, bodies, token is not None)  # type: ignore[method-assign]
    return app


def _get_ready(server: Server) -> None:
    """Compile what is compiled when it is first used, so that no request waits for it."""
    try:
        warm_up(server.models)
        server.is_ready = True
    except Exception:
        log.exception("the server cannot get ready")


def _add_handlers(app: FastAPI) -> None:
    """Every error as JSON, in words."""

    async def refused(_: Request, refusal: Any) -> Response:
        after = refusal.retry_after
        headers = None if after is None else {"Retry-After": str(after)}
        return JSONResponse(refusal.body(), refusal.status, headers=headers)

    async def wrong(request: Request, error: Any) -> Response:
        return await refused(request, refusal_of(error))

    async def http(request: Request, error: Any) -> Response:
        answer = await refused(request, RefusalError(error.status_code, "http", f"{error.detail}."))
        if error.status_code == 405:  # of all routes of the path, not of the first one alone
            routes = [route for route in app.routes if isinstance(route, APIRoute)]
            fit = [route for route in routes if route.path_regex.match(request.url.path)]
            answer.headers["Allow"] = ", ".join(sorted(method for route in fit for method in route.methods or ()))
        return answer

    async def invalid(request: Request, error: Any) -> Response:
        return await refused(request, RefusalError(400, "request", "the path or query of the request is malformed."))

    async def failed(request: Request, _: Exception) -> Response:
        return await refused(request, unexpected())

    app.add_exception_handler(RefusalError, refused)
    app.add_exception_handler(RetrodictError, wrong)
    app.add_exception_handler(HTTPException, http)
    app.add_exception_handler(RequestValidationError, invalid)
    app.add_exception_handler(Exception, failed)


def _add_watching(app: FastAPI, server: Server) -> None:
    """Health, metrics, and what there is."""

    @app.get("/health/live", tags=["health"], summary="Whether the process answers", response_model=Health)
    async def live() -> dict[str, str]:
        return {"status": "live"}

    @app.get(
        "/health/ready",
        tags=["health"],
        summary="Whether models are loaded and requests welcome",
        response_model=Health,
        responses={503: {"model": Health, "description": "Starting or stopping."}},
    )
    async def ready() -> Response:
        word = "stopping" if server.is_stopping else "ready" if server.is_ready else "starting"
        return JSONResponse({"status": word}, 200 if word == "ready" else 503)

    @app.get(
        "/metrics",
        tags=["health"],
        summary="Counters for Prometheus",
        responses={200: {"content": {"text/plain": {"schema": {"type": "string"}}}}, **errors()},
        response_class=Response,
    )
    async def metrics() -> Response:
        return Response(server.metrics.page(), media_type="text/plain; version=0.0.4")

    @app.get("/v1/models", tags=["models"], summary="What is served", response_model=ModelList, responses=errors())
    async def models() -> dict[str, Any]:
        return {"models": [served.about() for served in server.models]}


def _add_imputation(app: FastAPI, server: Server) -> None:
    """The work itself."""

    @app.post(
        "/v1/impute",
        tags=["imputation"],
        summary="Impute the events missing from streams, and decode at a cost",
        responses={200: {"model": ImputeAnswer}, **ASKED},
        response_class=Response,
        openapi_extra=schema_of(ImputeRequest),
    )
    async def impute(request: Request) -> Response:
        return await server.run(request, ImputeRequest, lambda asked: impute_job(asked, server.models, server.limits))

    @app.post(
        "/v1/query",
        tags=["imputation"],
        summary="Probabilities, expected numbers and intensities of missing events",
        responses={200: {"model": QueryAnswer}, **ASKED},
        response_class=Response,
        openapi_extra=schema_of(QueryRequest),
    )
    async def query(request: Request) -> Response:
        return await server.run(request, QueryRequest, lambda asked: query_job(asked, server.models, server.limits))
