"""Where online runs are created, fed, asked and closed."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated, Any

from fastapi import FastAPI, Path, Request
from fastapi.responses import Response
from pydantic import BaseModel

from retrodict.serve.describe import ASKED, errors, schema_of
from retrodict.serve.online import NAME
from retrodict.serve.online_schemas import (
    AskAnswer,
    AskRequest,
    CloseRequest,
    FeedRequest,
    OnlineRequest,
    RunAbout,
    RunList,
)
from retrodict.serve.tasks import Call

if TYPE_CHECKING:
    from retrodict.serve.app import Server

BODIES: list[type[BaseModel]] = [OnlineRequest, FeedRequest, AskRequest, CloseRequest]
Name = Annotated[str, Path(pattern=f"^{NAME}$", description="Of the run: letters, digits, - and _.")]


def add_online(app: FastAPI, server: Server) -> None:
    """Put the routes of online runs into an application."""
    runs = server.runs

    async def work(request: Request, kind: type[Any], do: Callable[[Any], bytes], status: int = 200) -> Response:
        answer = await server.run(request, kind, lambda asked: Call(lambda: do(asked)))
        answer.status_code = status
        return answer

    def post(path: str, summary: str, asked: type[BaseModel], answer: type[BaseModel]) -> Any:
        return app.post(
            path,
            tags=["online"],
            summary=summary,
            responses={200: {"model": answer}, **ASKED},
            response_class=Response,
            openapi_extra=schema_of(asked),
        )

    @app.get("/v1/online", tags=["online"], summary="All runs", response_model=RunList, responses=errors())
    async def every() -> dict[str, Any]:
        return {"runs": runs.names}

    @app.put(
        "/v1/online/{name}",
        tags=["online"],
        summary="Begin a run of streams that are still going on",
        status_code=201,
        responses={201: {"model": RunAbout}, **ASKED, **errors(409)},
        response_class=Response,
        openapi_extra=schema_of(OnlineRequest),
    )
    async def create(request: Request, name: Name) -> Response:
        return await work(request, OnlineRequest, lambda asked: runs.create(name, asked), 201)

    @app.get(
        "/v1/online/{name}",
        tags=["online"],
        summary="A run, and up to when its streams are known",
        responses={200: {"model": RunAbout}, **errors(400, 404)},
        response_class=Response,
    )
    async def about(name: Name) -> Response:
        return Response(await server.in_thread(runs.about, name), media_type="application/json")

    @post("/v1/online/{name}/feed", "Take in what was observed", FeedRequest, RunAbout)
    async def feed(request: Request, name: Name) -> Response:
        return await work(request, FeedRequest, lambda asked: runs.feed(name, asked))

    @post("/v1/online/{name}/ask", "Ask about the recent past and the future", AskRequest, AskAnswer)
    async def ask(request: Request, name: Name) -> Response:
        return await work(request, AskRequest, lambda asked: runs.ask(name, asked))

    @post("/v1/online/{name}/close", "Forget streams that have ended", CloseRequest, RunAbout)
    async def close(request: Request, name: Name) -> Response:
        return await work(request, CloseRequest, lambda asked: runs.close(name, asked))

    @app.delete(
        "/v1/online/{name}",
        tags=["online"],
        summary="Forget a run, and what is kept of it",
        status_code=204,
        responses=errors(400, 404),
        response_class=Response,
    )
    async def delete(name: Name) -> Response:
        await server.in_thread(runs.delete, name)
        return Response(status_code=204)
