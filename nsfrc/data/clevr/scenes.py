"""A CLEVR scene: what stands on the floor and from where it is seen; to and from CLEVR's own JSON."""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from nsfrc.camera import Camera
from nsfrc.data.clevr.fitting import cameras
from nsfrc.inference.scene_files import class_of

SHAPES = ("sphere", "cube", "cylinder")
RADII = {"large": 0.7, "small": 0.35}
SIZES = tuple(RADII)
MATERIALS = ("rubber", "metal")
COLORS = {
    "cyan": (41, 208, 208), "blue": (42, 75, 215), "yellow": (255, 238, 51), "purple": (129, 38, 192),
    "red": (173, 35, 35), "green": (29, 105, 20), "gray": (87, 87, 87), "brown": (129, 74, 25),
}
NO_CAMERA = "no camera near CLEVR's sees its 3d_coords at its pixel_coords"

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


def from_json(entry: dict[str, Any]) -> Scene:
    """The scene of an entry; raises LookupError, TypeError, ValueError or OverflowError where it is none."""
    parts = [thing_of(thing) for thing in entry["objects"]]
    things, seen = tuple(thing for thing, _ in parts), np.array([place for _, place in parts]).reshape(-1, 3)
    (camera,) = cameras([np.array([t.coords for t in things]).reshape(-1, 3)], [seen])
    if camera is None:
        raise ValueError(NO_CAMERA)
    return Scene(things, camera, class_of(entry))


def thing_of(entry: dict[str, Any]) -> tuple[Thing, tuple[float, float, float]]:
    """The thing of an entry's object, and where its middle is seen; raises as `from_json` does."""
    rotation = float(entry.get("rotation", 0.0))
    if not math.isfinite(rotation):
        raise ValueError(f"its rotation is {rotation}; it must be a finite number")
    thing = Thing(
        _one_of(entry["shape"], SHAPES), _one_of(entry["size"], SIZES), _one_of(entry["material"], MATERIALS),
        _one_of(entry["color"], COLORS), _three(entry["3d_coords"]), rotation,
    )
    return thing, _three(entry["pixel_coords"])


def relationships(things: Sequence[Thing], camera: Camera, margin: float = 0.2) -> dict[str, list[list[int]]]:
    """For each direction and thing, which others lie in that direction of it by more than the margin."""
    places = np.array([t.coords for t in things]).reshape(-1, 3)
    found = {}
    for name in ("left", "right", "front", "behind"):
        along = places @ np.array(camera.directions[name])
        beyond = along[None, :] - along[:, None] > margin
        found[name] = [[int(j) for j in np.flatnonzero(row)] for row in beyond]
    return found


def _one_of(value: object, known: Collection[str]) -> str:
    if not isinstance(value, str) or value not in known:
        raise ValueError(f"{value!r} is none of {', '.join(known)}")
    return value


def _three(values: Any) -> tuple[float, float, float]:
    if not isinstance(values, list | tuple) or len(values) != 3:
        raise ValueError(f"{values!r} must be three numbers")
    x, y, z = map(float, values)
    if not (math.isfinite(x) and math.isfinite(y) and math.isfinite(z)):
        raise ValueError(f"{values!r} must be three finite numbers")
    return x, y, z
