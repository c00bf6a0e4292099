"""Who may speak to the page: its own browser windows, and nobody else's pages."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from nsfrc.hosts import is_loopback, name_in

ELSEWHERE = ("cross-site", "same-site")  # same-site: another port of this machine
FRAMES = (b"content-security-policy", b"frame-ancestors 'self'")  # for browsers without Sec-Fetch-Site
MAX_BODY = 52_000_000  # bytes of a request: a picture, and what a form has around it

Scope = Mapping[str, Any]
Receive = Callable[[], Awaitable[Any]]
Send = Callable[[Any], Awaitable[None]]


def refusal(scope: Scope, local: bool) -> tuple[int, str] | None:
    """Why a request is refused, as a status and words; None where it is fine. local: whether only this machine may ask.

    A name that is not this machine's in Host is a stranger's site that leads here (DNS rebinding); an Origin that is
    not the page's own is another page in the same browser. What other sites load without an Origin, in a frame or as
    an image, browsers say in Sec-Fetch-Site; a link that is followed there opens the page as ever.
    """
    headers = {name.decode("latin-1").lower(): value.decode("latin-1") for name, value in scope.get("headers", ())}
    host, origin = headers.get("host", ""), headers.get("origin")
    if local and not is_loopback(name_in(host)):
        return 403, "the page is only for this machine: open it as http://127.0.0.1"
    if origin is not None and origin.partition("://")[2] != host:
        return 403, "another page may not speak to this one"
    if headers.get("sec-fetch-site") in ELSEWHERE and headers.get("sec-fetch-dest") != "document":
        return 403, "another page may not show or load this one"
    if scope.get("method") in ("POST", "PUT", "PATCH"):
        length = headers.get("content-length", "")
        if not re.fullmatch("[0-9]{1,15}", length):
            return 411, "say how long it is"
        if int(length) > MAX_BODY:
            return 413, "too large"
    return None


class Guard:
    """Stands before the server (ASGI)."""

    def __init__(self, app: Callable[[Scope, Receive, Send], Awaitable[None]], local: bool = True) -> None:
        self.app, self.local = app, local

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        refused = refusal(scope, self.local) if scope["type"] in ("http", "websocket") else None
        if refused is None:
            await self._handed_on(scope, receive, send)
        elif scope["type"] == "websocket":
            await send({"type": "websocket.close", "code": 1008})
        else:
            await _answer(send, *refused)

    async def _handed_on(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Say of every answer that no other site may show it in a frame; a form that is no upload fails quietly."""
        started = False

        async def sent(message: Any) -> None:
            nonlocal started
            if message["type"] == "http.response.start":
                started, message = True, {**message, "headers": [*message.get("headers", ()), FRAMES]}
            await send(message)

        try:
            await self.app(scope, receive, sent)
        except Exception:
            if scope.get("method") != "POST" or started:
                raise
            await _answer(send, 400, "this is not a picture that is dropped in")


async def _answer(send: Send, status: int, words: str) -> None:
    await send({"type": "http.response.start", "status": status,
                "headers": [(b"content-type", b"text/plain; charset=utf-8")]})
    await send({"type": "http.response.body", "body": words.encode()})
