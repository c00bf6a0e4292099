"""Where shapes go: scattered, touching each other, along a line. Shapes never overlap.

A layout takes shapes whose kind, colour and size are decided and returns them with positions, or None when it
found no room; callers try again with other positions and the same sizes, so that sizes never depend on whether
a figure was easy to lay out.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial

import numpy as np

from nsfrc.data.figures import Shape, distance, gap

EDGE = 0.005  # least distance of a shape from the border
TRIES = 60

Layout = tuple[Shape, ...]


def fits(shape: Shape, others: Sequence[Shape], apart: float = 0.0) -> bool:
    """Inside the figure, overlapping none of the others, and centres at least `apart` from theirs."""
    return shape.inside(EDGE) and all(gap(shape, other) >= 0 and distance(shape, other) >= apart for other in others)


def anywhere(shape: Shape, rng: np.random.Generator) -> Shape:
    """The shape at a random place inside the figure."""
    x1, y1, x2, y2 = replace(shape, x=0.0, y=0.0).box
    return replace(shape, x=rng.uniform(EDGE - x1, 1 - EDGE - x2), y=rng.uniform(EDGE - y1, 1 - EDGE - y2))


def scattered(
    shapes: Sequence[Shape], rng: np.random.Generator, placed: Layout = (), apart: float = 0.0
) -> Layout | None:
    """Random places for all shapes beside those already placed."""
    for shape in shapes:
        found = first(partial(anywhere, shape, rng), placed, apart)
        if found is None:
            return None
        placed = (*placed, found)
    return placed


def clustered(shapes: Sequence[Shape], rng: np.random.Generator) -> Layout | None:
    """Most shapes touch an earlier one, from any side; the rest lie anywhere."""
    placed: Layout = ()
    for shape in shapes:
        found = first(partial(_beside_some, shape, placed, rng), placed)
        if found is None:
            return None
        placed = (*placed, found)
    return placed


def _beside_some(shape: Shape, placed: Layout, rng: np.random.Generator) -> Shape:
    if placed and rng.random() < 0.75:
        return touching(shape, placed[rng.integers(len(placed))], rng)
    return anywhere(shape, rng)


def touching(shape: Shape, other: Shape, rng: np.random.Generator) -> Shape:
    """The shape beside another in a random direction, slid up to it until they all but touch."""
    angle, room = rng.uniform(0, 2 * math.pi), rng.choice([0.0005, 0.003, 0.012])
    near, far = 0.0, shape.size + other.size + room
    for _ in range(14):
        middle = (near + far) / 2
        if gap(_beside(shape, other, angle, middle), other) >= room:
            far = middle
        else:
            near = middle
    return _beside(shape, other, angle, far)


def at_distance(shape: Shape, other: Shape, low: float, high: float, rng: np.random.Generator) -> Shape:
    """The shape in a random direction of another, their centres between low and high apart."""
    return _beside(shape, other, rng.uniform(0, 2 * math.pi), rng.uniform(low, high))


def _beside(shape: Shape, other: Shape, angle: float, away: float) -> Shape:
    return replace(shape, x=other.x + away * math.cos(angle), y=other.y + away * math.sin(angle))


def aligned(shapes: Sequence[Shape], rng: np.random.Generator, wander: float = 0.008) -> Layout | None:
    """All shapes along one straight line of any direction, in order; centres wander off it by less than `wander`."""
    angle = rng.choice([rng.uniform(0, math.pi), 0.0, math.pi / 2], p=[0.9, 0.05, 0.05])
    step, room = (math.cos(angle), math.sin(angle)), rng.uniform(0.0, 0.12, len(shapes))
    along, line = 0.0, list[Shape]()
    for shape, free in zip(shapes, room, strict=True):
        aside = rng.uniform(-wander, wander)
        along += shape.size / 2
        shape = replace(shape, x=along * step[0] - aside * step[1], y=along * step[1] + aside * step[0])
        while line and gap(shape, line[-1]) < 0:
            shape = replace(shape, x=shape.x + 0.01 * step[0], y=shape.y + 0.01 * step[1])
            along += 0.01
        line.append(shape)
        along += shape.size / 2 + free
    boxes = np.array([shape.box for shape in line])
    low, high = boxes[:, :2].min(axis=0), boxes[:, 2:].max(axis=0)
    space = 1 - 2 * EDGE - (high - low)
    if space.min() < 0:
        return None
    dx, dy = EDGE - low + rng.random(2) * space
    placed = tuple(replace(shape, x=shape.x + dx, y=shape.y + dy) for shape in line)
    return placed if all(fits(s, placed[:i]) for i, s in enumerate(placed)) else None


def on_grid(shapes: Sequence[Shape], rng: np.random.Generator) -> Layout:
    """Shapes on different places of a 3 × 3 grid at 1/6, 1/2 and 5/6."""
    places = rng.permutation(9)[: len(shapes)]
    return tuple(replace(s, x=(1 + 2 * (p % 3)) / 6, y=(1 + 2 * (p // 3)) / 6)
                 for s, p in zip(shapes, places, strict=True))


def first(propose: Callable[[], Shape], placed: Layout, apart: float = 0.0) -> Shape | None:
    """The first of some proposals that fits beside what is placed."""
    return next((shape for _ in range(TRIES) if fits(shape := propose(), placed, apart)), None)
