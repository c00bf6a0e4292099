"""What the benchmarks of `nsfrc serve` share: a service in a process of its own, what it uses, and a plain client."""

from __future__ import annotations

import asyncio
import os
import re
import subprocess
import sys
import tempfile
import threading
from contextlib import suppress
from pathlib import Path
from typing import Self

NSFRC = "import sys; from nsfrc.cli import main; sys.argv[0] = 'nsfrc'; main()"
BOUNDARY = "nsfrc-benchmark"
_TICKS = os.sysconf("SC_CLK_TCK")
_PAGE = os.sysconf("SC_PAGE_SIZE")


class Served:
    """`nsfrc serve` as a process; its temporary folder is its own, so that what it leaves there can be seen."""

    def __init__(self, program: str, *options: str, port: int = 0) -> None:
        self.folder = tempfile.TemporaryDirectory(prefix="nsfrc-benchmark-")
        command = [sys.executable, "-c", NSFRC, "serve", program, "--port", str(port), *options]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                                        env={**os.environ, "TMPDIR": self.folder.name})
        self.said: list[str] = []
        self.log: list[str] = []
        self.port = 0
        ready = threading.Event()

        def listen() -> None:
            assert self.process.stderr is not None
            for line in self.process.stderr:
                self.said.append(line.rstrip())
                if found := re.search(r"serving at http://.*:(\d+)", line):
                    self.port = int(found[1])
                    ready.set()
            ready.set()

        self._threads = [threading.Thread(target=listen, daemon=True), threading.Thread(target=self._read, daemon=True)]
        for one in self._threads:
            one.start()
        ready.wait(120)
        if not self.port:
            raise SystemExit("\n".join(["the service did not start:", *self.said]))

    def _read(self) -> None:
        assert self.process.stdout is not None
        self.log.extend(line.rstrip() for line in self.process.stdout)

    def cpu(self) -> float:
        """Seconds of the processor so far."""
        fields = Path(f"/proc/{self.process.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / _TICKS

    def megabytes(self) -> float:
        """Memory that it and its workers hold now."""
        children = Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children").read_text().split()
        pages = 0
        for one in (self.process.pid, *children):
            with suppress(OSError):  # it may just have ended
                pages += int(Path(f"/proc/{one}/statm").read_text().split()[1])
        return pages * _PAGE / 1e6

    def threads(self) -> int:
        return len(os.listdir(f"/proc/{self.process.pid}/task"))

    def descriptors(self) -> int:
        return len(os.listdir(f"/proc/{self.process.pid}/fd"))

    def left_behind(self) -> list[str]:
        """Files in its temporary folder."""
        return sorted(os.listdir(self.folder.name))

    def stop(self) -> int:
        """SIGTERM, and the code that it ends with."""
        self.process.terminate()
        with suppress(subprocess.TimeoutExpired):
            self.process.wait(60)
        if self.process.poll() is None:
            self.process.kill()
        code = self.process.wait()
        for one in self._threads:
            one.join(5)
        return code

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self.process.poll() is None:
            self.stop()
        self.folder.cleanup()


def form(name: str, data: bytes) -> bytes:
    """A request with one picture, from its first line on."""
    body = (f'--{BOUNDARY}\r\nContent-Disposition: form-data; name="image"; filename="{name}"\r\n\r\n'.encode() + data
            + f"\r\n--{BOUNDARY}--\r\n".encode())
    return head("multipart/form-data; boundary=" + BOUNDARY, len(body)) + body


def head(content_type: str, length: int, path: str = "/infer") -> bytes:
    return (f"POST {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: {content_type}\r\n"
            f"Content-Length: {length}\r\n\r\n").encode()


class Connection:
    """A connection of a client that does as little as it can, so that a service is measured and not its client."""

    def __init__(self, port: int) -> None:
        self.port = port
        self._streams: tuple[asyncio.StreamReader, asyncio.StreamWriter] | None = None

    async def open(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        if self._streams is None:
            self._streams = await asyncio.open_connection("127.0.0.1", self.port, limit=1 << 24)
        return self._streams

    async def ask(self, request: bytes) -> tuple[int, bytes]:
        """Status and body. Raises OSError or EOFError where the connection breaks."""
        reader, writer = await self.open()
        writer.write(request)
        return await self.answer(reader)

    async def answer(self, reader: asyncio.StreamReader) -> tuple[int, bytes]:
        header = await reader.readuntil(b"\r\n\r\n")
        lines = header.decode("latin-1").lower().split("\r\n")
        length = next(int(line.partition(":")[2]) for line in lines if line.startswith("content-length:"))
        body = await reader.readexactly(length)
        if "connection: close" in lines:
            self.close()
        return int(lines[0].split()[1]), body

    def close(self) -> None:
        if self._streams is not None:
            self._streams[1].close()
            self._streams = None
