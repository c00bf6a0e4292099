"""Threads that run kernels beside the calling one: those of torch, or else some of our own.

torch's are OpenMP's. They wait actively for a while for more work, so that one is at it within microseconds where a
thread that sleeps takes a hundred, which is what decides from what batch on a second thread pays. They are used by
GNU's interface, which LLVM's OpenMP has too. Where torch comes with neither, and in forked processes, in which they are
no more, threads of our own wait on a `SimpleQueue`. Kernels that wait for each other (`meeting`) need a thread each: if
OpenMP gives fewer, as it does within another of its teams, they have threads made for them.
"""

from __future__ import annotations

import ctypes
import os
import struct
import threading
from collections.abc import Callable, Sequence
from functools import cache, partial
from queue import SimpleQueue

import numpy as np

from nsfrc.engines.cpu import native
from nsfrc.engines.cpu.tables import FINE, NOT_RUN

Work = Callable[[], object]
Reply = SimpleQueue[BaseException | None]
Team = Callable[[str, list[bytes], int], list[int]]
HEADER = struct.Struct("PPPqqPq")  # what `native.PARTS` reads before the records


def run_parts(name: str, records: list[bytes]) -> list[int]:
    """A kernel on each record, side by side; what it says of each."""
    team = _team()
    return team(name, records, 1) if team else _queued(name, records)


def run_together(name: str, records: list[bytes], barrier: np.ndarray) -> list[int]:
    """The same for kernels that wait for each other; barrier [parts]: to be filled with what they call to do so."""
    team = _team()
    if team:
        barrier[:] = native.address("meet")
        found = team(name, records, len(records))
        if NOT_RUN not in found:
            return found
    return _at_once(name, records, barrier)


def _team() -> Team | None:
    return _openmp() if native.compiled() and not _forked else None


@cache
def _openmp() -> Team | None:
    """Runs parts on torch's threads; None if they cannot be had."""
    import torch  # noqa: F401  (its library comes with torch)

    try:
        library = ctypes.CDLL(None)
        start, number, count = library.GOMP_parallel, library.omp_get_thread_num, library.omp_get_num_threads
    except (AttributeError, OSError, TypeError):  # another OpenMP, or Windows, where there is no library of all
        return None
    start.argtypes, start.restype = [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_uint, ctypes.c_uint], None
    of_thread = [ctypes.cast(function, ctypes.c_void_p).value for function in (number, count)]

    def run(name: str, records: list[bytes], least: int) -> list[int]:
        """least: with fewer threads nothing is done."""
        parts = len(records)
        found = (ctypes.c_int64 * parts)(*[NOT_RUN] * parts)
        header = HEADER.pack(native.address(name), *of_thread, parts, len(records[0]), ctypes.addressof(found), least)
        start(native.address("parts"), header + b"".join(records), parts, 0)
        return list(found)

    return run


def _at_once(name: str, records: list[bytes], barrier: np.ndarray) -> list[int]:
    """A thread for each record but the first, made for it: one that waited for its turn would be waited for."""
    run, found, broken = native.kernel(name), [NOT_RUN] * len(records), list[BaseException]()
    together = threading.Barrier(len(records))

    def meet(_gate: int) -> None:
        try:
            together.wait()
        except BaseException as error:  # an interrupt: let the others end too, with results that nobody will see
            broken.append(error)
            together.abort()

    def do(part: int) -> None:
        found[part] = run(records[part])

    called = ctypes.CFUNCTYPE(None, ctypes.c_int64)(meet)
    barrier[:] = ctypes.cast(called, ctypes.c_void_p).value
    helpers = [threading.Thread(target=do, args=(part,), daemon=True) for part in range(1, len(records))]
    started = []
    try:
        for helper in helpers:
            helper.start()
            started.append(helper)
        do(0)
    except BaseException:
        together.abort()
        raise
    finally:
        for helper in started:
            helper.join()
    if broken:
        raise broken[0]
    return found


def _queued(name: str, records: list[bytes]) -> list[int]:
    run, found = native.kernel(name), [FINE] * len(records)

    def do(part: int) -> None:
        found[part] = run(records[part])

    in_threads([partial(do, part) for part in range(len(records))])
    return found


_forked = False


def _note_fork() -> None:
    global _forked
    _forked = True


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_note_fork)


class Helpers:
    """Threads that take work from one queue; more are started when more are wanted at once."""

    def __init__(self) -> None:
        self._tasks: SimpleQueue[tuple[Work, Reply]] = SimpleQueue()
        self._count = 0
        self._lock = threading.Lock()

    def start(self, task: Work, reply: Reply, wanted: int) -> None:
        with self._lock:
            while self._count < wanted:
                self._count += 1
                threading.Thread(target=self._serve, name=f"nsfrc-{self._count}", daemon=True).start()
        self._tasks.put((task, reply))

    def _serve(self) -> None:
        while True:
            task, reply = self._tasks.get()
            try:
                task()
                reply.put(None)
            except BaseException as error:  # handed to the caller, who raises it
                reply.put(error)


_helpers: dict[int, Helpers] = {}


def in_threads(work: Sequence[Work]) -> None:
    """Run every item, the first in this thread; returns when all are done and raises what any raised."""
    reply: Reply = SimpleQueue()
    # By process: a forked child has its parent's queues, but none of its threads.
    helpers = _helpers.setdefault(os.getpid(), Helpers())
    for task in work[1:]:
        helpers.start(task, reply, len(work) - 1)
    try:
        work[0]()
    finally:
        errors = [reply.get() for _ in work[1:]]
    for error in errors:
        if error is not None:
            raise error
