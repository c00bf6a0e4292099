"""Kernels compiled once for all tests of a run, whichever process needs them first."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest
from triton import knobs


@pytest.fixture(scope="session", autouse=True)
def compiled_kernels(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """A cache of this run: an older one would hide that something no longer compiles."""
    base = tmp_path_factory.getbasetemp()
    with knobs.cache.scope():
        knobs.cache.dir = str((base.parent if "PYTEST_XDIST_WORKER" in os.environ else base) / "triton")
        yield
