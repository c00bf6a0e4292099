"""A service in this process, and what is asked of it."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from typing import Any

from nsfrc.benchmarks.service_fuzz import Request, send
from nsfrc.service.app import Service, around
from nsfrc.service.settings import Settings

FACTS = """
:- type(day, [monday, tuesday]).
:- neural(rain(day)).
:- target(wet(monday)).
wet(D) :- rain(D).
"""
JSON = (b"content-type", b"application/json")


def form(*pictures: tuple[str, bytes], headers: Sequence[tuple[bytes, bytes]] = ()) -> Request:
    head = '--edge\r\nContent-Disposition: form-data; name="image"; filename="{}"\r\n\r\n'
    parts = [head.format(name).encode() + data + b"\r\n" for name, data in pictures]
    kind = (b"content-type", b"multipart/form-data; boundary=edge")
    return Request(headers=[kind, *headers], body=b"".join([*parts, b"--edge--\r\n"]))


def told(value: Any, *headers: tuple[bytes, bytes]) -> Request:
    return Request(headers=[JSON, *headers], body=json.dumps(value).encode())


def get(path: str, *headers: tuple[bytes, bytes], method: str = "GET") -> Request:
    return Request(path, method, list(headers))


def asked(service: Service, *requests: Request) -> list[tuple[int, Any]]:
    """Status and answer of requests that are sent at once."""
    async def run() -> list[tuple[int, bytes]]:
        gate = around(service)
        async with service.running():
            return await asyncio.gather(*(send(gate, one) for one in requests))

    return [(status, json.loads(body) if body[:1] in b"{[" and body else body) for status, body in asyncio.run(run())]


def opened(
    program: Any, *, takes: tuple[Any, ...] = (), wanted: dict[str, Any] | None = None, **settings: Any
) -> Service:
    return Service(Settings({"program": program, **(wanted or {})}, takes, **{"log": False, **settings}))
