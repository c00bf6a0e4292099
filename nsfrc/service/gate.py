"""What stands before the routes: who may ask, and that every request has an answer and a line in the access log."""

from __future__ import annotations

import asyncio
import hmac
import json
import sys
import time
import traceback
from collections.abc import Awaitable, Callable, MutableMapping
from contextlib import suppress
from datetime import UTC, datetime
from typing import Any

from nsfrc.hosts import is_loopback, name_in
from nsfrc.inference.folders import printable
from nsfrc.service.bodies import length
from nsfrc.service.metrics import Metrics
from nsfrc.service.refusals import Refused, as_body
from nsfrc.service.settings import Limits, Settings

Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
App = Callable[[Message, Receive, Send], Awaitable[None]]
OPEN = frozenset(("/healthz", "/readyz", "/docs", "/openapi.json"))  # without a token: they tell nothing of the program
PATH = 200  # characters of a path in the log
SLOW = 408
DRAINED = 4  # times the largest body: what is read of one that is refused
GONE = 499  # in the log: nobody was left to answer
FAILED = as_body("the service failed; its log says how")


class Gate:
    """An ASGI application around another."""

    def __init__(self, app: App, settings: Settings, metrics: Metrics) -> None:
        self.app, self.settings, self.metrics = app, settings, metrics
        self.token = None if settings.token is None else f"Bearer {settings.token}".encode()

    async def __call__(self, scope: Message, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        call = _Call(scope, receive, send, self.settings.limits)
        try:
            self._refuse(scope, call.headers)
            await self.app(scope, call.receive, call.send)
        except Refused as error:
            await call.answer(error.status, error.body, error.headers)
        except Exception as error:
            call.failure = "".join(traceback.format_exception(error))
            await call.answer(500, FAILED, {})
        finally:
            seconds = time.monotonic() - call.start
            call.status = call.status or GONE
            self.metrics.request(scope["path"], call.status, seconds)
            if self.settings.log or call.failure:
                write_line(call.line(seconds))

    def _refuse(self, scope: Message, headers: dict[bytes, bytes]) -> None:
        """Raise Refused for a request that may not ask."""
        if self.token is None:
            # A page of somebody else's whose name leads to this machine would be answered otherwise.
            if not is_loopback(name_in(headers.get(b"host", b"").decode("latin-1"))):
                raise Refused(403, "without a token only this machine is answered, as localhost or 127.0.0.1")
        elif scope["path"] not in OPEN and not _preflight(scope, headers):
            given = headers.get(b"authorization", b"")
            if not hmac.compare_digest(given, self.token):
                raise Refused(401, "the token is missing or wrong: send the header Authorization: Bearer TOKEN")
        origin = headers.get(b"origin", b"").decode("latin-1")
        here = headers.get(b"host", b"").decode("latin-1")
        allowed = {origin, "*"} & set(self.settings.origins) or origin.partition("://")[2] == here
        if origin and not allowed:
            raise Refused(403, "pages of other hosts may not ask here (see --cors)")


def _preflight(scope: Message, headers: dict[bytes, bytes]) -> bool:
    """Whether a browser asks whether it may ask, which it does without a token."""
    return scope["method"] == "OPTIONS" and b"access-control-request-method" in headers


class _Call:
    """One request on its way: what is read and sent, and what the log says of it."""

    def __init__(self, scope: Message, receive: Receive, send: Send, limits: Limits) -> None:
        self.scope, self._receive, self._send, self.limits = scope, receive, send, limits
        self.start = time.monotonic()
        self.headers: dict[bytes, bytes] = dict(scope["headers"])
        self.status, self.sent, self.started = 0, 0, False
        self.more = self.headers.get(b"content-length", b"0") != b"0" or b"transfer-encoding" in self.headers
        self.failure: str | None = None

    async def receive(self) -> Message:
        message = await self._receive()
        self.more = message.get("more_body", False)
        return message

    async def send(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self.started, self.status = True, message["status"]
            headers = [*message.get("headers", ()), (b"x-content-type-options", b"nosniff"),
                       (b"cache-control", b"no-store")]
            if self.more and not await self._drained():
                headers.append((b"connection", b"close"))
            message["headers"] = headers
        try:
            if self.status != GONE:
                await self._send(message)
                self.sent += len(message.get("body", b""))
        except (OSError, RuntimeError) as error:
            if isinstance(error, RuntimeError) and "closed" not in str(error):  # uvloop's way to say it
                raise
            self.status = GONE

    async def _drained(self) -> bool:
        """Read what is left of a body, so that whoever still sends it hears the answer; within limits."""
        declared, size = length({"content-length": self.headers.get(b"content-length", b"").decode("latin-1")}), 0
        if self.status == SLOW or b"expect" in self.headers or (declared or 0) > DRAINED * self.limits.body:
            return False
        with suppress(TimeoutError):
            async with asyncio.timeout(self.limits.header_seconds):
                while self.more and size <= DRAINED * self.limits.body:
                    size += len((await self.receive()).get("body", b""))
        return not self.more

    async def answer(self, status: int, body: bytes, headers: dict[str, str]) -> None:
        if self.started:
            return
        all_of_them = {"content-type": "application/json", "content-length": str(len(body)), **headers}
        pairs = [(name.encode(), value.encode()) for name, value in all_of_them.items()]
        await self.send({"type": "http.response.start", "status": status, "headers": pairs})
        await self.send({"type": "http.response.body", "body": body})

    def line(self, seconds: float) -> dict[str, Any]:
        """What the access log says; neither headers nor what follows a `?`, which may hold secrets."""
        client = self.scope.get("client") or ("", 0)
        more = {key: value for key, value in self.scope.get("state", {}).items() if key in ("rows", "kind", "read")}
        told = {"time": datetime.now(UTC).isoformat(timespec="milliseconds"), "client": client[0],
                "method": printable(self.scope["method"][:20]), "path": printable(self.scope["path"][:PATH]),
                "status": self.status, "seconds": round(seconds, 4), "sent": self.sent, **more}
        return told | ({} if self.failure is None else {"failure": self.failure})


def write_line(told: dict[str, Any]) -> None:
    """One line of JSON on standard output, whole even where several workers write; where nobody reads, none."""
    with suppress(OSError, ValueError):
        sys.stdout.write(json.dumps(told) + "\n")
        sys.stdout.flush()
