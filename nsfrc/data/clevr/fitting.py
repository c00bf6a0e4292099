"""Where the camera of a scene stood: CLEVR's files do not say it, but where they see things gives it away."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from nsfrc.perception.camera import HEIGHT, JITTER, LENS, PLACE, SENSOR, WIDTH, Camera

WEIGHTS = np.array([1.0, 1.0, 100.0])  # depths are not rounded, and a unit of them is about a hundred pixels
STEP = 1e-5
ROUNDS = 20
FARTHEST = 4 * JITTER  # from the usual place, in any direction
OFF = 4.0  # pixels by which a thing may be seen elsewhere; rounding is a half
BOUND = 1e12  # squares of slopes beyond this come from nonsense
PIECE = 2048  # scenes at a time


def cameras(points: Sequence[np.ndarray], seen: Sequence[np.ndarray]) -> list[Camera | None]:
    """The cameras of S scenes, whose points [N, 3] of the world are seen at [N, 3], as `Camera.pixels` gives them.

    None where no camera near CLEVR's would see them there. Three points say it well, the rounding of pixels being
    averaged; with fewer than two the camera stands at the usual place.
    """
    found: list[Camera | None] = []
    for start in range(0, len(points), PIECE):
        found += _piece(points[start : start + PIECE], seen[start : start + PIECE])
    return found


def _piece(points: Sequence[np.ndarray], seen: Sequence[np.ndarray]) -> list[Camera | None]:
    longest = max((len(p) for p in points), default=0)
    world, there = np.zeros((2, len(points), longest, 3))
    weights = np.zeros_like(world)
    for i, (scene, where) in enumerate(zip(points, seen, strict=True)):
        world[i, : len(scene)], there[i, : len(scene)] = scene, where
        weights[i, : len(scene)] = WEIGHTS
    weights[[i for i, scene in enumerate(points) if len(scene) < 2]] = 0
    with np.errstate(all="ignore"):  # nonsense in a file may lead anywhere, and is told by where it led
        places = _fit(world, there, weights)
        off = np.abs((_project(places, world) - there) * (weights > 0))[..., :2].reshape(len(points), -1)
        near = np.isfinite(places).all(axis=1) & (np.abs(places - PLACE).max(axis=1) <= FARTHEST)
        fits = near & (off.max(axis=1, initial=0) <= OFF)
    found = zip(fits.tolist(), places.tolist(), strict=True)
    return [Camera((x, y, z)) if fit else None for fit, (x, y, z) in found]


def _fit(world: np.ndarray, there: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """Gauss-Newton from the usual place, for all scenes together: [S, 3]."""
    count = len(world)
    places = np.tile(np.array(PLACE), (count, 1))
    for _ in range(ROUNDS):
        off = ((_project(places, world) - there) * weights).reshape(count, -1)
        slopes = np.stack([
            (((_project(places + step, world) - there) * weights).reshape(count, -1) - off) / STEP
            for step in STEP * np.eye(3)
        ], axis=2)
        across = slopes.transpose(0, 2, 1)
        square, towards = across @ slopes, across @ off[..., None]
        lost = ~(np.abs(square).max(axis=(1, 2)) < BOUND) | ~np.isfinite(towards).all(axis=(1, 2))
        places[lost], square[lost], towards[lost] = np.nan, 0, 0
        # A pseudo-inverse leaves scenes without a slope, such as those of one thing, where they are.
        change = -(np.linalg.pinv(square, 1e-12, hermitian=True) @ towards)[..., 0]
        places += np.clip(change, -1, 1)
        if np.abs(change).max(initial=0) < 1e-7:
            break
    return places


def _project(places: np.ndarray, world: np.ndarray) -> np.ndarray:
    """`Camera.pixels` for S cameras at places [S, 3], each with points [N, 3] of its own: [S, N, 3]."""
    back = places / np.linalg.norm(places, axis=1, keepdims=True)
    right = np.stack([-back[:, 1], back[:, 0], np.zeros(len(back))], axis=1)
    right /= np.linalg.norm(right, axis=1, keepdims=True)
    axes = np.stack([right, np.cross(back, right), back], axis=2)
    x, y, behind = np.moveaxis((world - places[:, None]) @ axes, 2, 0)
    scale = WIDTH * LENS / SENSOR / -behind
    return np.stack([WIDTH / 2 + x * scale, HEIGHT / 2 - y * scale, -behind], axis=2)
