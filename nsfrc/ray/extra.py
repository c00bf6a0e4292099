"""The libraries of the extra `ray`, imported when they are needed, with a remedy where they are missing."""

from __future__ import annotations

from types import ModuleType

from nsfrc.errors import NsfrcError

INSTALL = 'pip install "nsfrc[ray]"'


def need_ray() -> ModuleType:
    """The module `ray`, with `ray.data`."""
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
