"""A page of `nsfrc play` and a browser that shows it, for tests."""

from __future__ import annotations

import os
import queue
import shutil
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from urllib.request import urlopen

CHROMIUM = next((found for name in ("chromium", "chromium-browser", "google-chrome") if (found := shutil.which(name))),
                None)
COMMAND = [sys.executable, "-c", "from nsfrc.cli import main; main()", "play", "--port", "0", "--no-browser"]
WAIT = 180  # seconds, on a loaded machine


@contextmanager
def served(folder: Path, *arguments: str) -> Iterator[str]:
    """The address of a page that runs in a process of its own, in a folder."""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    environment.pop("PYTEST_CURRENT_TEST", None)  # nicegui behaves otherwise in tests
    with open(folder / "errors.txt", "w+") as errors:
        process = subprocess.Popen([*COMMAND, *arguments], cwd=folder, env=environment, stdout=subprocess.PIPE,
                                   stderr=errors, text=True)
        try:
            yield _ready(process, folder)
        finally:
            process.terminate()
            try:
                process.wait(15)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
            assert process.stdout is not None
            process.stdout.close()


def _ready(process: subprocess.Popen[str], folder: Path) -> str:
    lines: queue.Queue[str] = queue.Queue()
    assert process.stdout is not None
    threading.Thread(target=lambda out=process.stdout: lines.put(out.readline()), daemon=True).start()
    line = lines.get(timeout=WAIT)
    assert line.startswith("http://"), (folder / "errors.txt").read_text()
    address = line.split()[0]
    for _ in range(10 * WAIT):
        with suppress(OSError), urlopen(address, timeout=WAIT):
            return address
        assert process.poll() is None, (folder / "errors.txt").read_text()
        threading.Event().wait(0.1)
    raise AssertionError(f"{address} does not answer")
