"""A connection to Ray: a cluster that runs already, or one on this machine alone; and room for workers on it."""

from __future__ import annotations

import logging
import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

from nsfrc.contexts import cores
from nsfrc.errors import NsfrcError
from nsfrc.ray.extra import need_ray

LOCAL, RUNNING = "local", "auto"
STORE = 512 * 1024 * 1024  # bytes for what processes of this machine hand each other; pictures are not among it
PATIENCE = 5.0  # seconds
# CPUs that are left to Ray's own tasks: where actors have all of them, whatever is to feed them waits forever.
SPARE = 1


@dataclass(frozen=True)
class Wanted:
    """address: host:port of a cluster, ray://host:port, auto for the one that runs here, or local for this machine.

    workers: None takes as many as there is room for. cpus, gpus: of each worker.
    """

    address: str = LOCAL
    workers: int | None = None
    cpus: int = 1
    gpus: float = 0.0


@dataclass(frozen=True)
class Cluster:
    """ray: the module. workers: how many there will be. remark: what to say of that."""

    ray: Any
    workers: int
    cpus: int
    gpus: float
    remark: str | None = None


@contextmanager
def connected(wanted: Wanted) -> Iterator[Cluster]:
    """A connection for as long as the block lasts; one that is there already is taken, and stays."""
    ray = need_ray(local=wanted.address == LOCAL)
    ours = not ray.is_initialized()
    if ours:
        _connect(ray, wanted)
    _hush(ray)
    try:
        yield _room(ray, wanted)
    finally:
        if ours:
            ray.shutdown()


def _connect(ray: Any, wanted: Wanted) -> None:
    quiet = {"log_to_driver": False, "logging_level": logging.ERROR}
    os.environ.setdefault("RAY_BACKEND_LOG_LEVEL", "fatal")
    if wanted.address == LOCAL:
        workers = wanted.workers or max(1, cores() // wanted.cpus)
        with _muted():
            ray.init(address=LOCAL, num_cpus=workers * wanted.cpus + SPARE, include_dashboard=False,
                     object_store_memory=STORE, _node_ip_address="127.0.0.1", **quiet)
        return
    _refuse_unreachable(wanted.address)
    try:
        with _muted():
            ray.init(address=wanted.address, **quiet)
    except (OSError, RuntimeError, ValueError, ray.exceptions.RayError) as error:  # ConnectionError is an OSError
        reason = (str(error).strip().splitlines() or [type(error).__name__])[0]
        raise NsfrcError(f"cannot connect to Ray at {wanted.address} ({reason}): see `ray status` there, or give --ray "
                         f"local for this machine alone") from None


@contextmanager
def _muted() -> Iterator[None]:
    """Without what Ray's compiled part tells on standard error as it starts; what fails is raised, too."""
    kept, nowhere = os.dup(2), os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 2)
    try:
        yield
    finally:
        os.dup2(kept, 2)
        os.close(kept)
        os.close(nowhere)


def _refuse_unreachable(address: str) -> None:
    """Ray itself would try for minutes."""
    if address == RUNNING:
        return
    where = urlsplit(address if "://" in address else f"//{address}")
    try:
        host, port = where.hostname, where.port
    except ValueError:
        host = port = None
    if not host or not port:
        raise NsfrcError(f"--ray {address}: not an address; give host:port, ray://host:port, auto for the cluster that "
                         f"this machine belongs to, or local")
    try:
        socket.create_connection((host, port), PATIENCE).close()
    except OSError as error:
        raise NsfrcError(f"there is no Ray at {address} ({error.strerror or error}): see that the head is up and the "
                         f"port is open (`ray start --head --port {port}`), or give --ray local for this machine "
                         f"alone") from None


def _hush(ray: Any) -> None:
    """Rows, a bar and a summary are ours; what Ray Data tells of its plans belongs into its log files."""
    logging.getLogger("ray.data").setLevel(logging.CRITICAL)
    context = ray.data.DataContext.get_current()
    context.enable_progress_bars = False
    context.print_on_execution_start = False


def _room(ray: Any, wanted: Wanted) -> Cluster:
    """As many workers as there is room for beside Ray's own tasks."""
    there = ray.cluster_resources()
    cpus, gpus = there.get("CPU", 0.0), there.get("GPU", 0.0)
    fit = int((cpus - SPARE) // wanted.cpus)
    if wanted.gpus > 0:
        fit = min(fit, int(gpus / wanted.gpus + 1e-9))
    if fit < 1:
        lacks = f"{gpus:g} GPUs" if wanted.gpus > 0 and gpus < wanted.gpus else f"{cpus:g} CPUs"
        raise NsfrcError(f"Ray has {lacks}, too little for a worker with {wanted.cpus} CPU"
                         f"{f' and {wanted.gpus:g} GPU' if wanted.gpus else ''} and {SPARE} CPU for Ray's own tasks: "
                         f"add nodes, or give each worker less (--cpus-per-worker, --gpus-per-worker)")
    workers = min(fit, wanted.workers or fit)
    remark = None
    if wanted.workers is not None and workers < wanted.workers:
        remark = (f"there is room for {workers} of {wanted.workers} workers: Ray has {cpus:g} CPUs"
                  f"{f' and {gpus:g} GPUs' if wanted.gpus else ''}, of which {SPARE} CPU is left to its own tasks")
    return Cluster(ray, workers, wanted.cpus, wanted.gpus, remark)
