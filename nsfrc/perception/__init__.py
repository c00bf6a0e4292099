"""Perception: images → object vectors. Models are found by name, from nsfrc, a package, or the user's own file."""

from __future__ import annotations

import importlib
import sys
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any, get_args

import torch

from nsfrc.contexts import undisturbed
from nsfrc.errors import NsfrcError, did_you_mean
from nsfrc.models.model_file import find_model, is_model_file
from nsfrc.models.perceptions import BUILT_IN, address, names
from nsfrc.perception.base import Fit, Perception
from nsfrc.perception.vectors import Crisp, Wishes
from nsfrc.perception.weights import checksum, load_into
from nsfrc.perception.weights_folder import kept_weights
from nsfrc.trust import refuse, search_path, would_run

__all__ = ["Perception", "Used", "adopt", "create", "names", "usable_device", "used_weights"]

DEVICES = ("cpu", "cuda", "mps", "xpu")  # kinds to suggest
BUILT_IN_MODULES = {address.partition(":")[0] for address in BUILT_IN.values()}


class Adapted(Perception):
    """A torch module that is not a `Perception` but has what is needed: `dimensions` and `size`."""

    def __init__(self, module: torch.nn.Module, objects: int) -> None:
        super().__init__()
        self.module = module
        self.objects = getattr(module, "objects", objects)
        self.dimensions, self.size = getattr(module, "dimensions", ()), getattr(module, "size", (0, 0))
        self.identity, self.fit = getattr(module, "identity", "unknown"), getattr(module, "fit", "letterbox")

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        found: torch.Tensor = self.module(images)
        return found

    def __getattr__(self, name: str) -> Any:
        """What else the module has is found here too."""
        try:
            return super().__getattr__(name)
        except AttributeError:
            if name == "module":  # which a copy does not have yet
                raise
            return getattr(self.module, name)


def create(
    name: str | type, objects: int, weights: Path | None = None, device: str = "cpu", beside: Path | None = None,
    trust: bool = False, asker: str | None = None, wishes: Wishes = Wishes(),  # noqa: B008 (it is frozen)
) -> Perception:
    """A perception model, ready for inference.

    name: one of `names()`, a model file such as best.onnx, or "module:Class" (modules in the current folder and in
    `beside` included) for any torch module whose constructor takes `objects` and that has `dimensions` and `size`; or
    such a class. weights: a safetensors file. beside: the folder of the program. trust: whether the module of
    "module:Class" may run. asker: the program that names it, for the message where it may not. wishes: what is said of
    a detector; crisp presence is the default of model files.
    """
    place = usable_device(device)
    if is_model_file(name):
        return present(_from_file(str(name), objects, weights, place, beside, trust, asker, wishes), wishes)
    if isinstance(name, str):
        found = _find(name, beside, trust, asker)
    else:
        found, name = name, name.__qualname__
    model = _build(name, found, objects, weights)
    _check(name, model, objects)
    if model.objects != objects:
        raise NsfrcError(f"perception {name!r} finds {model.objects} objects; the program asks for {objects}")
    if model.identity == "unknown":
        model.identity = f"{name}:{checksum(model.state_dict())}"
    model = model.eval().to(place)
    _try_out(name, model, place)
    return present(model, wishes, by_default=False)


def present(model: Perception, wishes: Wishes, by_default: bool = True) -> Perception:
    """A perception whose objects are there with value 1, if that is wished for. by_default: where nothing is said."""
    wanted = by_default if wishes.crisp is None else wishes.crisp
    return Crisp(model, wishes.least).eval() if wanted and not isinstance(model, Crisp) else model


def _from_file(
    name: str, objects: int, weights: Path | None, device: str, beside: Path | None, trust: bool, asker: str | None,
    wishes: Wishes,
) -> Perception:
    from nsfrc.perception.detector import open_detector

    path = find_model(name, beside)
    if weights is not None:
        raise NsfrcError(f"{path} has its weights in it: leave out --weights")
    return open_detector(path, objects, wishes, device, trust, asker)


def adopt(module: torch.nn.Module, objects: int, device: str = "cpu") -> Perception:
    """A module that is already built, as a perception, moved to a device and tried out; its mode stays what it is.

    It may find more objects than are asked for. One that is not a `Perception` is wrapped, as `create` does.
    """
    name = type(module).__qualname__
    if not isinstance(module, torch.nn.Module):
        raise NsfrcError(f"perception is a name, \"module:Class\", or a torch.nn.Module, not a {name}")
    model = module if isinstance(module, Perception) else Adapted(module, objects)
    model.training = module.training
    _check(name, model, objects)
    if model.objects < objects:
        raise NsfrcError(f"the program has {objects} objects, but perception {name!r} finds {model.objects}")
    place = usable_device(device)
    model = model.to(place)
    with undisturbed(model):
        _try_out(name, model, place)
    return model


@dataclass(frozen=True)
class Used:
    """The weights of a perception where none are named. state: shipped, imported, missing, none or unusable."""

    model: str
    state: str
    path: Path | None


def used_weights() -> list[Used]:
    """What each of `names()` uses where it is given no weights."""
    return [_used(name) for name in names()]


def _used(name: str) -> Used:
    try:
        cls = _find(name)
    except NsfrcError:  # a package of somebody else's that cannot be imported
        return Used(name, "unusable", None)
    path = cls.usual_weights() if isinstance(cls, type) and issubclass(cls, Perception) else None
    if path is None:
        return Used(name, "none", None)
    state = "imported" if path == kept_weights(name) else "shipped"
    return Used(name, state if path.is_file() else "missing", path)


def usable_device(device: str) -> str:
    """The device, if this machine has it; NsfrcError otherwise. "auto" is cuda where there is one, else cpu."""
    if device == "auto":
        return "cuda" if torch.cuda.is_available() and find_spec("triton") is not None else "cpu"
    remedy = 'use --device cpu, in Python device="cpu"'
    try:
        torch.device(device)
    except RuntimeError:
        hint = "did you mean cuda?" if str(device).lower().startswith("gpu") else did_you_mean(str(device), DEVICES)
        raise NsfrcError(f"device {device!r} cannot be used here (there is no such kind): {hint or remedy}") from None
    try:
        torch.empty(1, device=device)
    except (RuntimeError, AssertionError) as error:
        reason = str(error).splitlines()[0]
        raise NsfrcError(f"device {device!r} cannot be used here ({reason}): {remedy}") from None
    return device


def _find(name: str, beside: Path | None = None, trust: bool = False, asker: str | None = None) -> Any:
    found = address(name)
    return _users(name, beside, trust, asker) if found is None else _imported(name, found)


def _users(name: str, beside: Path | None, trust: bool, asker: str | None) -> Any:
    """What "module:Class" stands for, looked for in the current folder and the program's too, if its code may run."""
    module, _, attribute = name.partition(":")
    if not module or not attribute:
        raise NsfrcError(f"perception {name!r}: write it as module:Class, such as mymodel:MyPerception")
    if not trust:
        asks = f"the perception {name}" if asker is None else f"the perception {name}, which {asker} names,"
        raise refuse(asks, would_run(module, beside))
    folders = search_path(beside)
    sys.path += [folder for folder in folders if folder not in sys.path]  # last, so that no file hides a library
    return _imported(name, name, f"it was looked for in {' and '.join(folders)}, and among installed packages")


def _imported(name: str, address: str, where: str = "is it installed?") -> Any:
    """The class at "module:Class". where: what to say if there is no such module."""
    module, _, attribute = address.partition(":")
    try:
        found = importlib.import_module(module)
    except NsfrcError:
        raise
    except (Exception, SystemExit) as error:  # whatever a user's module raises while it is imported
        reason = f"{type(error).__name__}: {error}"
        if isinstance(error, ModuleNotFoundError) and error.name == module:
            reason += f"; {where}"
        raise NsfrcError(f"perception {name!r}: cannot import {module}: {reason}") from error
    if not hasattr(found, attribute):
        classes = [k for k, v in vars(found).items() if isinstance(v, type) and issubclass(v, torch.nn.Module)]
        hint = did_you_mean(attribute, classes) or (f"there are {', '.join(classes)}" if classes else "it has none")
        raise NsfrcError(f"perception {name!r}: {module} has no class {attribute}: {hint}")
    return getattr(found, attribute)


def _build(name: str, cls: Any, objects: int, weights: Path | None) -> Perception:
    try:
        if isinstance(cls, type) and issubclass(cls, Perception):
            return cls.build(objects, weights)
        module = cls(objects=objects)
    except NsfrcError:
        raise
    except Exception as error:  # whatever a user's constructor raises
        raise NsfrcError(f"perception {name!r} cannot be built: {type(error).__name__}: {error}; "
                         f"its constructor is called with only objects={objects}") from error
    if not isinstance(module, torch.nn.Module):
        raise NsfrcError(f"perception {name!r} is a {type(module).__name__}; it must be a torch.nn.Module")
    if weights is not None:
        load_into(module, weights)
    return Adapted(module, objects)


def _check(name: str, model: Perception, objects: int) -> None:
    """That a model says what the rest of nsfrc needs to know about it."""
    dimensions, size = getattr(model, "dimensions", None), getattr(model, "size", None)
    if not isinstance(dimensions, tuple | list) or not dimensions or not all(isinstance(d, str) for d in dimensions):
        raise NsfrcError(f"perception {name!r} needs `dimensions`, the names of the entries of an object vector, "
                         f"such as ('x1', 'y1', 'x2', 'y2', 'red', 'objectness'), not {dimensions!r}")
    if len(set(dimensions)) < len(dimensions):
        raise NsfrcError(f"perception {name!r} has a name twice in its `dimensions`: {', '.join(dimensions)}")
    if not isinstance(size, tuple | list) or len(size) != 2 or not all(isinstance(s, int) and s > 0 for s in size):
        raise NsfrcError(f"perception {name!r} needs `size`, the (height, width) of its images, not {size!r}")
    if model.fit not in get_args(Fit):
        raise NsfrcError(f"perception {name!r} needs `fit`, one of {', '.join(get_args(Fit))}, not {model.fit!r}")
    if not isinstance(finds := getattr(model, "objects", objects), int):
        raise NsfrcError(f"perception {name!r} needs `objects`, how many it finds, not {finds!r}")
    model.dimensions, model.size, model.objects = tuple(dimensions), (size[0], size[1]), finds


def _try_out(name: str, model: Perception, device: str) -> None:
    """That two grey images give [2, E, D]: better said now than in the middle of a folder."""
    if type(model).__module__ in BUILT_IN_MODULES or not getattr(model, "looks", True):
        return
    wanted = [2, model.objects, len(model.dimensions)]
    kind = next((p.dtype for p in model.parameters() if p.is_floating_point()), torch.float32)
    try:
        with torch.no_grad():
            found = model(torch.full((2, 3, *model.size), 0.5, device=device, dtype=kind))
    except Exception as error:  # whatever a user's model raises
        raise NsfrcError(f"perception {name!r} fails on two images of size {model.size}: "
                         f"{type(error).__name__}: {error}") from error
    if not isinstance(found, torch.Tensor) or list(found.shape) != wanted:
        shape = list(found.shape) if isinstance(found, torch.Tensor) else type(found).__name__
        raise NsfrcError(f"perception {name!r} gives {shape} for two images; it must give {wanted}: "
                         f"images, objects, dimensions")
