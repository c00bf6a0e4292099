"""A detector in a file: its class names, the size of its images and what its output may mean, all from its header."""

from __future__ import annotations

import ast
from dataclasses import field
from pathlib import Path
from typing import Any

from nsfrc.errors import NsfrcError
from nsfrc.models import names as naming
from nsfrc.models.names import ClassNames
from nsfrc.models.onnx_file import OnnxFile, read_onnx
from nsfrc.records import dataclass

ONNX, PICKLED = ".onnx", (".pt", ".pth")
SMALLEST, LARGEST = 16, 8192  # pixels of a side
USUAL_STRIDE = 32


@dataclass(frozen=True)
class Header:
    """What is known of an ONNX detector before it runs.

    names: None where neither the file nor anything beside it has any. size: (height, width), None where it is open.
    dynamic: whether it takes images of other sizes. told: its metadata as Python values.
    """

    file: OnnxFile
    names: ClassNames | None
    size: tuple[int, int] | None
    stride: int
    dynamic: bool
    told: dict[str, Any] = field(repr=False)


def is_model_file(name: object) -> bool:
    """Whether a perception is named by a model file."""
    return isinstance(name, str) and name.lower().endswith((ONNX, *PICKLED))


def is_pickled(path: Path) -> bool:
    return path.suffix.lower() in PICKLED


def find_model(name: str, folder: Path | None) -> Path:
    """The model file of this name: as it is, or in the folder of the program that names it."""
    path = Path(name)
    if folder is not None and not path.is_absolute() and not path.exists():
        path = folder / path
    if path.exists():
        return path
    where = "" if folder is None or Path(name).is_absolute() else " here, nor beside the program"
    raise NsfrcError(f"there is no model file {name}{where}")


def refuse_pickled(path: Path, asker: str | None = None) -> NsfrcError:
    """What to say of a .pt file that nobody allowed."""
    asks = f"the perception {path}" if asker is None else f"the perception {path}, which {asker} names,"
    return NsfrcError(f"{asks} is a pickle, which can run anything when it is loaded: export it with `yolo export "
                      f"model={path} format=onnx` and use {path.with_suffix(ONNX)}; or, if you trust the file, allow "
                      f"it with --trust (in Python trust=True)")


def read_header(path: Path, names: tuple[str, ...] = (), size: tuple[int, int] | None = None) -> Header:
    """The header of an ONNX detector. names, size: what the program says of them, which goes first."""
    file = read_onnx(path)
    told = {key: _value(text) for key, text in file.metadata.items()}
    image = _image_input(file)
    height, width = (side if isinstance(side, int) and side > 0 else None for side in image[2:])
    dynamic = height is None or width is None
    fixed = None if height is None or width is None else (height, width)
    return Header(file, _names(file, told, names), _size(path, fixed, size, told.get("imgsz")),
                  _stride(told.get("stride")), dynamic and isinstance(_first_size(file), str), told)


def _first_size(file: OnnxFile) -> object:
    """How many images come out at once; ultralytics takes a name there for a sign of open sizes."""
    shape = file.outputs[0].shape
    return shape[0] if shape else None


def _value(text: str) -> Any:
    if len(text) > naming.LONGEST:
        return text
    try:
        return ast.literal_eval(text)
    except (ValueError, SyntaxError, TypeError, RecursionError, MemoryError):
        return text


def _image_input(file: OnnxFile) -> tuple[int | str, ...]:
    shown = ", ".join(map(str, file.inputs))
    if len(file.inputs) > 1:
        raise NsfrcError(f"{file.path} takes {len(file.inputs)} inputs ({shown}); a detector that nsfrc knows takes "
                         f"one, images [B, 3, H, W]: {how_to_write()}")
    only = file.inputs[0]
    if only.shape is None or len(only.shape) != 4 or (isinstance(only.shape[1], int) and only.shape[1] != 3):
        raise NsfrcError(f"{file.path} takes {shown}; a detector that nsfrc knows takes images [B, 3, H, W]: "
                         f"{how_to_write()}")
    if only.kind not in ("float", "float16"):
        raise NsfrcError(f"{file.path} takes images of {only.kind}; a detector that nsfrc knows takes floating point: "
                         f"{how_to_write()}")
    return only.shape


def how_to_write() -> str:
    return 'write a class for it (docs/perception.md, "Bringing your own")'


def _names(file: OnnxFile, told: dict[str, Any], own: tuple[str, ...]) -> ClassNames | None:
    if own:
        return naming.class_names(list(own), "the program")
    for key in ("names", "classes", "class_names", "labels", "character"):
        if isinstance(given := told.get(key), dict | list | tuple):
            return naming.class_names(given, f"{file.path}, metadata {key}")
        if isinstance(given, str) and (found := naming.from_text(given, f"{file.path}, metadata {key}")):
            return found
    return naming.beside(file.path)


def _size(path: Path, fixed: tuple[int, int] | None, own: tuple[int, int] | None, told: Any) -> tuple[int, int] | None:
    if isinstance(told, int):
        told = (told, told)
    sides = tuple(told) if isinstance(told, list | tuple) and len(told) == 2 else None
    if fixed is not None and own is not None and own != fixed:
        raise NsfrcError(f"{path} takes images of {fixed[0]} × {fixed[1]} alone; the program says size "
                         f"{own[0]} × {own[1]}")
    size = fixed or own or sides
    if size is None:
        return None
    if not all(isinstance(side, int) and SMALLEST <= side <= LARGEST for side in size):
        raise NsfrcError(f"{path} says its images are {size[0]} × {size[1]}; sides must be from {SMALLEST} to "
                         f"{LARGEST}")
    return size


def _stride(told: Any) -> int:
    return told if isinstance(told, int) and 1 <= told <= 512 and told % 2 == 0 else USUAL_STRIDE
