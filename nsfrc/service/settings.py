"""What a service is told at its start. All of it can be handed to worker processes, and nothing here imports torch."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from nsfrc.errors import NsfrcError
from nsfrc.hosts import is_loopback

Takes = Literal["pictures", "detections", "facts"]
TAKES: tuple[Takes, ...] = ("pictures", "detections", "facts")
PORT = 8000
MEGA = 1_000_000
LEAST_TOKEN = 16  # characters


@dataclass(frozen=True)
class Limits:
    """What one request may cost, and all of them together.

    body: bytes; json: bytes of a body that is JSON, which takes many times as much when it is read. pixels: of a
    picture. items: pictures, files with detections or worlds of a request. seconds: from the end of its header to the
    answer. queue: items that wait or are worked on. connections: at once. header_seconds, header: of a request that
    has not begun yet. held: bytes of all bodies at once.
    """

    body: int = 16 * MEGA
    pixels: int = 32 * MEGA
    items: int = 64
    seconds: float = 30.0
    queue: int = 256
    connections: int = 512
    json: int = 4 * MEGA
    header: int = 65_536
    header_seconds: float = 10.0

    @property
    def held(self) -> int:
        return 8 * self.body


@dataclass(frozen=True)
class Batching:
    """most: items of a batch. wait: seconds that the first of them waits for others at most."""

    most: int = 32
    wait: float = 0.005


@dataclass(frozen=True)
class Settings:
    """A service. wanted: the fields of an `inference.session.Wanted`, the program among them. takes: what it can be
    asked with; nothing is all that tells the program something.

    token: what a request must carry; None on loopback alone. origins: pages of other hosts that may ask (CORS).
    threads: of a worker, about half of them to read pictures. log: whether there is an access log.
    """

    wanted: Mapping[str, Any]
    takes: tuple[Takes, ...] = ()
    host: str = "127.0.0.1"
    port: int = PORT
    token: str | None = field(default=None, repr=False)
    origins: tuple[str, ...] = ()
    workers: int = 1
    threads: int = 2
    reasons: bool = True
    limits: Limits = Limits()
    batching: Batching = Batching()
    log: bool = True

    def __post_init__(self) -> None:
        if self.token is None and not is_loopback(self.host):
            raise NsfrcError(f"--host {self.host} can be reached from other machines, and so needs a token: write one "
                             f"to a file (openssl rand -hex 32 > token) and pass --token-file token")
        if self.limits.items > self.limits.queue:
            raise NsfrcError(f"--max-items {self.limits.items} is more than --queue {self.limits.queue} has room for: "
                             f"make the queue longer")


def checked_token(text: str, source: str) -> str:
    """A token as it stands in a file. Raises NsfrcError."""
    token = text.strip()
    if len(token) < LEAST_TOKEN or not token.isascii() or not token.isprintable() or " " in token:
        raise NsfrcError(f"{source}: a token has at least {LEAST_TOKEN} letters, digits and signs, without blanks: "
                         f"openssl rand -hex 32 > {source}")
    return token
