"""The routes of a service, as a FastAPI application behind a gate."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from typing import Any

import torch
from fastapi import FastAPI, Request, Response
from starlette.exceptions import HTTPException
from starlette.middleware.cors import CORSMiddleware

from nsfrc import __version__
from nsfrc.errors import NsfrcError
from nsfrc.inference.stream import computing
from nsfrc.service import page
from nsfrc.service.answering import Answerer, Line
from nsfrc.service.batcher import Batcher
from nsfrc.service.bodies import Bodies, Receive, Sent, taken_apart
from nsfrc.service.gate import FAILED, GONE, Gate
from nsfrc.service.metrics import TYPE, Metrics
from nsfrc.service.refusals import Gone, Refused, as_body
from nsfrc.service.schema import INFER, PROGRAM, SUMMARY
from nsfrc.service.settings import Settings

SMALL = 262_144  # bytes of a body that is taken apart without another thread


class Service:
    """A program that is ready to be asked. Its parts start with the loop that serves it (`running`)."""

    def __init__(self, settings: Settings) -> None:
        self.settings, self.limits = settings, settings.limits
        self.compute = computing(settings.threads)
        self.answerer, self.metrics, self.bodies = Answerer(settings), Metrics(), Bodies(settings.limits)
        self.answerer.warm()
        self._batcher: Batcher | None = None

    @property
    def batcher(self) -> Batcher:
        if self._batcher is None:
            raise Refused(503, "the service is starting", again=1)
        return self._batcher

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Threads that read and the one that answers, for as long as the block lasts."""
        self._reading = ThreadPoolExecutor(max(1, self.settings.threads - self.compute), "nsfrc-read")
        self._batcher = Batcher(self.answerer, self.settings.batching, self.limits.queue, self.metrics.batched,
                                lambda: torch.set_num_threads(self.compute))
        self._batcher.start()
        try:
            yield
        finally:
            await self._batcher.close()
            await asyncio.to_thread(self._reading.shutdown, cancel_futures=True)

    async def infer(self, request: Request) -> Response:
        """One request, from its body to its rows."""
        headers, content_type = dict(request.headers), request.headers.get("content-type", "")
        reading = True
        with self.bodies.holding() as held:
            try:
                async with asyncio.timeout(self.limits.seconds):
                    body = await held.read(request.receive, headers)
                    reading = False
                    sent = await self._taken_apart(body, content_type)
                    request.state.kind, request.state.rows, request.state.read = sent.kind, len(sent), len(body)
                    del body
                    lines = await _unless_gone(self._answered(sent), request.receive)
            except TimeoutError:
                raise self._late(reading) from None
        return self._response(sent.kind, lines)

    def _late(self, reading: bool) -> Refused:
        if reading:
            return Refused(408, f"the body was not there after {self.limits.seconds:g} seconds")
        return Refused(504, f"there was no answer within {self.limits.seconds:g} seconds: send fewer at once", again=5)

    async def _taken_apart(self, body: bytes, content_type: str) -> Sent:
        if len(body) <= SMALL:
            return taken_apart(body, content_type, self.limits)
        return await self._read(taken_apart, body, content_type, self.limits)

    async def _answered(self, sent: Sent) -> Sequence[Line]:
        try:
            with self.batcher.room(len(sent)):
                self.metrics.waiting.set(self.batcher.held)
                return await self.batcher(await self._read(self.answerer.units, sent))
        except MemoryError:
            raise Refused(503, "there is no memory for this now", again=5) from None
        except NsfrcError as error:  # of a perception or predicate of the user's own, say
            raise Refused(500, str(error)) from error
        finally:
            self.metrics.waiting.set(self.batcher.held)

    async def _read(self, work: Any, *arguments: Any) -> Any:
        return await asyncio.get_running_loop().run_in_executor(self._reading, work, *arguments)

    def _response(self, kind: str, lines: Sequence[Line]) -> Response:
        good = sum(line.good for line in lines)
        self.metrics.rows.labels(kind, "yes").inc(good)
        self.metrics.rows.labels(kind, "no").inc(len(lines) - good)
        text = ", ".join(line.text for line in lines)
        return Response(f'{{"rows": [{text}]}}'.encode(), 200 if good else 422, media_type="application/json")

    def program(self) -> dict[str, Any]:
        """What is served, for clients to read."""
        answerer, limits = self.answerer, self.limits
        return {
            "program": answerer.program.name, "nsfrc": __version__, "settings": answerer.settings,
            "questions": [{"name": one.name, "atoms": list(one.atoms), "answers": list(one.answers)}
                          for one in answerer.questions],
            "takes": list(answerer.takes), "warnings": list(answerer.remarks),
            "limits": {"body": limits.body, "json": limits.json, "pixels": limits.pixels, "items": limits.items,
                       "seconds": limits.seconds},
        }


async def _gone_away(receive: Receive) -> None:
    """Wait until the client has closed the connection."""
    while (await receive())["type"] != "http.disconnect":
        pass


async def _unless_gone(work: Any, receive: Receive) -> Sequence[Line]:
    """What work comes to; where the client goes away first, it is stopped."""
    task = asyncio.ensure_future(work)
    gone = asyncio.ensure_future(_gone_away(receive))
    try:
        await asyncio.wait((task, gone), return_when=asyncio.FIRST_COMPLETED)
        if not task.done():
            raise Gone
        return task.result()
    finally:
        gone.cancel()
        task.cancel()


def create_app(settings: Settings) -> Gate:
    """The whole application. Raises NsfrcError where the program cannot be opened."""
    return around(Service(settings))


def around(service: Service) -> Gate:
    """The application of a service that is open already."""

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        async with service.running():
            yield

    app = FastAPI(title="nsfrc serve", version=__version__, summary=SUMMARY, docs_url=None, redoc_url=None,
                  lifespan=lifespan, redirect_slashes=False,
                  exception_handlers={HTTPException: _told, Refused: _refused, Gone: _gone, Exception: _failed})
    _routes(app, service)
    if service.settings.origins:
        app.add_middleware(CORSMiddleware, allow_origins=list(service.settings.origins), allow_methods=["GET", "POST"],
                           allow_headers=["authorization", "content-type"])
    return Gate(app, service.settings, service.metrics)


def _routes(app: FastAPI, service: Service) -> None:
    @app.post("/infer", summary="Answer for pictures, detections or facts", **INFER)
    async def infer(request: Request) -> Response:
        return await service.infer(request)

    @app.get("/program", summary="What is served: questions, settings and limits", **PROGRAM)
    async def program() -> dict[str, Any]:
        return service.program()

    @app.get("/healthz", summary="Whether the process answers at all")
    async def healthz() -> dict[str, str]:
        return {"status": "alive"}

    @app.get("/readyz", summary="Whether a request would be taken; 503 where the queue is full")
    async def readyz() -> dict[str, str]:
        if service.batcher.closed or service.batcher.full:
            raise Refused(503, "the queue is full", again=1)
        return {"status": "ready"}

    @app.get("/metrics", summary="Counts and times, as Prometheus reads them", response_class=Response)
    async def metrics() -> Response:
        return Response(service.metrics.text(), media_type=TYPE)

    @app.get("/docs", include_in_schema=False)
    async def docs() -> Response:
        return Response(page.written(app.openapi()), media_type="text/html; charset=utf-8", headers=page.HEADERS)


async def _refused(request: Request, error: Exception) -> Response:
    assert isinstance(error, Refused)
    return Response(error.body, error.status, error.headers, "application/json")


async def _gone(request: Request, error: Exception) -> Response:
    return Response(status_code=GONE)


async def _failed(request: Request, error: Exception) -> Response:
    return Response(FAILED, 500, media_type="application/json")


async def _told(request: Request, error: Exception) -> Response:
    """404 and 405 in the words of all other refusals."""
    assert isinstance(error, HTTPException)
    told = f"{error.detail}: /docs lists what there is"
    return Response(as_body(told), error.status_code, dict(error.headers or {}), "application/json")
