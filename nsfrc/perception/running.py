"""What runs a model file: ONNX Runtime, or ultralytics for its own .pt files, which are pickles and so need trust."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import torch

from nsfrc.errors import NsfrcError
from nsfrc.models.model_file import Header, read_header, refuse_pickled
from nsfrc.models.names import ClassNames, class_names
from nsfrc.models.onnx_file import AGAIN

QUIET = 4  # the level of ONNX Runtime from which on it writes to standard error: nothing but the end of the world


class Runner(Protocol):
    """Runs a detector. names, size, stride, dynamic, told: see `models.model_file.Header`. digest: of its file."""

    path: Path
    digest: str
    names: ClassNames | None
    size: tuple[int, int] | None
    stride: int
    dynamic: bool
    told: dict[str, Any]
    shapes: tuple[tuple[int, ...], ...]  # that its outputs are declared with; empty where they are open

    def __call__(self, images: np.ndarray) -> Sequence[np.ndarray]:
        """Images [1, 3, H, W] with values 0 … 1 → what the model puts out."""


class OnnxRunner:
    """An ONNX file in ONNX Runtime; the file has been looked at before (`models.onnx_file`)."""

    def __init__(self, header: Header, device: str) -> None:
        self.path, self.digest, self.names = header.file.path, header.file.digest, header.names
        self.size, self.stride, self.dynamic, self.told = header.size, header.stride, header.dynamic, header.told
        only = header.file.inputs[0]
        self.input, self.kind = only.name, np.float16 if only.kind == "float16" else np.float32
        self.shapes = _declared(header)
        self.session = _session(header, device)

    def __call__(self, images: np.ndarray) -> Sequence[np.ndarray]:
        try:
            found = self.session.run(None, {self.input: np.ascontiguousarray(images, dtype=self.kind)})
        except Exception as error:  # ONNX Runtime has exceptions of its own, one for each kind of failure
            raise NsfrcError(f"{self.path} fails on an image of {images.shape[2]} × {images.shape[3]} "
                             f"({_one_line(error)}): {AGAIN}") from None
        if not all(isinstance(one, np.ndarray) and one.dtype.kind == "f" for one in found):
            return [np.asarray(one, dtype=np.float32) if isinstance(one, np.ndarray) and one.dtype.kind in "iub"
                    else one for one in found if isinstance(one, np.ndarray)]
        return [one.astype(np.float32, copy=False) for one in found]


def _declared(header: Header) -> tuple[tuple[int, ...], ...]:
    """The shapes of the outputs, if all of their sizes are numbers."""
    shapes = []
    for output in header.file.outputs:
        sizes = tuple(size for size in output.shape or () if isinstance(size, int))
        if not output.shape or len(sizes) < len(output.shape):
            return ()
        shapes.append(sizes)
    return tuple(shapes)


def _session(header: Header, device: str) -> Any:
    if find_spec("onnxruntime") is None:
        raise NsfrcError(f"{header.file.path} needs ONNX Runtime, which is not installed: pip install 'nsfrc[onnx]'")
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.log_severity_level = QUIET
    options.intra_op_num_threads = torch.get_num_threads()
    options.inter_op_num_threads = 1
    there = onnxruntime.get_available_providers()
    wanted = ["CUDAExecutionProvider"] if device.startswith("cuda") and "CUDAExecutionProvider" in there else []
    try:
        return onnxruntime.InferenceSession(header.file.data, options, providers=[*wanted, "CPUExecutionProvider"])
    except Exception as error:
        raise NsfrcError(f"{header.file.path} cannot be run ({_one_line(error)}): {AGAIN}") from None


def _one_line(error: Exception) -> str:
    return " ".join(str(error).split())[:300] or type(error).__name__


class PickledRunner:
    """A .pt file of ultralytics, which is a pickle: whoever made it could have put anything into it."""

    def __init__(self, path: Path, names: tuple[str, ...], size: tuple[int, int] | None) -> None:
        from nsfrc.perception.offline import load_ultralytics

        load_ultralytics()
        from ultralytics.nn.tasks import load_checkpoint

        try:
            self.digest = hashlib.sha256(path.read_bytes()).hexdigest()
            model, _ = load_checkpoint(path, device="cpu")
        except Exception as error:  # whatever unpickling raises
            raise NsfrcError(f"{path} cannot be loaded by ultralytics ({type(error).__name__}: {_one_line(error)})") \
                from None
        self.path, self.network = path, model.fuse(verbose=False).float().eval().requires_grad_(False)
        given = list(names) or list(getattr(model, "names", {}).values())
        self.names = class_names(given, str(path)) if given else None
        side = getattr(model, "args", {}).get("imgsz", 640) if isinstance(getattr(model, "args", {}), dict) else 640
        sides = (side, side) if isinstance(side, int) else tuple(side)
        self.size: tuple[int, int] | None = size or (int(sides[0]), int(sides[1]))
        self.stride = max(int(model.stride.max()), 32)
        head = model.model[-1]
        self.dynamic = type(head).__name__ != "RTDETRDecoder"
        self.told: dict[str, Any] = {"task": getattr(model, "task", "detect"), "head": type(head).__name__,
                                     "end2end": bool(getattr(model, "end2end", False))}
        self.shapes: tuple[tuple[int, ...], ...] = ()

    @torch.no_grad()
    def __call__(self, images: np.ndarray) -> Sequence[np.ndarray]:
        found = self.network(torch.from_numpy(np.ascontiguousarray(images, dtype=np.float32)))
        return [(found[0] if isinstance(found, list | tuple) else found).float().numpy()]


def runner(
    path: Path, device: str, trust: bool, asker: str | None, names: tuple[str, ...], size: tuple[int, int] | None
) -> Runner:
    """What runs a model file. names, size: what the program says of it. Raises NsfrcError."""
    if path.suffix.lower() == ".onnx":
        return OnnxRunner(read_header(path, names, size), device)
    if not trust:
        raise refuse_pickled(path, asker)
    return PickledRunner(path, names, size)
