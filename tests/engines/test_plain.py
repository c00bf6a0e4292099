"""The CPU engine's kernels without numba: see `plain_child`."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from tests.engines.plain_child import CASES

ROOT = Path(__file__).resolve().parents[2]


def test_kernels_as_plain_python_agree_with_the_reference() -> None:
    done = subprocess.run(
        [sys.executable, "-W", "error", "-m", "tests.engines.plain_child"], cwd=ROOT, text=True, capture_output=True,
        env={**os.environ, "NUMBA_DISABLE_JIT": "1"}, check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == list(CASES)
