"""Puts things on the floor: apart from each other, in different places as seen, and none of them hidden."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from math import sqrt

import numpy as np

from nsfrc.data.clevr.outlines import visible
from nsfrc.data.clevr.scenes import COLORS, MATERIALS, SHAPES, SIZES, Thing
from nsfrc.perception.camera import JITTER, PLACE, RADII, REACH, Camera

GAP = 0.25  # between the circles around two things on the floor, at least; see `place` for cubes
MARGIN = 0.4  # by which one thing is left or right, and in front or behind, of another, at least
VISIBLE = 200  # pixels of each thing, at least
TRIES = 60


@dataclass(frozen=True)
class Wish:
    """A thing that is not placed yet: what is None is drawn at random. where: whether a place on the floor will do."""

    shape: str | None = None
    size: str | None = None
    material: str | None = None
    color: str | None = None
    where: Callable[[np.ndarray, Camera], bool] | None = None


def draw_camera(rng: np.random.Generator) -> Camera:
    x, y, z = np.array(PLACE) + rng.uniform(-JITTER, JITTER, 3)
    return Camera((float(x), float(y), float(z)))


def place(
    wishes: Sequence[Wish], camera: Camera, rng: np.random.Generator, *, corners: bool
) -> tuple[Thing, ...] | None:
    """Things for all wishes; None where no room was found for one of them, or one hides another.

    corners: whether a cube's circle goes through its corners, so that outlines are GAP apart, or touches its sides.
    """
    things: list[Thing] = []
    for wish in wishes:
        looks = [_chosen(rng, value, known) for value, known in (
            (wish.shape, SHAPES), (wish.size, SIZES), (wish.material, MATERIALS), (wish.color, tuple(COLORS)))]
        shape, size, material, color = looks
        spot = _spot(replace(wish, shape=shape, size=size), things, camera, rng, corners)
        if spot is None:
            return None
        coords = (float(spot[0]), float(spot[1]), RADII[size])
        things.append(Thing(shape, size, material, color, coords, float(rng.uniform(0, 360))))
    return tuple(things) if (visible(things, camera) >= VISIBLE).all() else None


def _chosen(rng: np.random.Generator, value: str | None, known: Sequence[str]) -> str:
    return known[int(rng.integers(len(known)))] if value is None else value


def wide(one: Wish | Thing, corners: bool) -> float:
    """The radius of the circle on the floor that others keep away from; what is not drawn yet counts as the widest."""
    return RADII[one.size or "large"] * (sqrt(2) if corners and one.shape in ("cube", None) else 1)


def _spot(
    wish: Wish, things: Sequence[Thing], camera: Camera, rng: np.random.Generator, corners: bool
) -> np.ndarray | None:
    """A free place [2] on the floor."""
    radius = wide(wish, corners)
    places = np.array([t.coords[:2] for t in things]).reshape(-1, 2)
    radii = np.array([wide(t, corners) for t in things])
    ways = np.stack([camera.directions["right"][:2], camera.directions["front"][:2]])
    for _ in range(TRIES):
        spot = rng.uniform(-REACH, REACH, 2)
        away = spot - places
        apart = (np.linalg.norm(away, axis=1) >= radii + radius + GAP).all()
        told_apart = (np.abs(away @ ways.T) >= MARGIN).all()
        if apart and told_apart and (wish.where is None or wish.where(spot, camera)):
            return spot
    return None
