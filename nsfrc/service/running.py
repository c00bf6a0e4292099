"""Sockets, workers and signals of a service."""

from __future__ import annotations

import logging
import multiprocessing
import os
import signal
import socket
import sys
import threading
import warnings
from collections.abc import Callable
from multiprocessing.connection import wait
from multiprocessing.context import SpawnProcess
from tempfile import TemporaryDirectory
from typing import Any

from nsfrc.errors import NsfrcError
from nsfrc.service.metrics import FOLDER
from nsfrc.service.settings import Settings

STARTING_FAILED = 3  # the code of a worker that cannot start, and would not the next time either
GRACE = 5.0  # seconds that a worker has beyond the longest request, before it is killed
PAUSE = 0.5
SWITCH = 0.001  # seconds a thread may compute while others wait: the one that answers would keep connections waiting
Say = Callable[[str], None]


def serve(settings: Settings, say: Say) -> None:
    """Serve until SIGTERM or SIGINT; requests that have begun are answered first. say: is told what to show."""
    with bound(settings.host, settings.port) as listening:
        address = shown(listening, settings.host)
        if settings.workers > 1:
            # Whatever a worker that is killed leaves in its temporary folder goes with it.
            with TemporaryDirectory(prefix="nsfrc-serve-") as folder:
                os.environ[FOLDER] = os.environ["TMPDIR"] = folder
                Supervisor(settings, listening, folder).run(lambda: say(f"serving at {address}"))
            return
        service = _opened(settings)
        for line in told(service):
            say(line)
        stopped: list[int] = []
        for number in (signal.SIGTERM, signal.SIGINT):  # uvicorn hands them on when it has stopped; that is all then
            signal.signal(number, lambda number, frame: stopped.append(number))
        run_one(service, listening, lambda: say(f"serving at {address}"))


def prepare_process(settings: Settings) -> None:
    """Make a process one that is there for a service and nothing else."""
    import torch
    from PIL import Image

    from nsfrc.inference.stream import computing

    for name in ("uvicorn.error", "python_multipart"):  # the gate tells what fails; damaged requests are answered
        logging.getLogger(name).setLevel(logging.CRITICAL)
    sys.setswitchinterval(SWITCH)
    warnings.filterwarnings("ignore", module=r"PIL\.")
    Image.MAX_IMAGE_PIXELS = settings.limits.pixels  # of pictures within pictures too; twice as many are refused
    torch.set_num_threads(computing(settings.threads))


def _opened(settings: Settings) -> Any:
    from nsfrc.service.app import Service

    prepare_process(settings)
    return Service(settings)


def told(service: Any) -> list[str]:
    """What is used, and what to know of it, in lines."""
    settings = {**service.answerer.settings, "takes": ", ".join(service.answerer.takes)}
    width = max(map(len, settings))
    return [*(f"{name:<{width}}  {text}" for name, text in settings.items()),
            *(f"warning: {remark}" for remark in service.answerer.remarks)]


def bound(host: str, port: int) -> socket.socket:
    """A socket that listens. Raises NsfrcError."""
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
        family, kind, protocol, _, place = found[0]
        listening = socket.socket(family, kind, protocol)
    except OSError as error:
        raise NsfrcError(f"there is no address {host}: {error.strerror or error}") from None
    try:
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.bind(place)
        listening.listen(2048)
        listening.set_inheritable(True)
    except (OSError, OverflowError) as error:
        listening.close()
        raise NsfrcError(f"cannot listen at {host}:{port}: {getattr(error, 'strerror', None) or error}; "
                         f"another --port may be free") from None
    return listening


def shown(listening: socket.socket, host: str) -> str:
    return f"http://{f'[{host}]' if ':' in host else host}:{listening.getsockname()[1]}"


def run_one(service: Any, listening: socket.socket, ready: Callable[[], None]) -> None:
    """One process: answer what comes at a socket until a signal."""
    import uvicorn

    from nsfrc.service.app import around
    from nsfrc.service.connections import limited

    class Server(uvicorn.Server):
        async def startup(self, sockets: list[socket.socket] | None = None) -> None:
            await super().startup(sockets)
            ready()

    settings = service.settings
    config = uvicorn.Config(
        around(service), http=limited(settings.limits), ws="none", lifespan="on", log_config=None, access_log=False,
        proxy_headers=False, server_header=False, h11_max_incomplete_event_size=settings.limits.header,
        timeout_graceful_shutdown=int(settings.limits.seconds) + 1,
    )
    Server(config).run(sockets=[listening])


def _work(settings: Settings, listening: socket.socket) -> None:
    """A worker process; it stops with the one that started it."""
    parent = multiprocessing.parent_process()
    assert parent is not None

    def follow() -> None:
        parent.join()
        os.kill(os.getpid(), signal.SIGTERM)

    threading.Thread(target=follow, name="nsfrc-follow", daemon=True).start()
    try:
        service = _opened(settings)
    except NsfrcError as error:
        print(f"error: {error}", file=sys.stderr)
        sys.exit(STARTING_FAILED)
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda number, frame: None)
    run_one(service, listening, lambda: print(f"worker {os.getpid()} is ready", file=sys.stderr, flush=True))


class Supervisor:
    """Keeps so many workers at one socket; one that dies is replaced."""

    def __init__(self, settings: Settings, listening: socket.socket, folder: str) -> None:
        self.settings, self.listening, self.folder = settings, listening, folder
        self.workers: list[SpawnProcess] = []
        self.stopping = False

    def run(self, ready: Callable[[], None]) -> None:
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, self._stop)
        try:
            for _ in range(self.settings.workers):
                self._start()
            ready()
            while not self.stopping:
                wait([one.sentinel for one in self.workers], timeout=PAUSE)
                self._replace()
        finally:
            self._end()

    def _stop(self, number: int, frame: object) -> None:
        self.stopping = True

    def _start(self) -> None:
        one = multiprocessing.get_context("spawn").Process(target=_work, args=(self.settings, self.listening))
        one.start()
        self.workers.append(one)

    def _replace(self) -> None:
        from prometheus_client.multiprocess import mark_process_dead

        for one in [one for one in self.workers if not one.is_alive()]:
            if one.exitcode == STARTING_FAILED:
                raise NsfrcError("the workers cannot start")
            self.workers.remove(one)
            mark_process_dead(one.pid, self.folder)
            if not self.stopping:
                print(f"worker {one.pid} ended ({one.exitcode}); another is started", file=sys.stderr, flush=True)
                self._start()

    def _end(self) -> None:
        for one in self.workers:
            one.terminate()
        for one in self.workers:
            one.join(self.settings.limits.seconds + GRACE)
            if one.is_alive():
                one.kill()
                one.join()
