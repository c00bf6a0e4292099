"""What a request is refused with: a status, and what to do about it in words."""

from __future__ import annotations

import json
from typing import Any

LONGEST = 500  # characters of a message, which may repeat what a stranger sent


class Refused(Exception):
    """A request that is not answered. again: seconds after which it is worth another try."""

    def __init__(self, status: int, message: str, again: int | None = None) -> None:
        super().__init__(message)
        self.status, self.again = status, again
        self.message = message if len(message) <= LONGEST else f"{message[:LONGEST]}…"

    @property
    def headers(self) -> dict[str, str]:
        found = {} if self.again is None else {"retry-after": str(self.again)}
        if self.status == 401:
            found["www-authenticate"] = "Bearer"
        return found

    @property
    def body(self) -> bytes:
        return as_body(self.message)


class Gone(Exception):
    """The client has closed the connection; nobody is left to tell."""


def as_body(message: str) -> bytes:
    return json.dumps({"error": message}).encode()


def busy(what: str) -> Refused:
    """For a request that there is no room for now."""
    return Refused(503, f"{what}: try again in a second", again=1)


def no_constant(name: str) -> Any:
    """For `json.loads`: NaN and Infinity are not JSON."""
    raise ValueError(f"{name} is not a number")
