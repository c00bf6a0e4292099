"""Files here and in buckets, by one interface: pyarrow's file systems. A place can be handed to another process."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from nsfrc.errors import NsfrcError
from nsfrc.files import write_whole
from nsfrc.inference.given import Elsewhere
from nsfrc.ray.extra import need_arrow

URL = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+://")
LARGEST = 1 << 30  # bytes of a picture
EMPTY = "the file is empty; get a fresh copy"
OPEN = 8  # files that a process holds open


def is_url(text: object) -> bool:
    """Whether this is an address such as s3://bucket/folder, and not a path."""
    return isinstance(text, str) and URL.match(text) is not None


@dataclass(frozen=True)
class Place:
    """A file or folder: `root` is what the user named, an address or a path, and `path` what the file system calls it.

    The root says which file system that is.
    """

    root: str
    path: str

    @classmethod
    def of(cls, given: str | Path) -> Place:
        """What a user named. Raises NsfrcError for an address that nothing reads."""
        root = given if isinstance(given, str) and is_url(given) else str(Path(given).absolute())
        return cls(root, _opened(root)[1])

    @property
    def called(self) -> str:
        """For people to read: the address or the path."""
        if not is_url(self.root):
            return self.path
        return f"{self.root.partition('://')[0]}://{self.path}"

    @property
    def name(self) -> str:
        return self.path.rstrip("/").rpartition("/")[2]

    @property
    def local(self) -> Path | None:
        """Its path, where it is on a disk."""
        import pyarrow.fs

        return Path(self.path) if isinstance(self.filesystem, pyarrow.fs.LocalFileSystem) else None

    @property
    def filesystem(self) -> Any:
        return _opened(self.root)[0]

    def below(self, name: str) -> Place:
        return Place(self.root, f"{self.path.rstrip('/')}/{name}")

    def beside(self, name: str) -> Place:
        return Place(self.root, f"{self.path.rpartition('/')[0]}/{name}")

    def info(self) -> Any:
        with told(f"cannot read {self.called}"):
            return self.filesystem.get_file_info(self.path)

    @property
    def is_folder(self) -> bool:
        from pyarrow.fs import FileType

        return self.info().type == FileType.Directory

    @property
    def is_file(self) -> bool:
        from pyarrow.fs import FileType

        return self.info().type == FileType.File

    def files(self, recursive: bool = False) -> list[tuple[str, int]]:
        """The files in a folder, their paths below it and their sizes; nothing where there is no folder."""
        from pyarrow.fs import FileSelector, FileType

        base = self.path.rstrip("/")
        with told(f"cannot list {self.called}"):
            found = self.filesystem.get_file_info(FileSelector(base, allow_not_found=True, recursive=recursive))
        return [(one.path[len(base) + 1 :], int(one.size or 0)) for one in found if one.type == FileType.File]

    def open(self) -> Any:
        """A file to read at random, pyarrow's. Raises what pyarrow raises."""
        return self.filesystem.open_input_file(self.path)

    def read(self) -> bytes:
        with told(f"cannot read {self.called}"), self.filesystem.open_input_file(self.path) as file:
            content: bytes = file.read()
            return content

    def write(self, data: bytes) -> None:
        """Write a file whole or not at all: on a disk under another name first; a bucket shows what is complete."""
        if (path := self.local) is not None:
            write_whole(path, data)
            return
        with told(f"cannot write {self.called}"), self.filesystem.open_output_stream(self.path) as file:
            file.write(data)

    def make_folder(self) -> None:
        with told(f"cannot write {self.called}"):
            self.filesystem.create_dir(self.path, recursive=True)

    def remove(self) -> None:
        with told(f"cannot remove {self.called}"):
            self.filesystem.delete_file(self.path)


@contextmanager
def told(what: str) -> Iterator[None]:
    """What pyarrow raises as an NsfrcError: its first line, without the stack that it may have."""
    import pyarrow

    try:
        yield
    except (OSError, pyarrow.ArrowException) as error:
        raise NsfrcError(f"{what}: {reason_of(error)}") from None


def reason_of(error: BaseException) -> str:
    """The first line of an exception of pyarrow, or what the system says."""
    number = getattr(error, "errno", None)
    if isinstance(error, OSError) and number:
        return os.strerror(number)
    lines = str(error).strip().splitlines() or [type(error).__name__]
    found = re.search(r"\[errno (\d+)\]", lines[0])
    return os.strerror(int(found[1])) if found else lines[0][:300]


@lru_cache(maxsize=64)
def _opened(root: str) -> tuple[Any, str]:
    """The file system of an address or an absolute path, and the path in it."""
    arrow = need_arrow()
    if not is_url(root):
        return arrow.fs.LocalFileSystem(), root
    try:
        found: tuple[Any, str] = arrow.fs.FileSystem.from_uri(root)
    except (OSError, arrow.ArrowException, ImportError) as error:
        raise NsfrcError(f"cannot open {root}: {reason_of(error)}; addresses are s3://BUCKET/FOLDER, gs://, file:/// "
                         f"and others that pyarrow knows") from None
    return found


@lru_cache(maxsize=OPEN)
def _handle(place: Place) -> Any:
    return place.open()


@dataclass(frozen=True)
class Stored(Elsewhere):
    """An image in a file that is read through pyarrow: all of it, or in a tar the bytes from `offset` on.

    size: None where nobody has looked yet.
    """

    place: Place
    size: int | None
    offset: int | None = None

    def content(self) -> bytes:
        with told("cannot be read"), self.place.open() if self.offset is None else nullcontext() as own:
            file = _handle(self.place) if own is None else own
            size = file.size() if self.size is None else self.size
            if not size:
                raise NsfrcError(EMPTY)
            if size > LARGEST:
                raise NsfrcError("larger than 1 GB; make it smaller first")
            data: bytes = file.read_at(size, self.offset or 0)
        if len(data) < size:
            raise NsfrcError(f"cut off: {self.place.called} ends before it does; get a fresh copy")
        return data
