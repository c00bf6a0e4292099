"""Where compiled kernels are kept between runs.

Numba looks at the file of a cached function only, and kernels call each other across files. A folder is therefore named
after the content of all of them: a change of any starts an empty one.
"""

from __future__ import annotations

import hashlib
import os
import stat
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent


@contextmanager
def kernel_cache() -> Iterator[None]:
    """Functions that are declared with numba's cache=True inside are cached in a folder of ours."""
    import numba
    from numba.core import config

    _tell_of_numba()
    before = config.CACHE_DIR  # type: ignore[attr-defined]
    sources = [source.read_bytes() for source in sorted(HERE.glob("*.py"))]
    config.CACHE_DIR = str(folder(numba.__version__.encode(), *sources))  # type: ignore[attr-defined]
    try:
        yield
    finally:
        config.CACHE_DIR = before  # type: ignore[attr-defined]


def folder(*content: bytes) -> Path:
    """The folder of kernels that are made of this: beside the sources where that can be written, as Python does; else
    with the user's caches. NUMBA_CACHE_DIR, where it is set, is the place for all of them.
    """
    name = f"kernels-{digest(*content)}"
    chosen = os.environ.get("NUMBA_CACHE_DIR", "")
    home = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    for parent in [Path(chosen)] if chosen else [HERE / "__pycache__", home / "nsfrc"]:
        if _writable(parent / name):
            return parent / name
    return _temporary() / name


@cache
def _temporary() -> Path:
    """A folder that only this user writes: what is kept there is run."""
    uid = os.getuid() if hasattr(os, "getuid") else None
    place = Path(tempfile.gettempdir()) / f"nsfrc-{'cache' if uid is None else uid}"
    with suppress(OSError):
        place.mkdir(mode=0o700, exist_ok=True)
        found = place.lstat()
        if uid is None or (stat.S_ISDIR(found.st_mode) and found.st_uid == uid and not found.st_mode & 0o022):
            return place
    return Path(tempfile.mkdtemp(prefix="nsfrc-"))


def digest(*content: bytes) -> str:
    found = hashlib.blake2b(digest_size=8)
    for part in content:
        found.update(part)
    return found.hexdigest()


def _writable(place: Path) -> bool:
    try:
        place.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=place):
            return True
    except OSError:
        return False


_said: set[str] = set()


def tell(what: str) -> None:
    """Say on a terminal, once in a process, why nothing happens for a while."""
    if what not in _said and sys.stderr is not None and sys.stderr.isatty():
        _said.add(what)
        print(what, file=sys.stderr, flush=True)


@cache
def _tell_of_numba() -> None:
    from numba.core import event

    class Telling(event.Listener):  # type: ignore[misc]
        def on_start(self, event: Any) -> None:
            if event.data["dispatcher"].__module__.startswith("nsfrc."):
                tell("compiling kernels for this machine, once: some seconds")

        def on_end(self, event: Any) -> None:
            """Of no interest."""

    event.register("numba:compile", Telling())
