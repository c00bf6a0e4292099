"""A perception that needs no weights: pixel (row e, column d) of an image is entry d of object e."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

SIDE = 16
DIMENSIONS = ("x1", "y1", "x2", "y2", "red", "yellow", "blue", "square", "circle", "triangle", "objectness")

MODULE = f'''
import os
import signal
import time
import torch
from nsfrc.perception.base import Perception

class Readable(Perception):
    dimensions = {DIMENSIONS!r}
    size = ({SIDE}, {SIDE})

    def __init__(self, objects):
        super().__init__()
        self.objects = objects
        self.weight = torch.nn.Parameter(torch.ones(1))

    def forward(self, images):
        if bool((images[:, 1, -1, -1] == 1).any()) and not os.path.exists("go"):
            raise KeyboardInterrupt
        return images[:, 0, :self.objects, :{len(DIMENSIONS)}] * self.weight

class Beside(Readable):
    piece, side_by_side = 2, True

    def forward(self, images):
        if bool((images[:, 1, -1, -1] == 1).any()) and not os.path.exists("go"):
            os.kill(os.getpid(), signal.SIGINT)
            time.sleep(0.5)
        return images[:, 0, :self.objects, :{len(DIMENSIONS)}] * self.weight

class Failing(Readable):
    def forward(self, images):
        if bool((images[:, 1, -1, -1] == 1).any()):
            raise RuntimeError("no such\\nluck")
        return super().forward(images)
'''
PERCEPTION = ("--perception", "readable:Readable", "--trust")

ONE = """
:- semantics(paper).
:- include('kandinsky.pl').
:- type(object, slots(2)).
:- target(kp(img)).
kp(X) :- in(O, X), color(O, red), shape(O, triangle).
"""
SEVERAL = """
:- semantics(paper).
:- include('kandinsky.pl').
:- type(object, slots(2)).
:- classes([warm(img), cold(img), odd(img)]).
warm(X) :- in(O, X), color(O, red).
cold(X) :- in(O, X), color(O, blue).
odd(X) :- in(O, X), shape(O, triangle).
"""


def install(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Put the perception into a folder; it is imported afresh from there."""
    (folder / "readable.py").write_text(MODULE)
    monkeypatch.delitem(sys.modules, "readable", raising=False)
    monkeypatch.syspath_prepend(folder)


def pixels(*objects: dict[str, float], stop: bool = False) -> np.ndarray:
    """An image that shows these objects: uint8 [SIDE, SIDE, 3]. `stop` interrupts whoever looks at it."""
    image = np.zeros((SIDE, SIDE, 3), dtype=np.uint8)
    for row, entries in enumerate(objects):
        for name, value in entries.items():
            image[row, DIMENSIONS.index(name)] = round(255 * value)
    image[-1, -1, 1] = 255 if stop else 0
    return image


def thing(**entries: float) -> dict[str, float]:
    """An object that is there."""
    return {"x1": 0.2, "y1": 0.2, "x2": 0.4, "y2": 0.4, "objectness": 1.0, **entries}


YES = pixels(thing(red=1, triangle=1), thing(blue=1, square=1))
NO = pixels(thing(blue=1, triangle=1), thing(red=1, square=1))


def save(path: Path, image: np.ndarray) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.fromarray(image).save(path)
    return path


def labelled(folder: Path, count: int = 3) -> Path:
    """true/ and false/ with so many images each, all of them different."""
    for i in range(count):
        save(folder / "true" / f"{i}.png", pixels(thing(red=1 - i / 50, triangle=1), thing(blue=1, square=1)))
        save(folder / "false" / f"{i}.png", pixels(thing(red=i / 50, triangle=1), thing(blue=1, square=1)))
    return folder
