"""Examples of where objects of a CLEVR scene are: on the left or right side of the image, in front of each other.

What reaches the learner are the entries x, y, z of object vectors: how far an object is to the right in its camera's
image, towards the camera along the ground, and upwards, each of them from the middle of the ground.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import permutations
from pathlib import Path

import numpy as np

from nsfrc.data.clevr import layouts
from nsfrc.data.clevr.placing import MARGIN
from nsfrc.data.clevr.scenes import Scene
from nsfrc.errors import NsfrcError
from nsfrc.perception.camera import JITTER, PLACE, RADII, REACH, SPAN, scaled
from nsfrc.training.examples import Concept, Draw

NOISE = 0.03  # standard deviation of a perception's entries x, y and z
MIDDLE = 0.3  # an object whose centre is nearer than this to the middle of the image is an example of neither side

# Places [n, k, 3] of k objects, to the right, to the front and upwards → which of the n examples fit.
Test = Callable[[np.ndarray], np.ndarray]


@dataclass(frozen=True)
class Where:
    """What is said of k objects of a scene: when it surely holds and when it surely does not."""

    k: int
    holds: Test
    fails: Test


def from_scene(where: Where, scene: Scene) -> tuple[np.ndarray, np.ndarray]:
    """Every example in a scene: entries [n, k, 3] and labels [n]; objects too near to the line between are left out."""
    places = np.array([thing.coords for thing in scene.things]).reshape(-1, 3) @ scene.camera.ways.T
    chosen = np.array(list(permutations(range(len(places)), where.k)), dtype=np.int64).reshape(-1, where.k)
    holds, fails = where.holds(places[chosen]), where.fails(places[chosen])
    return scaled(places[chosen[holds | fails]]), holds[holds | fails]


def from_folder(name: str, folder: Path, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Every example in the scenes of a folder: entries [n, k, 3] and labels [n]; scenes in random order."""
    if name not in WHERE:
        raise NsfrcError(f"{name} is not learnt from CLEVR scenes; only {', '.join(WHERE)} are: leave out --scenes")
    found = [from_scene(WHERE[name], entry.scene) for entry in layouts.read(folder, images=False)]
    rng.shuffle(found)
    points = np.concatenate([np.zeros((0, WHERE[name].k, 3)), *(some for some, _ in found)])
    return points, np.concatenate([np.zeros(0, dtype=bool), *(some for _, some in found)])


def seen(ground: np.ndarray, camera: np.ndarray) -> np.ndarray:
    """How far points [n, k, 2] of the ground are to the right and to the front, seen from above [n, 2]: [n, k, 2].

    These are `Camera.directions`, for many cameras at once.
    """
    front = camera / np.linalg.norm(camera, axis=1, keepdims=True)
    right = np.stack([-front[:, 1], front[:, 0]], axis=1)
    return np.einsum("nki,nji->nkj", ground, np.stack([right, front], axis=1))


def _drawn(k: int, fits: Test) -> Draw:
    """Entries [count, k, 3] of objects drawn as CLEVR draws them, seen by cameras placed as CLEVR places them."""

    def some(n: int, rng: np.random.Generator) -> np.ndarray:
        ground = rng.uniform(-REACH, REACH, (n, k, 2))
        camera = np.array(PLACE[:2]) + rng.uniform(-JITTER, JITTER, (n, 2))
        places = np.concatenate([seen(ground, camera), rng.choice(list(RADII.values()), (n, k, 1))], axis=2)
        return scaled(places[fits(places)])

    def make(count: int, rng: np.random.Generator) -> np.ndarray:
        kept: list[np.ndarray] = []
        while sum(map(len, kept)) < count:
            kept.append(some(max(64, count), rng))
        return np.concatenate(kept)[:count]

    return make


def _left(places: np.ndarray) -> np.ndarray:
    return places[:, 0, 0] < -MIDDLE


def _right(places: np.ndarray) -> np.ndarray:
    return places[:, 0, 0] > MIDDLE


def _before(first: int, second: int) -> Test:
    """Of two objects, that numbered `first` is in front of that numbered `second`."""

    def fits(places: np.ndarray) -> np.ndarray:
        ahead = places[:, first] - places[:, second]
        return (ahead[:, 1] > MARGIN) & (np.abs(ahead[:, 0]) > MARGIN)

    return fits


def _side(where: Where) -> Concept:
    boundary = "x = {:.3f}, where 0 is the left of a scene and 1 its right"
    return Concept(
        _drawn(1, where.holds), _drawn(1, where.fails), lambda points: points[:, 0, 0], 2 * MIDDLE / SPAN, NOISE,
        boundary,
    )


def _depth(where: Where) -> Concept:
    return Concept(
        _drawn(2, where.holds), _drawn(2, where.fails), lambda points: points.flatten(1), 2 * MARGIN / SPAN, NOISE,
        terms=("x1", "y1", "z1", "x2", "y2", "z2"),
    )


WHERE = {
    "leftside": Where(1, _left, _right),
    "rightside": Where(1, _right, _left),
    "front": Where(2, _before(0, 1), _before(1, 0)),
}
CONCEPTS = {
    "leftside": _side(WHERE["leftside"]), "rightside": _side(WHERE["rightside"]), "front": _depth(WHERE["front"]),
}
