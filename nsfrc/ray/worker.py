"""What a worker does: it holds the pipeline, and answers for one block after the other."""

from __future__ import annotations

import hashlib
import json
import os
import pickle
import sys
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from nsfrc import __version__
from nsfrc.errors import NsfrcError
from nsfrc.ray.extra import need_arrow
from nsfrc.ray.places import Place
from nsfrc.ray.tables import Form, as_line

if TYPE_CHECKING:
    from nsfrc.inference.predictor import Predictor
    from nsfrc.ray.sources import Block


@dataclass(frozen=True)
class Duty:
    """How a worker works. threads: for torch. readers: threads that read images ahead. device: cpu or cuda.

    folders: where the user's own modules are, see `folders_of`.
    """

    threads: int = 1
    readers: int = 0
    device: str = "cpu"
    batch_size: int = 32
    folders: tuple[str, ...] = ()
    version: str = __version__


def folders_of(predictor: Predictor) -> tuple[str, ...]:
    """The folders of modules that the user trusts and that are not installed: another process must look there too."""
    functions = [getattr(part, "function", None) for part in predictor.pipe.facts.modules()]
    used = {type(part).__module__ for part in predictor.pipe.modules()}
    used |= {getattr(one, "__module__", None) or "" for one in functions if one is not None}
    found = set()
    for name in {one.partition(".")[0] for one in used}:
        file = getattr(sys.modules.get(name), "__file__", None)
        if file is not None and not Path(file).is_relative_to(sys.prefix) and name != "nsfrc":
            folder = Path(file).absolute().parent
            found.add(str(folder.parent if Path(file).name == "__init__.py" else folder))
    return tuple(sorted(found))


def settle(duty: Duty) -> None:
    """Keep to the threads that this worker has, before anything starts more: workers must not fight for cores."""
    if duty.version != __version__:
        raise NsfrcError(f"this node has nsfrc {__version__}, and the run was started with {duty.version}: install the "
                         f"same version on all nodes")
    for name in ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMBA_NUM_THREADS"):
        os.environ[name] = str(duty.threads)
    import cv2
    import torch

    torch.set_num_threads(duty.threads)
    cv2.setNumThreads(0)


def restored(content: bytes, duty: Duty) -> Predictor:
    """The predictor that a driver sent, which is one of the same user; plug-ins are loaded with it."""
    settle(duty)
    sys.path += [folder for folder in duty.folders if folder not in sys.path]
    try:
        predictor: Predictor = pickle.loads(content)
    except ModuleNotFoundError as error:
        raise NsfrcError(f"a worker cannot import {error.name}: install it on all nodes, or put it into a folder that "
                         f"all of them share") from None
    predictor.pipe.to(duty.device)
    return predictor


class Answerer:
    """Answers for blocks and writes their parts; Ray keeps one in every worker."""

    def __init__(self, predictor: bytes, duty: Duty, form: Form, dest: Place) -> None:
        self.content, self.duty, self.form, self.dest = predictor, duty, form, dest
        self.predictor: Predictor | None = None

    def __call__(self, batch: Any) -> Any:
        """blocks → what became of them, both as columns of an Arrow table; see `told`."""
        arrow = need_arrow()
        done = [self._told(content.as_py()) for content in batch.column("content")]
        return arrow.Table.from_pylist(done, schema=_schema())

    def _told(self, content: bytes) -> dict[str, Any]:
        block: Block = pickle.loads(content)
        try:
            if self.predictor is None:
                self.predictor = restored(self.content, self.duty)
            return self._answered(block)
        except NsfrcError as error:  # a message for the user, which Ray would wrap
            return {"block": block.number, "failure": str(error)}

    def _answered(self, block: Block) -> dict[str, Any]:
        from nsfrc.inference.images import quietly
        from nsfrc.inference.stream import Reading, stream
        from nsfrc.ray.dest import part_name

        assert self.predictor is not None
        predictor = self.predictor if block.known is None else replace(self.predictor, known=block.known)
        with quietly():
            reading = Reading(self.duty.batch_size, self.duty.readers)
            pieces: list[Any] = []
            lines: list[str] = []
            for rows in stream(predictor, block, reading):
                pieces.append(self.form.piece(rows))
                lines += map(as_line, rows)
        data = self.form.encode(pieces)
        self.dest.below(part_name(block.number, self.form.kind)).write(data)
        return {"block": block.number, "rows": len(lines), "bytes": len(data),
                "sha256": hashlib.sha256(data).hexdigest(), "lines": json.dumps(lines)}


def _schema() -> Any:
    """A driver hears of a block's rows what it shows and counts, or why there are none."""
    arrow = need_arrow()
    whole, text = arrow.int64(), arrow.string()
    return arrow.schema([("block", whole), ("rows", whole), ("bytes", whole), ("sha256", text),
                         ("lines", arrow.large_string()), ("failure", text)])
