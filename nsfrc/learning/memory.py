"""What perception has seen so far, on disk, so that an interrupted run goes on: arrays and text, nothing unpickled."""

from __future__ import annotations

import io
import json
import time
import zlib
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

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
    """Object vectors of the first images. mark: of the images and of what looks at them."""

    path: Path
    mark: str
    objects: list[torch.Tensor] = field(default_factory=list)
    written: float = 0.0

    @classmethod
    def open(cls, path: Path, mark: str, resume: bool) -> Memory:
        """What an earlier run left, if it is to go on."""
        if not resume:
            if path.exists():
                raise NsfrcError(f"{path} is left from an interrupted run: continue with --resume, or delete it to "
                                 f"start again")
            return cls(path, mark)
        if not path.exists():
            raise NsfrcError(f"there is nothing to resume: no file {path}; start without --resume")
        try:
            with np.load(path, allow_pickle=False) as kept:
                header, objects = json.loads(str(kept["header"])), np.asarray(kept["objects"], dtype=np.float32)
            fine = objects.ndim == 3 and isinstance(header, dict)
        except (OSError, ValueError, KeyError, EOFError, zlib.error):
            fine = False
        if not fine:
            raise NsfrcError(f"{path} is not a checkpoint of nsfrc learn: delete it and start without --resume")
        if header.get("mark") != mark:
            raise NsfrcError(f"{path} is from a run with other images, or another program or perception: delete it and "
                             f"start without --resume")
        return cls(path, mark, [torch.from_numpy(objects)])

    @property
    def seen(self) -> int:
        return sum(len(part) for part in self.objects)

    def add(self, objects: torch.Tensor, last: bool) -> None:
        """Some more images; now and then, and at the end, everything is written."""
        self.objects.append(objects.float())
        if last or time.monotonic() > self.written + SAVED:
            self.save()

    def save(self) -> None:
        buffer = io.BytesIO()
        np.savez(buffer, header=np.array(json.dumps({"mark": self.mark})), objects=torch.cat(self.objects).numpy())
        write_whole(self.path, buffer.getvalue())
        self.written = time.monotonic()

    def remove(self) -> None:
        self.path.unlink(missing_ok=True)


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
