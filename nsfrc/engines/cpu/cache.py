"""Where compiled kernels are kept between runs.

Numba looks at the file of a cached function only, and the kernels call each other across files. The
folder is therefore named after the content of all of them: a change of any starts an empty one.
"""

from __future__ import annotations

import hashlib
import os
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numba
from numba.core import config, event


class Telling(event.Listener):  # type: ignore[misc]
    """Says on a terminal, once in a process, why nothing happens for a while."""

    def __init__(self) -> None:
        self.said = False

    def on_start(self, event: Any) -> None:
        ours = event.data["dispatcher"].__module__.startswith("nsfrc.")
        if ours and not self.said and sys.stderr is not None and sys.stderr.isatty():
            self.said = True
            print("compiling kernels for this machine, once: up to half a minute", file=sys.stderr, flush=True)

    def on_end(self, event: Any) -> None:
        """Of no interest."""


event.register("numba:compile", Telling())


@contextmanager
def kernel_cache() -> Iterator[None]:
    """Functions that are declared with cache=True inside are cached in that folder."""
    before = config.CACHE_DIR  # type: ignore[attr-defined]
    config.CACHE_DIR = str(_folder(before))  # type: ignore[attr-defined]
    try:
        yield
    finally:
        config.CACHE_DIR = before  # type: ignore[attr-defined]


def _folder(chosen: str) -> Path:
    """Beside the sources where that can be written, as Python does; else with the user's caches."""
    here = Path(__file__).resolve().parent
    digest = hashlib.blake2b(numba.__version__.encode(), digest_size=8)
    for source in sorted(here.glob("*.py")):
        digest.update(source.read_bytes())
    name = f"kernels-{digest.hexdigest()}"
    home = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    for parent in [Path(chosen)] if chosen else [here / "__pycache__", home / "nsfrc"]:
        if _writable(parent / name):
            return parent / name
    return Path(tempfile.gettempdir()) / f"nsfrc-{os.getuid() if hasattr(os, 'getuid') else 'cache'}" / name


def _writable(folder: Path) -> bool:
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            return True
    except OSError:
        return False
