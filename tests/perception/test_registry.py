"""Perception by name: what comes with nsfrc, other packages, and a user's own file."""

from __future__ import annotations

import sys
from importlib.metadata import EntryPoint
from pathlib import Path

import pytest
import torch
from safetensors.torch import save_file

from nsfrc import perception
from nsfrc.errors import NsfrcError
from nsfrc.models import perceptions
from tests.perception.support import random_yolo, stored

OWN = """
import torch
from nsfrc.perception.base import Perception

class Plain(torch.nn.Module):
    dimensions = ["x", "y", "objectness"]
    size = (8, 16)
    def __init__(self, objects):
        super().__init__()
        self.objects = objects
        self.scale = torch.nn.Parameter(torch.ones(3))
    def forward(self, images):
        return images.mean((1, 2, 3))[:, None, None] * self.scale.expand(self.objects, 3)

class Proper(Perception):
    def __init__(self, objects):
        super().__init__()
        self.objects, self.size, self.dimensions = objects, (8, 8), ("x", "objectness")
        self.scale = torch.nn.Parameter(torch.ones(2))
    def forward(self, images):
        return images.mean((1, 2, 3))[:, None, None] * self.scale.expand(self.objects, 2)

class Nameless(Plain):
    dimensions = ()
class Twice(Plain):
    dimensions = ("x", "x", "y")
class Sizeless(Plain):
    size = 8
class Fixed(Plain):
    def __init__(self, objects):
        super().__init__(9)
class Flat(Plain):
    def forward(self, images):
        return super().forward(images)[:, 0]
class Broken(Plain):
    def forward(self, images):
        return images @ self.scale
class NoArgument(torch.nn.Module):
    pass
class NotAModule:
    def __init__(self, objects):
        pass
"""


@pytest.fixture
def own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A module of the user's in the current folder; its name is new in every test."""
    name = f"own_{tmp_path.name}"
    (tmp_path / f"{name}.py").write_text(OWN)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("sys.path", list(__import__("sys").path))
    return name


def test_names_and_unknown_ones() -> None:
    assert "yolo" in perception.names()
    with pytest.raises(NsfrcError, match=r"no perception called 'yollo': did you mean yolo\?"):
        perception.create("yollo", 4)
    with pytest.raises(NsfrcError, match=r"there are .*yolo.*module:Class"):
        perception.create("slots", 4)


def test_yolo_with_weights(tmp_path: Path) -> None:
    model = perception.create("yolo", 5, stored(random_yolo(), tmp_path / "w.safetensors"))
    assert isinstance(model, perception.Perception) and not model.training
    assert model(torch.rand(2, 3, 64, 64)).shape == (2, 5, 11)


@pytest.mark.parametrize(("name", "size"), [("Plain", (8, 16)), ("Proper", (8, 8))])
def test_a_class_of_the_users(own: str, name: str, size: tuple[int, int]) -> None:
    model = perception.create(f"{own}:{name}", 4, trust=True)
    assert isinstance(model, perception.Perception) and not model.training
    assert (model.size, model.objects, model.dimensions[-1]) == (size, 4, "objectness")
    assert model.column("objectness") == len(model.dimensions) - 1
    assert model(torch.ones(3, 3, *size)).shape == (3, 4, len(model.dimensions))


@pytest.mark.parametrize("name", ["Plain", "Proper"])
def test_weights_of_the_users(own: str, name: str, tmp_path: Path) -> None:
    plain = perception.create(f"{own}:{name}", 4, trust=True)
    width = len(plain.dimensions)
    save_file({"scale": torch.full((width,), 0.5)}, tmp_path / "own.safetensors")
    model = perception.create(f"{own}:{name}", 4, tmp_path / "own.safetensors", trust=True)
    assert torch.equal(model(torch.ones(1, 3, *model.size)), torch.full((1, 4, width), 0.5))
    assert model.identity != plain.identity and model.identity.startswith(f"{own}:{name}:")
    save_file({"other": torch.zeros(1)}, tmp_path / "own.safetensors")
    with pytest.raises(NsfrcError, match="no tensor scale"):
        perception.create(f"{own}:{name}", 4, tmp_path / "own.safetensors", trust=True)


@pytest.mark.parametrize(("name", "message"), [
    ("Nameless", "needs `dimensions`"),
    ("Twice", "a name twice"),
    ("Sizeless", "needs `size`"),
    ("Fixed", "finds 9 objects; the program asks for 4"),
    ("Flat", r"gives \[2, 3\] for two images; it must give \[2, 4, 3\]"),
    ("Broken", r"fails on two images of size \(8, 16\): RuntimeError"),
    ("NoArgument", "cannot be built: TypeError"),
    ("NotAModule", "must be a torch.nn.Module"),
    ("Plane", "has no class Plane: did you mean Plain"),
    ("", "write it as module:Class"),
])
def test_what_is_wrong_with_a_class_is_said(own: str, name: str, message: str) -> None:
    with pytest.raises(NsfrcError, match=message):
        perception.create(f"{own}:{name}", 4, trust=True)


def test_a_module_that_cannot_be_imported(own: str, tmp_path: Path) -> None:
    with pytest.raises(NsfrcError, match="cannot import no_such_module"):
        perception.create("no_such_module:Model", 4, trust=True)
    (tmp_path / f"bad_{own}.py").write_text("1 / 0")
    with pytest.raises(NsfrcError, match="ZeroDivisionError"):
        perception.create(f"bad_{own}:Model", 4, trust=True)


def test_entry_points_of_other_packages(own: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """They are installed, and so need no trust; the current folder is not looked into for them."""
    found = [EntryPoint("theirs", f"{own}:Plain", perceptions.GROUP)]
    monkeypatch.setattr(perceptions, "entry_points", lambda group: found if group == perceptions.GROUP else [])
    assert perception.names() == sorted(["theirs", *perceptions.BUILT_IN])
    with pytest.raises(NsfrcError, match=f"cannot import {own}: ModuleNotFoundError: .*is it installed"):
        perception.create("theirs", 2)
    monkeypatch.syspath_prepend(tmp_path)
    assert perception.create("theirs", 2).objects == 2


def test_the_best_device_there_is(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("triton")
    for there, device in ((False, "cpu"), (True, "cuda")):
        monkeypatch.setattr(torch.cuda, "is_available", lambda there=there: there)
        assert perception.usable_device("auto") == device


def test_the_current_folder_is_searched_for_what_the_user_trusts_alone(own: str, tmp_path: Path) -> None:
    """Libraries try to import what they can do without; a stranger's folder may have files of these names."""
    perception.create("yolo", 2, stored(random_yolo(), tmp_path / "w.safetensors"))
    with pytest.raises(NsfrcError, match="if you trust that code, allow it with --trust"):
        perception.create(f"{own}:Plain", 4)
    assert str(tmp_path) not in sys.path and own not in sys.modules
    perception.create(f"{own}:Plain", 4, trust=True)
    assert sys.path[-1] == str(tmp_path)


@pytest.mark.parametrize(("device", "hint"), [
    ("nonsense", 'use --device cpu, in Python device="cpu"'), ("cuda:77", 'use --device cpu, in Python device="cpu"'),
    ("gpu", r"did you mean cuda\?"), ("gpu:0", r"did you mean cuda\?"), ("cdua", r"did you mean cuda\?"),
])
def test_a_device_that_is_not_there(device: str, hint: str) -> None:
    with pytest.raises(NsfrcError, match=rf"cannot be used here.*: {hint}$"):
        perception.usable_device(device)


def test_a_module_that_ends_the_process_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "leaving.py").write_text("raise SystemExit(0)\n")
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(NsfrcError, match="cannot import leaving: SystemExit"):
        perception.create("leaving:Net", 2, trust=True)
