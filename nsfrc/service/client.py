"""A client for `nsfrc serve`, with nothing but the standard library.

    from nsfrc.service.client import Client

    with Client("http://127.0.0.1:8000") as ask:
        for row in ask.pictures("a.png", "b.png"):
            print(row["file"], row["answer"], row["reason"])
"""

from __future__ import annotations

import http.client
import json
import secrets
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Self
from urllib.parse import urlsplit

from nsfrc.errors import NsfrcError

Row = dict[str, Any]
LONGEST = 30.0  # seconds to wait before another try, at most


class ServiceError(NsfrcError):
    """A request that was refused. status: of HTTP, 0 where there was no answer."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status


class Client:
    """Asks one service over one connection; not to be shared by threads.

    address: as http://127.0.0.1:8000. token: where the service asks for one. timeout: seconds for each answer. tries:
    how often a request is sent where the service has no room (503) or the connection breaks.
    """

    def __init__(self, address: str, token: str | None = None, timeout: float = 60.0, tries: int = 5) -> None:
        parts = urlsplit(address)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise NsfrcError(f"{address!r} is not the address of a service, as http://127.0.0.1:8000")
        kind = http.client.HTTPSConnection if parts.scheme == "https" else http.client.HTTPConnection
        self._connection = kind(parts.hostname, parts.port, timeout=timeout)
        self._path, self._tries = parts.path.rstrip("/"), max(1, tries)
        self._headers = {} if token is None else {"Authorization": f"Bearer {token}"}

    def pictures(self, *pictures: str | Path | bytes) -> list[Row]:
        """A row for each picture, given as the path of a file or as its bytes."""
        boundary = secrets.token_hex(16)
        parts = []
        for number, one in enumerate(pictures, 1):
            name = f"picture {number}" if isinstance(one, bytes) else Path(one).name
            parts += [_head(boundary, name), one if isinstance(one, bytes) else _content(Path(one)), b"\r\n"]
        return self._rows(b"".join([*parts, f"--{boundary}--\r\n".encode()]),
                          f"multipart/form-data; boundary={boundary}")

    def detections(self, *files: Mapping[str, Any]) -> list[Row]:
        """A row for each file: {"file": "a.png", "detections": [{"class": …, "confidence": …, "box": [x1, …]}]}."""
        return self._rows(json.dumps({"detections": files}).encode(), "application/json")

    def facts(self, *worlds: Mapping[str, float]) -> list[Row]:
        """A row for each world: {"color(obj1,red)": 0.9, …}."""
        return self._rows(json.dumps({"facts": worlds}).encode(), "application/json")

    def program(self) -> dict[str, Any]:
        """What is served: questions, settings and limits."""
        status, body = self._asked("GET", "/program")
        found: dict[str, Any] = _checked(status, body)
        return found

    def ready(self) -> bool:
        """Whether the service would take a request."""
        try:
            return self._once("GET", "/readyz", b"", {})[0] == 200
        except (OSError, http.client.HTTPException):
            self.close()
            return False

    def close(self) -> None:
        self._connection.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _rows(self, body: bytes, content_type: str) -> list[Row]:
        status, answer = self._asked("POST", "/infer", body, {"Content-Type": content_type})
        rows: list[Row] = _checked(status, answer)["rows"]
        return rows

    def _asked(
        self, method: str, path: str, body: bytes = b"", headers: Mapping[str, str] | None = None
    ) -> tuple[int, bytes]:
        """Status and body, after as many tries as it takes. Asking twice does no harm: nothing is kept of a request."""
        problem: Exception | None = None
        for left in reversed(range(self._tries)):
            pause = 0.5
            try:
                status, answer, again = self._once(method, path, body, headers or {})
                if status != 503 or not left:
                    return status, answer
                pause = float(again) if again.isdigit() else 1.0
            except (OSError, http.client.HTTPException) as error:
                self.close()
                problem = error
            if left:
                time.sleep(min(pause, LONGEST))
        raise ServiceError(0, f"there is no answer from {self._connection.host}:{self._connection.port}: "
                              f"{problem or 'the connection broke'}")

    def _once(self, method: str, path: str, body: bytes, headers: Mapping[str, str]) -> tuple[int, bytes, str]:
        self._connection.request(method, self._path + path, body or None, {**self._headers, **headers})
        answer = self._connection.getresponse()
        return answer.status, answer.read(), answer.headers.get("Retry-After", "")


def _head(boundary: str, name: str) -> bytes:
    quoted = "".join(c if c.isprintable() and c not in '"\\' else "_" for c in name)
    return (f'--{boundary}\r\nContent-Disposition: form-data; name="image"; filename="{quoted}"\r\n'
            f"Content-Type: application/octet-stream\r\n\r\n").encode("utf-8", "replace")


def _content(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise NsfrcError(f"cannot read {path}: {error.strerror}") from None


def _checked(status: int, body: bytes) -> Any:
    """What an answer says; raises ServiceError where the request was refused."""
    try:
        told = json.loads(body)
    except ValueError:
        raise ServiceError(status, f"the answer ({status}) is not JSON: is there another service at this address?") \
            from None
    if status not in (200, 422) or not isinstance(told, dict) or "error" in told:
        message: Sequence[Any] | Any = told.get("error", told) if isinstance(told, dict) else told
        raise ServiceError(status, f"{message} ({status})")
    return told
