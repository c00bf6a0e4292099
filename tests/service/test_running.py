"""The service as a process: connections, workers, signals, and the client."""

from __future__ import annotations

import json
import os
import signal
import socket
import threading
import time
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

import pytest

pytest.importorskip("fastapi")

from nsfrc.benchmarks.service_process import Served
from nsfrc.errors import NsfrcError
from nsfrc.service.client import Client, ServiceError
from tests.cli.support import Run
from tests.service.support import FACTS, opened

TOKEN = "a-token-of-some-length"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("served")
    (path / "rules.pl").write_text(FACTS)
    (path / "token").write_text(TOKEN + "\n")
    return path


@pytest.fixture(scope="module")
def served(folder: Path) -> Iterator[Served]:
    with Served(str(folder / "rules.pl"), "--token-file", str(folder / "token"), "--max-body", "0.1", "--timeout", "3",
                "--max-wait", "50", "--max-connections", "20") as one:
        yield one


def client(served: Served, token: str | None = TOKEN, tries: int = 1) -> Client:
    return Client(f"http://127.0.0.1:{served.port}", token, timeout=30, tries=tries)


def test_the_client(served: Served) -> None:
    with client(served) as ask:
        assert ask.ready() and ask.program()["takes"] == ["facts"]
        assert [row["score"] for row in ask.facts({"rain(monday)": 0.25}, {})] == [0.25, 0]
        with pytest.raises(ServiceError, match="nosuch") as refused:
            ask.facts({"nosuch(x)": 1})
        assert refused.value.status == 422
        with pytest.raises(ServiceError, match="takes facts, not pictures"):
            ask.pictures(b"a picture")
        with pytest.raises(NsfrcError, match=r"cannot read none\.png"):
            ask.pictures("none.png")
        with pytest.raises(ServiceError, match="takes facts, not detections"):
            ask.detections({"file": "a", "detections": []})
        with pytest.raises(ServiceError, match="larger than") as large:  # the whole of it is sent before it is read
            ask.pictures(bytes(300_000))
        assert large.value.status == 413
        assert ask.ready()
    with client(served, None) as stranger, pytest.raises(ServiceError, match="token") as refused:
        stranger.pictures(bytes(90_000))
    assert refused.value.status == 401


def test_clients_of_nothing() -> None:
    with pytest.raises(NsfrcError, match="is not the address"):
        Client("localhost:8000")
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    with Client(f"http://127.0.0.1:{port}", tries=2) as ask:
        assert not ask.ready()
        with pytest.raises(ServiceError, match="no answer") as refused:
            ask.program()
    assert refused.value.status == 0


def _until_closed(port: int, data: bytes) -> bytes:
    """What a connection is told before it is closed."""
    with socket.create_connection(("127.0.0.1", port), timeout=20) as one:
        one.sendall(data)
        found = b""
        try:
            while part := one.recv(65536):
                found += part
        except ConnectionError:
            pass
        return found


def test_connections_that_say_nothing_useful_are_closed(served: Served) -> None:
    assert b"400 Bad Request" in _until_closed(served.port, b"\x16\x03\x01 this is not HTTP\r\n\r\n")
    assert b" 200 " not in _until_closed(served.port, b"GET /" + b"a" * 200_000)
    head = f"POST /infer HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {TOKEN}\r\nContent-Type: application/json\r\n"
    slow = _until_closed(served.port, f"{head}Content-Length: 50\r\n\r\n".encode() + b'{"facts')
    assert b"408 Request Timeout" in slow and b"connection: close" in slow.lower()
    far = _until_closed(served.port, f"{head}Content-Length: 999999999999\r\n\r\n".encode())
    assert b"413 " in far and b"connection: close" in far.lower()
    expecting = f"{head}Content-Length: 90000\r\nExpect: 100-continue\r\n\r\n".encode()
    assert _until_closed(served.port, expecting).startswith(b"HTTP/1.1 413 ")  # without "go on" before it


def test_requests_without_end_in_one_connection(served: Served) -> None:
    """Some that follow without waiting for answers are answered; where they pile up, the connection is closed."""
    body = json.dumps({"facts": [{}]}).encode()
    one = (f"POST /infer HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {TOKEN}\r\nContent-Type: application/json\r\n"
           f"Content-Length: {len(body)}\r\n\r\n").encode() + body
    last = b"GET /healthz HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"
    assert _until_closed(served.port, one * 10 + last).count(b"HTTP/1.1 200 OK") == 11
    if find_spec("httptools"):  # without it uvicorn reads one request at a time
        assert _until_closed(served.port, one * 2000 + last).count(b"HTTP/1.1 200 OK") < 500
    with client(served) as ask:
        assert ask.ready()


def test_answers_that_nobody_takes() -> None:
    """Whoever has taken nothing of an answer for as long as a request may last is closed; a slow reader is not."""
    from nsfrc.service.connections import Connection

    class Transport:
        left, aborted = 1000, False

        def get_write_buffer_size(self) -> int:
            return self.left

        def abort(self) -> None:
            self.aborted = True

    one = Connection.__new__(Connection)
    one.transport = Transport()
    one.transport.left = 900
    one._unread(1000)
    assert not one.transport.aborted
    one._unread(900)
    assert one.transport.aborted


def test_too_many_connections(served: Served) -> None:
    several = [socket.create_connection(("127.0.0.1", served.port)) for _ in range(20)]
    try:
        time.sleep(0.2)
        assert b"503 Service Unavailable\r\nretry-after: 1" in _until_closed(served.port, b"")
    finally:
        for one in several:
            one.close()
    time.sleep(0.2)
    with client(served) as ask:
        assert ask.ready()


def test_a_signal_lets_requests_end(folder: Path) -> None:
    """SIGTERM while a request waits for its batch: it is answered, the code is 0, and nothing is left."""
    with Served(str(folder / "rules.pl"), "--max-wait", "1500") as one:
        rows: list[dict[str, object]] = []
        asking = threading.Thread(target=lambda: rows.extend(client(one, None).facts({"rain(monday)": 0.5})))
        asking.start()
        time.sleep(0.7)
        assert one.stop() == 0
        asking.join(10)
        assert [row["score"] for row in rows] == [0.5]
        assert one.left_behind() == []
        assert [json.loads(line)["status"] for line in one.log] == [200]
        assert not [line for line in one.said if "Traceback" in line]


def test_workers_are_replaced(folder: Path) -> None:
    with Served(str(folder / "rules.pl"), "--workers", "2", "--no-log") as one:
        with client(one, None, tries=20) as ask:
            assert ask.facts({"rain(monday)": 0.5})[0]["score"] == 0.5
        _until(lambda: sum("is ready" in line for line in one.said) == 2)
        worker = int(next(line for line in one.said if "is ready" in line).split()[1])
        os.kill(worker, signal.SIGKILL)
        _until(lambda: sum("is ready" in line for line in one.said) == 3)
        with client(one, None, tries=20) as ask:
            assert ask.facts({"rain(monday)": 0.5})[0]["score"] == 0.5
        assert any(f"worker {worker} ended" in line for line in one.said)
        assert one.stop() == 0 and one.left_behind() == []


def _until(holds: object, seconds: float = 60) -> None:
    end = time.monotonic() + seconds
    while not holds():  # type: ignore[operator]
        assert time.monotonic() < end
        time.sleep(0.05)


def test_what_is_refused_at_the_start(run: Run, folder: Path) -> None:
    rules = str(folder / "rules.pl")
    assert "needs a token" in run.refused("serve", rules, "--host", "0.0.0.0")
    assert "nosuch" in run.refused("serve", "nosuch")
    assert "nosuch" in run.refused("serve", rules, "--perception", "nosuch")
    (run.folder / "short").write_text("short")
    assert "at least 16" in run.refused("serve", rules, "--token-file", "short")
    assert "--queue" in run.refused("serve", rules, "--queue", "5", "--max-items", "6")
    (run.folder / "nothing.pl").write_text(":- type(a, [b]). :- neural(p(a)). q(X) :- p(X).")
    with pytest.raises(NsfrcError, match="no target"):
        opened("nothing.pl")
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        assert "cannot listen" in run.refused("serve", rules, "--port", port)
    assert "there is no address" in run.refused("serve", rules, "--host", "no.such.host.invalid", "--token-file",
                                                str(folder / "token"))
