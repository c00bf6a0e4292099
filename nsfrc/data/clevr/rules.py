"""What each class of CLEVR-Hans says, in plain Python on the true things: written apart from the Prolog programs.

The generator goes by these; every scene is then checked with the compiled program as well, so that a mistake in
either shows. What depends on places says by how much it holds, so that scenes in doubt can be told.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import inf
from typing import Protocol

from nsfrc.data.clevr.scenes import Scene, Thing
from nsfrc.perception.camera import Camera

SIDE = 0.5  # a thing that decides a label is at least so far from the middle of the picture, in the world,
DEPTH = 0.4  # or so much nearer to the camera, or further from it, than the other thing


class Looks(Protocol):
    """A thing, placed or not."""

    @property
    def shape(self) -> str | None: ...

    @property
    def size(self) -> str | None: ...

    @property
    def material(self) -> str | None: ...

    @property
    def color(self) -> str | None: ...


ByLooks = Callable[[Sequence[Looks]], bool]
ByPlace = Callable[[Sequence[Thing], Camera], float]  # by how much it holds; below 0 it does not


def cube_and_cylinder(things: Sequence[Looks]) -> bool:
    large = {t.shape for t in things if t.size == "large"}
    return {"cube", "cylinder"} <= large


def cube_and_sphere(things: Sequence[Looks]) -> bool:
    small = [t for t in things if t.size == "small"]
    return any(t.shape == "sphere" for t in small) and any((t.shape, t.material) == ("cube", "metal") for t in small)


def cyan_in_front(things: Sequence[Thing], camera: Camera) -> float:
    """The cyan thing that is furthest in front, and the two red things that are furthest behind, decide."""
    cyan, red = (_along("front", [t for t in things if t.color == color], camera) for color in ("cyan", "red"))
    return max(cyan) - sorted(red)[1] if cyan and len(red) > 1 else -inf


def four_small(things: Sequence[Looks]) -> bool:
    small = [t.color for t in things if t.size == "small"]
    return len(small) > 3 and {"green", "brown", "purple"} <= set(small)


def spheres_left(things: Sequence[Thing], camera: Camera) -> float:
    return _third(_along("left", [t for t in things if t.shape == "sphere"], camera))


def cylinders_right(things: Sequence[Thing], camera: Camera) -> float:
    return _third(_along("right", [t for t in things if (t.shape, t.material) == ("cylinder", "metal")], camera))


def two_spheres(things: Sequence[Looks]) -> bool:
    kinds = {(t.size, t.color) for t in things if t.shape == "sphere"}
    return {("large", "blue"), ("small", "yellow")} <= kinds


def gray_cubes(things: Sequence[Looks]) -> bool:
    return all(t.color == "gray" for t in things if (t.size, t.shape) == ("large", "cube"))


def metal_spheres(things: Sequence[Looks]) -> bool:
    return all(t.material == "metal" for t in things if (t.size, t.shape) == ("small", "sphere"))


BY_LOOKS: dict[str, dict[int, ByLooks]] = {
    "clevr-hans3": {0: cube_and_cylinder, 1: cube_and_sphere, 2: two_spheres},
    "clevr-hans7": {0: cube_and_cylinder, 1: cube_and_sphere, 3: four_small, 6: two_spheres},
}
# With how much of it leaves no doubt.
BY_PLACE: dict[str, dict[int, tuple[ByPlace, float]]] = {
    "clevr-hans3": {},
    "clevr-hans7": {2: (cyan_in_front, DEPTH), 4: (spheres_left, SIDE), 5: (cylinders_right, SIDE)},
}
CLASSES = {name: len(BY_LOOKS[name]) + len(BY_PLACE[name]) for name in BY_LOOKS}

# What holds for all things of a class where it is confounded, besides its rule. Class 4 of clevr-hans7, three spheres
# on the left, is confounded with the rule of class 5, three metal cylinders on the right.
CONFOUNDERS: dict[int, ByLooks] = {0: gray_cubes, 1: metal_spheres}
BOTH = {"clevr-hans7": {4: 5}}


def by_looks(name: str, things: Sequence[Looks]) -> set[int]:
    """The classes of a set whose rule holds wherever the things stand."""
    return {label for label, rule in BY_LOOKS[name].items() if rule(things)}


def holding(name: str, scene: Scene) -> set[int]:
    """The classes of a set whose rule holds for a scene."""
    by_place = {label for label, (rule, _) in BY_PLACE[name].items() if rule(scene.things, scene.camera) > 0}
    return by_looks(name, scene.things) | by_place


def doubtful(name: str, scene: Scene) -> bool:
    """Whether a rule nearly holds, or only just."""
    return any(abs(rule(scene.things, scene.camera)) < margin for rule, margin in BY_PLACE[name].values())


def _along(way: str, things: Sequence[Thing], camera: Camera) -> list[float]:
    """How far things lie in a direction of the camera's; left and right of 0 are the two halves of the picture."""
    return [float(camera.directions[way] @ t.coords) for t in things]


def _third(numbers: Sequence[float]) -> float:
    """The third largest."""
    return sorted(numbers)[-3] if len(numbers) > 2 else -inf
