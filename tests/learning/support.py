"""Worlds of coloured shapes with an arrow between some, and programs to learn from them."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

COLORS, SHAPES = ("red", "yellow", "blue"), ("square", "circle", "triangle")
World = dict[str, float]
PROGRAM = """:- include('kandinsky.pl').
:- type(object, slots(4)).
:- neural(arrow(object, object)).
:- number(area(object)).
:- learn(kp(image)).
:- vars(object, 2).
"""


class Objects:
    """The objects of one world: colours and shapes by number, areas, and arrows."""

    def __init__(self, rng: np.random.Generator, most: int = 4) -> None:
        self.count = int(rng.integers(1, most + 1))
        self.colors, self.shapes = rng.integers(3, size=self.count), rng.integers(3, size=self.count)
        self.areas = rng.uniform(0, 1, self.count).round(3)
        self.arrows = (rng.random((self.count, self.count)) < 0.3) & ~np.eye(self.count, dtype=bool)

    def has(self, color: str, shape: str | None = None) -> int:
        """How many objects there are of a colour, and of a shape."""
        fits = self.colors == COLORS.index(color)
        if shape is not None:
            fits &= self.shapes == SHAPES.index(shape)
        return int(fits.sum())

    def world(self) -> World:
        facts: World = {}
        for i in range(self.count):
            facts |= {f"in(obj{i + 1},img)": 1.0, f"color(obj{i + 1},{COLORS[self.colors[i]]})": 1.0,
                      f"shape(obj{i + 1},{SHAPES[self.shapes[i]]})": 1.0, f"area(obj{i + 1})": float(self.areas[i])}
        return facts | {f"arrow(obj{i + 1},obj{j + 1})": 1.0 for i, j in np.argwhere(self.arrows)}


def worlds(seed: int, count: int) -> list[Objects]:
    rng = np.random.default_rng(seed)
    return [Objects(rng) for _ in range(count)]


def balanced(seed: int, count: int, rule: Callable[[Objects], bool]) -> tuple[list[World], list[bool]]:
    """Worlds of which half follow a rule, in turns."""
    rng, kept = np.random.default_rng(seed), {True: list[World](), False: list[World]()}
    while min(map(len, kept.values())) < count // 2:
        one = Objects(rng)
        kept[rule(one)].append(one.world())
    pairs = zip(kept[True][: count // 2], kept[False][: count // 2], strict=True)
    return [world for both in pairs for world in both], [True, False] * (count // 2)
