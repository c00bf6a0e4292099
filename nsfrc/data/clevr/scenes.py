"""A CLEVR scene: what stands on the floor and from where it is seen; to and from CLEVR's own JSON."""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from nsfrc.perception.camera import RADII, Camera

SHAPES = ("sphere", "cube", "cylinder")
SIZES = tuple(RADII)
MATERIALS = ("rubber", "metal")
COLORS = {
    "cyan": (41, 208, 208), "blue": (42, 75, 215), "yellow": (255, 238, 51), "purple": (129, 38, 192),
    "red": (173, 35, 35), "green": (29, 105, 20), "gray": (87, 87, 87), "brown": (129, 74, 25),
}

# Entries of an object vector, as slot attention gives them; x, y, z as `Camera.entries` has them.
DIMENSIONS = ("objectness", "x", "y", "z", *SHAPES, *SIZES, *MATERIALS, *COLORS)


@dataclass(frozen=True, slots=True)
class Thing:
    """An object. coords: its middle in the world; rotation: in degrees, about the vertical."""

    shape: str
    size: str
    material: str
    color: str
    coords: tuple[float, float, float]
    rotation: float = 0.0

    @property
    def radius(self) -> float:
        """Half of its height, and of its width where it has no corners."""
        return RADII[self.size]


@dataclass(frozen=True)
class Scene:
    """Things as a camera sees them. label: the number of its class from 0, None for a scene of no class."""

    things: tuple[Thing, ...]
    camera: Camera
    label: int | None = None

    @cached_property
    def pixels(self) -> np.ndarray:
        """Where the things' middles are seen: [M, 3] x, y in pixels of a 480 × 320 image, and depth."""
        return self.camera.pixels(np.array([t.coords for t in self.things]).reshape(-1, 3))


def truth(scene: Scene, objects: int) -> np.ndarray:
    """What a perfect perception would say of a scene: object vectors, float32 [objects, 19]."""
    vectors = np.zeros((objects, len(DIMENSIONS)), dtype=np.float32)
    places = scene.camera.entries(np.array([t.coords for t in scene.things]).reshape(-1, 3))
    for row, thing, place in zip(vectors, scene.things, places, strict=False):
        row[0] = 1
        row[1:4] = place
        row[[DIMENSIONS.index(v) for v in (thing.shape, thing.size, thing.material, thing.color)]] = 1
    return vectors


def to_json(scene: Scene, split: str, index: int, file: str) -> dict[str, Any]:
    """An entry of a scenes file, with the fields that CLEVR and CLEVR-Hans have."""
    objects = [
        {
            "shape": t.shape, "size": t.size, "material": t.material, "color": t.color, "rotation": t.rotation,
            "3d_coords": list(t.coords), "pixel_coords": [round(float(x)), round(float(y)), float(depth)],
        }
        for t, (x, y, depth) in zip(scene.things, scene.pixels, strict=True)
    ]
    directions = {name: list(map(float, way)) for name, way in scene.camera.directions.items()}
    entry = {
        "split": split, "image_index": index, "image_filename": file, "objects": objects, "directions": directions,
        "relationships": relationships(scene.things, scene.camera),
    }
    return entry if scene.label is None else {**entry, "class_id": scene.label}


def thing_of(entry: dict[str, Any]) -> tuple[Thing, tuple[float, float, float]]:
    """The thing of an entry's object, and where its middle is seen; raises KeyError or ValueError if it is not one."""
    rotation = entry.get("rotation", 0.0)
    if not _finite(rotation):
        raise ValueError(f"rotation is {rotation!r}; it must be a finite number")
    shape, size, material, color = (_one_of(entry, name, known) for name, known in (
        ("shape", SHAPES), ("size", SIZES), ("material", MATERIALS), ("color", COLORS)))
    thing = Thing(shape, size, material, color, _three(entry, "3d_coords"), float(rotation))
    return thing, _three(entry, "pixel_coords")


def relationships(things: Sequence[Thing], camera: Camera, margin: float = 0.2) -> dict[str, list[list[int]]]:
    """For each direction and thing, which others lie in that direction of it by more than the margin."""
    places = np.array([t.coords for t in things]).reshape(-1, 3)
    found = {}
    for name in ("left", "right", "front", "behind"):
        along = places @ np.array(camera.directions[name])
        beyond = along[None, :] - along[:, None] > margin
        found[name] = [[int(j) for j in np.flatnonzero(row)] for row in beyond]
    return found


def _one_of(entry: dict[str, Any], name: str, known: Collection[str]) -> str:
    value = entry[name]
    if not isinstance(value, str) or value not in known:
        raise ValueError(f"{name} is {value!r}; it must be one of {', '.join(known)}")
    return value


def _three(entry: dict[str, Any], name: str) -> tuple[float, float, float]:
    values = entry[name]
    if not isinstance(values, list) or len(values) != 3 or not all(map(_finite, values)):
        raise ValueError(f"{name} is {values!r}; it must be three finite numbers")
    x, y, z = map(float, values)
    return x, y, z


def _finite(value: object) -> bool:
    """Whether a value of a file is a number that a float can hold; true and false are not."""
    try:
        return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
    except OverflowError:
        return False
