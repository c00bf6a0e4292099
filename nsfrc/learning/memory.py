"""What a run has seen and found so far, on disk, so that it goes on when interrupted: arrays and text, no pickles."""

from __future__ import annotations

import io
import json
import time
import zipfile
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import torch

from nsfrc.errors import NsfrcError
from nsfrc.files import write_whole
from nsfrc.inference.folders import Item

SAVED = 5.0  # seconds after which it is written again


def memory_of(out: Path) -> Path:
    """Where a run that writes `out` keeps what it saw."""
    return out.with_name(out.name + ".checkpoint")


@dataclass(eq=False)
class Memory:
    """Object vectors of the first images, none with facts, and searches that are done.

    mark: of the examples and of what looks at them; search_mark: of what else decides what a search finds.
    """

    path: Path
    mark: str
    objects: list[torch.Tensor] = field(default_factory=list)
    search_mark: str = ""
    searches: dict[str, Any] = field(default_factory=dict)
    written: float = 0.0

    @classmethod
    def open(cls, path: Path, mark: str, resume: bool) -> Memory:
        """What an earlier run left, if it is to go on; an empty one where that was killed before it kept anything."""
        if not path.exists():
            return cls(path, mark)
        if not resume:
            raise NsfrcError(f"{path} is left from an interrupted run: continue with --resume, or delete it to "
                             f"start again")
        try:
            with np.load(path, allow_pickle=False) as kept:
                header, objects = json.loads(str(kept["header"])), np.asarray(kept["objects"], dtype=np.float32)
            its, search_mark, searches = header["mark"], header["search"], header["searches"]
            fine = objects.ndim == 3 and isinstance(search_mark, str) and isinstance(searches, dict)
        except (OSError, ValueError, KeyError, TypeError, EOFError, zlib.error, zipfile.BadZipFile):
            fine = False
        if not fine:
            raise _strange(path)
        if its != mark:
            raise NsfrcError(f"{path} is from a run with other examples, or another program or perception: delete it "
                             f"and start without --resume")
        return cls(path, mark, [torch.from_numpy(objects)] if len(objects) else [], search_mark, searches)

    @property
    def seen(self) -> int:
        return sum(len(part) for part in self.objects)

    def add(self, objects: torch.Tensor, last: bool) -> None:
        """Some more images; now and then, and at the end, everything is written."""
        self.objects.append(objects.float())
        if last or time.monotonic() > self.written + SAVED:
            self.save()

    def begin(self, mark: str) -> None:
        if mark != self.search_mark:
            self.search_mark, self.searches = mark, {}

    def recall(self, name: str) -> Mapping[str, Any] | None:
        found = self.searches.get(name)
        if found is not None and not isinstance(found, dict):
            raise _strange(self.path)
        return found

    def keep(self, name: str, searched: Mapping[str, Any]) -> None:
        self.searches[name] = searched
        self.save()

    def save(self) -> None:
        header = {"mark": self.mark, "search": self.search_mark, "searches": self.searches}
        objects = torch.cat(self.objects).numpy() if self.objects else np.zeros((0, 0, 0), dtype=np.float32)
        buffer = io.BytesIO()
        np.savez(buffer, header=np.array(json.dumps(header)), objects=objects)
        write_whole(self.path, buffer.getvalue())
        self.written = time.monotonic()

    def remove(self) -> None:
        self.path.unlink(missing_ok=True)


def _strange(path: Path) -> NsfrcError:
    return NsfrcError(f"{path} is not a checkpoint of nsfrc learn: delete it and start without --resume")


def mark_of(items: Sequence[Item], *others: str) -> str:
    """A checksum of images and of whatever else decides what is seen."""
    code = zlib.crc32("\n".join(others).encode())
    for item in items:
        code = zlib.crc32(item.name.encode("utf-8", "surrogateescape"), code)
        try:
            code = zlib.crc32(item.path.read_bytes(), code)
        except OSError:
            continue
    return f"{code:08x}"
