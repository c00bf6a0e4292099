"""Examples of what relates objects of a Kandinsky figure: two or more centres, as fractions of the image."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from nsfrc.training.examples import Concept, Draw
from nsfrc.valuation.predicates import distance, line_residual

NOISE = 0.003  # standard deviation of a detector's centres, as a fraction of the image
EDGE = 0.04  # centres are at least this far from the border
CLOSE, FAR = (0.06, 0.12), (0.22, 1.0)  # centre distances of objects close by and not
ON, OFF = 0.008, 0.03  # root mean square distance to the best line: at most, at least


def _draw(make: Callable[[int], np.ndarray], fits: Callable[[np.ndarray], np.ndarray], count: int) -> np.ndarray:
    """The first `count` of what `make` gives, many at a time, that lie inside the image and fit."""
    kept: list[np.ndarray] = []
    while sum(map(len, kept)) < count:
        points = make(max(64, count))
        inside = ((points > EDGE) & (points < 1 - EDGE)).all(axis=(1, 2))
        kept.append(points[inside & fits(points)])
    return np.concatenate(kept)[:count]


def _pairs(apart: tuple[float, float]) -> Draw:
    """Two points at a distance from `apart`, in any direction."""

    def make(count: int, rng: np.random.Generator) -> np.ndarray:
        def some(n: int) -> np.ndarray:
            first, angle = rng.uniform(0, 1, (n, 2)), rng.uniform(0, 2 * np.pi, n)
            step = rng.uniform(*apart, n)[:, None] * np.stack([np.cos(angle), np.sin(angle)], axis=1)
            return np.stack([first, first + step], axis=1)

        return _draw(some, lambda points: np.ones(len(points), dtype=bool), count)

    return make


def _residual(points: np.ndarray) -> np.ndarray:
    """Root mean square distance of points [n, k, 2] to their best line: [n]."""
    away = points - points.mean(axis=1, keepdims=True)
    return np.linalg.svd(away, compute_uv=False)[:, -1] / np.sqrt(points.shape[1])


def _lines(n: int, rng: np.random.Generator, wander: np.ndarray) -> np.ndarray:
    """Five points along lines in any direction, off them by `wander` [n, 5]: [n, 5, 2]."""
    angle = rng.uniform(0, np.pi, n)
    along = np.stack([np.cos(angle), np.sin(angle)], axis=1)
    across = np.stack([-np.sin(angle), np.cos(angle)], axis=1)
    place = rng.uniform(-0.5, 0.5, (n, 5)) * rng.uniform(0.4, 1.0, (n, 1))
    middle = rng.uniform(0.2, 0.8, (n, 1, 2))
    return middle + place[:, :, None] * along[:, None] + wander[:, :, None] * across[:, None]


def _on_line(count: int, rng: np.random.Generator) -> np.ndarray:
    def some(n: int) -> np.ndarray:
        return _lines(n, rng, rng.normal(0, 1, (n, 5)) * rng.uniform(0, ON, (n, 1)))

    return _draw(some, lambda points: _residual(points) <= ON, count)


def _off_line(count: int, rng: np.random.Generator) -> np.ndarray:
    """Half of them lines from which one to three points were moved, half five points anywhere."""

    def strayed(n: int) -> np.ndarray:
        moved = np.arange(5) < rng.integers(1, 4, (n, 1))  # places along the line are in random order
        stray = np.where(moved, rng.uniform(-0.3, 0.3, (n, 5)), rng.normal(0, ON / 2, (n, 5)))
        return _lines(n, rng, stray)

    off = [_draw(strayed, lambda points: _residual(points) >= OFF, count - count // 2)]
    off.append(_draw(lambda n: rng.uniform(0, 1, (n, 5, 2)), lambda points: _residual(points) >= OFF, count // 2))
    return np.concatenate(off)


CONCEPTS = {
    "closeby": Concept(
        _pairs(CLOSE), _pairs(FAR), lambda points: distance(points[:, 0], points[:, 1]), FAR[0] - CLOSE[1], NOISE,
        "a distance of {:.3f} of the image width",
    ),
    "online": Concept(
        _on_line, _off_line, line_residual, OFF - ON, NOISE,
        "a root mean square distance of {:.4f} of the image width to the best line",
    ),
}
