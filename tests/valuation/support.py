"""Object vectors and programs that the tests of the facts converter share."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import numpy as np
import torch

import nsfrc
from nsfrc.program import Program

DIMENSIONS = ("x1", "y1", "x2", "y2", "red", "yellow", "blue", "square", "circle", "triangle", "objectness")
COLUMN = {name: i for i, name in enumerate(DIMENSIONS)}

VOCABULARY = """
:- type(image, [img]).
:- type(object, slots(4)).
:- type(color, [red, yellow, blue]).
:- neural(in(object, image)).
"""


@cache
def compiled(name: str) -> Program:
    return nsfrc.compile(name)


def program(folder: Path, text: str) -> Program:
    path = folder / "rules.pl"
    path.write_text(VOCABULARY + text)
    return nsfrc.compile(path)


def random_objects(batch: int, objects: int, seed: int = 0) -> torch.Tensor:
    """Object vectors [B, E, 11] with boxes the right way round and soft attributes."""
    vectors = np.random.default_rng(seed).uniform(0.05, 0.95, (batch, objects, len(DIMENSIONS)))
    vectors[:, :, 2:4] = vectors[:, :, 0:2] + 0.1
    return torch.from_numpy(vectors.astype(np.float32))
