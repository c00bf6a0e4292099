"""Connections that may cost only so much: uvicorn waits for the header of a request, and for a reader, without end."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from uvicorn.protocols.http.auto import AutoHTTPProtocol

from nsfrc.service.refusals import as_body
from nsfrc.service.settings import Limits

if TYPE_CHECKING:
    Base: Any = object
else:
    Base = AutoHTTPProtocol

_BODY = as_body("too many connections: try again in a second")
_FULL = (b"HTTP/1.1 503 Service Unavailable\r\nretry-after: 1\r\ncontent-type: application/json\r\n"
         b"connection: close\r\ncontent-length: %d\r\n\r\n%s" % (len(_BODY), _BODY))


PIPELINED = 64  # requests that may wait in one connection for the one before them


class Connection(Base):
    """uvicorn's connection. One whose next request has no whole header in time, or too long a header, is closed, and
    so is one that does not take its answer, or in which many requests wait. Beyond so many, a connection is told to
    come again.
    """

    limits = Limits()

    def connection_made(self, transport: asyncio.Transport) -> None:
        super().connection_made(transport)
        self._before, self._timer = 0, None
        if len(self.connections) > self.limits.connections:
            transport.write(_FULL)
            transport.close()
            return
        self._wait()

    def _wait(self) -> None:
        if self._timer is None:
            self._timer = self.loop.call_later(self.limits.header_seconds, self.transport.abort)

    def _stop(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    @property
    def _asked(self) -> bool:
        """Whether a request has begun that is not answered yet."""
        return self.cycle is not None and not self.cycle.response_complete

    def data_received(self, data: bytes) -> None:
        if self.transport.is_closing():
            return
        if not self._asked:
            self._wait()
            self._before += len(data)
        super().data_received(data)
        if self._asked:
            self._stop()
        elif self._before > self.limits.header:
            self.transport.abort()
        if len(getattr(self, "pipeline", ())) > PIPELINED:  # uvicorn reads on, however many there are
            self.transport.abort()

    def on_response_complete(self) -> None:
        super().on_response_complete()
        self._before = 0
        if left := self.transport.get_write_buffer_size():
            self.loop.call_later(self.limits.seconds, self._unread, left)

    def _unread(self, left: int) -> None:
        """Close where nothing of an answer of long ago has been taken."""
        if self.transport.get_write_buffer_size() >= left:
            self.transport.abort()

    def connection_lost(self, error: Exception | None) -> None:
        self._stop()
        super().connection_lost(error)


def limited(limits: Limits) -> type[asyncio.Protocol]:
    """Connections with these limits."""
    return type("LimitedConnection", (Connection,), {"limits": limits})
