"""Labelled scenes: scene number `index` of a set is the same whatever else is made."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from nsfrc.data.clevr import rules
from nsfrc.data.clevr.outlines import share_seen
from nsfrc.data.clevr.placing import Wish, draw_camera, place, wide
from nsfrc.data.clevr.scenes import COLORS, MATERIALS, SHAPES, SIZES, Scene
from nsfrc.perception.camera import Camera

FREE = "clevr"
HANS3, HANS7 = "clevr-hans3", "clevr-hans7"
CROWDED, ALIKE = "clevr-crowded", "clevr-alike"
NAMES = (FREE, HANS3, HANS7, CROWDED, ALIKE)
WITHOUT_CLASSES = (FREE, CROWDED, ALIKE)
SPLITS = {name: ("train", "val") if name in WITHOUT_CLASSES else ("train", "val", "test") for name in NAMES}
FEWEST, MOST = 3, 10
CROWD = 7  # things of a crowded scene, at least
CROWD_DRAWS = 6  # scenes of which the one is taken in which most is hidden
CROWD_METAL = 0.7  # the share of its things that are of metal, and so show their neighbours
FEW = 3  # colours of all things of a scene of `alike`, at most
HIDDEN = 0.75  # of the outline of a thing: where less is seen, it counts as partly hidden


def seed_of(name: str, seed: int, index: int) -> tuple[int, ...]:
    """What decides a scene."""
    return seed, NAMES.index(name), index


def split_of(name: str, index: int) -> str:
    """The split that a scene belongs to: nine to one of no class, four to one to one of each class."""
    if name in WITHOUT_CLASSES:
        return "val" if index % 10 == 9 else "train"
    return ("train", "train", "train", "train", "val", "test")[index // rules.CLASSES[name] % 6]


def label_of(name: str, index: int) -> int | None:
    """The class of a scene: classes take turns."""
    return None if name in WITHOUT_CLASSES else index % rules.CLASSES[name]


def scene(name: str, seed: int, index: int) -> Scene:
    """Scene `index` of a set. Exactly one class's rule holds, except for what confounds it.

    Outside of test, classes are confounded: something that their rule does not ask for is always there.
    """
    label = label_of(name, index)
    if label is None:
        return {FREE: free, CROWDED: crowded, ALIKE: alike}[name](seed, index)
    rng = np.random.default_rng(seed_of(name, seed, index))
    confounded = split_of(name, index) != "test"
    needs = (CONFOUNDED if confounded else PLAIN)[name][label]
    count = int(rng.integers(max(FEWEST, len(needs)), MOST + 1))
    while True:
        wishes = _looks((*needs, *[Wish()] * (count - len(needs))), rng)
        if not _looks_fit(name, label, wishes, confounded):
            continue
        camera = draw_camera(rng)
        widest = sorted(wishes, key=lambda wish: wide(wish, True), reverse=True)  # they need room most
        things = place(widest, camera, rng, corners=True)
        if things is None:
            continue
        made = Scene(tuple(things[i] for i in rng.permutation(count)), camera, label)
        if rules.holding(name, made) == _meant(name, label, confounded) and not rules.doubtful(name, made):
            return made


def free(seed: int, index: int) -> Scene:
    """A scene of no class: three to ten things anywhere.

    The distance is kept between circles, as CLEVR keeps it: corners of cubes may come closer.
    """
    return _usual(np.random.default_rng(seed_of(FREE, seed, index)))


def crowded(seed: int, index: int) -> Scene:
    """A scene of no class: every second one as in `free`, the others full of metal things that hide others."""
    rng = np.random.default_rng(seed_of(CROWDED, seed, index))
    if index % 2:
        return _usual(rng)
    return _crowd(None, rng)


def alike(seed: int, index: int) -> Scene:
    """A scene full of metal things that hide others, in one to three colours, so that neighbours often share one."""
    rng = np.random.default_rng(seed_of(ALIKE, seed, index))
    return _crowd(rng.permutation(list(COLORS))[: rng.integers(1, FEW + 1)].tolist(), rng)


def _crowd(colors: list[str] | None, rng: np.random.Generator) -> Scene:
    """Many things, most of them of metal, in some colours or in any, many of them partly hidden."""
    wishes = [Wish(material="metal" if metal else "rubber")
              for metal in rng.random(int(rng.integers(CROWD, MOST + 1))) < CROWD_METAL]
    if colors is not None:
        wishes = [replace(wish, color=colors[i])
                  for wish, i in zip(wishes, rng.integers(len(colors), size=len(wishes)), strict=True)]
    return max((_anywhere(wishes, rng) for _ in range(CROWD_DRAWS)), key=hidden)


def hidden(scene: Scene) -> int:
    """How many things of a scene are partly hidden."""
    return int((share_seen(scene.things, scene.camera) < HIDDEN).sum())


def _usual(rng: np.random.Generator) -> Scene:
    return _anywhere([Wish()] * int(rng.integers(FEWEST, MOST + 1)), rng)


def _anywhere(wishes: Sequence[Wish], rng: np.random.Generator) -> Scene:
    while True:
        camera = draw_camera(rng)
        if (things := place(wishes, camera, rng, corners=False)) is not None:
            return Scene(things, camera)


def _meant(name: str, label: int, confounded: bool) -> set[int]:
    """The classes whose rules must hold."""
    both = rules.BOTH.get(name, {})
    return {label, both[label]} if confounded and label in both else {label}


def _looks_fit(name: str, label: int, wishes: Sequence[Wish], confounded: bool) -> bool:
    """Whether things that look so can be of the class: told before places are sought, which takes long."""
    if not rules.by_looks(name, wishes) <= {label}:
        return False
    return not confounded or label not in rules.CONFOUNDERS or rules.CONFOUNDERS[label](wishes)


def _looks(wishes: Sequence[Wish], rng: np.random.Generator) -> list[Wish]:
    """The wishes with all that they leave open drawn at random."""
    known = (SHAPES, SIZES, MATERIALS, tuple(COLORS))
    drawn = rng.integers([len(values) for values in known], size=(len(wishes), len(known)))
    looks = []
    for wish, row in zip(wishes, drawn, strict=True):
        shape, size, material, color = (values[i] for values, i in zip(known, row, strict=True))
        looks.append(replace(wish, shape=wish.shape or shape, size=wish.size or size,
                             material=wish.material or material, color=wish.color or color))
    return looks


def _left(spot: np.ndarray, camera: Camera) -> bool:
    """Whether a place [2] on the floor is on the left without doubt."""
    return float(camera.directions["left"][:2] @ spot) >= rules.SIDE


def _right(spot: np.ndarray, camera: Camera) -> bool:
    return float(camera.directions["right"][:2] @ spot) >= rules.SIDE


# The things that each rule asks for; others are drawn.
_CUBE_AND_CYLINDER = (Wish("cube", "large"), Wish("cylinder", "large"))
_CUBE_AND_SPHERE = (Wish("cube", "small", "metal"), Wish("sphere", "small"))
_CYAN_IN_FRONT = (Wish(color="cyan"), Wish(color="red"), Wish(color="red"))
_FOUR_SMALL = tuple(Wish(size="small", color=color) for color in ("green", "brown", "purple", None))
_SPHERES_LEFT = (Wish("sphere", where=_left),) * 3
_CYLINDERS_RIGHT = (Wish("cylinder", material="metal", where=_right),) * 3
_TWO_SPHERES = (Wish("sphere", "large", color="blue"), Wish("sphere", "small", color="yellow"))

# The same with what confounds them.
_GRAY_CUBE = (Wish("cube", "large", color="gray"), Wish("cylinder", "large"))
_METAL_SPHERE = (Wish("cube", "small", "metal"), Wish("sphere", "small", "metal"))
_BOTH_SIDES = (*_SPHERES_LEFT, *_CYLINDERS_RIGHT)

PLAIN = {
    HANS3: (_CUBE_AND_CYLINDER, _CUBE_AND_SPHERE, _TWO_SPHERES),
    HANS7: (_CUBE_AND_CYLINDER, _CUBE_AND_SPHERE, _CYAN_IN_FRONT, _FOUR_SMALL, _SPHERES_LEFT, _CYLINDERS_RIGHT,
            _TWO_SPHERES),
}
CONFOUNDED = {
    HANS3: (_GRAY_CUBE, _METAL_SPHERE, _TWO_SPHERES),
    HANS7: (_GRAY_CUBE, _METAL_SPHERE, _CYAN_IN_FRONT, _FOUR_SMALL, _BOTH_SIDES, _CYLINDERS_RIGHT, _TWO_SPHERES),
}
