"""One run at a time for a file: a lock that the system lets go of when its process ends, however that ends."""

from __future__ import annotations

import contextlib
import json
import os
import socket
import time
from pathlib import Path

from nsfrc.errors import NsfrcError

try:
    import fcntl
except ImportError:  # a system without such locks
    fcntl = None  # type: ignore[assignment]


class Lock:
    """Holds `.NAME.lock` beside a file until `release`; raises NsfrcError that says who else holds it.

    What counts is the system's lock on that file and not that it is there: one left by a process that was killed is
    taken over. Where a file system has no locks nothing is held; whoever writes must look at the end what became of it.
    """

    def __init__(self, out: Path) -> None:
        self.path = out.with_name(f".{out.name}.lock")
        self._handle: int | None = None
        while self._handle is None:
            handle = os.open(self.path, os.O_RDWR | os.O_CREAT | getattr(os, "O_NOFOLLOW", 0), 0o666)
            try:
                self._take(handle, out)
            except BaseException:
                os.close(handle)
                raise
            if self._is_ours(handle):
                self._handle = handle
            else:  # it was removed by the one who held it before, between opening and locking
                os.close(handle)
        started = time.strftime("%Y-%m-%d %H:%M:%S")
        note = json.dumps({"process": os.getpid(), "machine": socket.gethostname(), "started": started})
        os.truncate(self._handle, 0)
        os.pwrite(self._handle, note.encode(), 0)

    def _take(self, handle: int, out: Path) -> None:
        if fcntl is None:
            return
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise NsfrcError(f"{out} is being written by another run ({_holder(handle)}): wait until it ends, "
                             f"or name another file with --out") from None
        except OSError:  # a file system without locks
            return

    def _is_ours(self, handle: int) -> bool:
        try:
            return os.path.samestat(os.fstat(handle), os.stat(self.path))
        except FileNotFoundError:
            return False

    def release(self) -> None:
        """Let go; the file is removed first, while nobody else can hold it."""
        if self._handle is not None:
            with contextlib.suppress(OSError):
                os.unlink(self.path)
            os.close(self._handle)
            self._handle = None


def _holder(handle: int) -> str:
    """Who holds a lock, in words."""
    try:
        note = json.loads(os.pread(handle, 4096, 0))
        return f"process {note['process']} on {note['machine']}, since {note['started']}"
    except (OSError, ValueError, KeyError, TypeError):  # it has not been written yet
        return "which has just started"
