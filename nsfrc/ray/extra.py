"""The libraries of the extra `ray`, imported when they are needed, with a remedy where they are missing."""

from __future__ import annotations

import os
from types import ModuleType

from nsfrc.errors import NsfrcError

INSTALL = 'pip install "nsfrc[ray]"'


def need_ray(local: bool = False) -> ModuleType:
    """The module `ray`, with `ray.data`. local: for this machine alone, which it then keeps to."""
    if local:  # both are looked at when it is imported
        os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
        os.environ.setdefault("RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER", "0")  # the loopback address
    try:
        import ray
        import ray.data
    except ImportError as error:
        raise NsfrcError(f"--ray needs Ray Data, which is not installed ({error}): {INSTALL}") from None
    return ray


def need_arrow() -> ModuleType:
    """The module `pyarrow`, with its file systems and Parquet."""
    try:
        import pyarrow
        import pyarrow.fs
        import pyarrow.parquet
    except ImportError as error:
        raise NsfrcError(f"Parquet and addresses such as s3:// are read by pyarrow, which is not installed ({error}): "
                         f"{INSTALL}") from None
    return pyarrow
