"""The six Kandinsky patterns and the pattern-free figures.

Every figure starts as one that has the pattern. A negative is made from it: mostly by changing one thing (a colour, a
shape, a place) so that the rule just fails, otherwise by mixing everything again. Sizes are drawn first and kept,
so that they say nothing about the label.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from nsfrc.data import placing, rules
from nsfrc.data.figures import COLORS, NINE, PLAIN, SHAPES, Figure, Shape, Style
from nsfrc.data.placing import Layout

NEAR_MISS = 0.7  # share of negatives that differ from a positive in one thing
ATTEMPTS = 2000
PAIR_SIZES = (0.13, 0.27)
SMALL_SIZES = (0.055, 0.084)
LINE_SIZES = (0.055, 0.27)
CIRCLE_SIZES = (0.043, 0.225)

Kind = tuple[str, str]  # shape, colour
Rng = np.random.Generator


@dataclass(frozen=True)
class Pattern:
    """How to make a figure that has the pattern, and what can be changed so that it has it no more."""

    name: str
    objects: int
    sizes: tuple[float, float]
    kinds: Callable[[Rng], list[Kind]]
    layout: Callable[[Sequence[Shape], Rng], Layout | None]
    misses: tuple[Callable[[Layout, Rng], Layout | None], ...]
    style: Style = PLAIN

    def positive(self, rng: Rng) -> Layout:
        """Shapes that have the pattern: sizes first, kinds and places until the rule holds."""
        shapes = self.sized(rng)
        for attempt in range(1, ATTEMPTS):
            if attempt % 100 == 0:  # too large together for any layout
                shapes = self.sized(rng)
            placed = self.layout(_as(shapes, self.kinds(rng)), rng)
            if placed is not None and self.holds(placed) is True:
                return placed
        raise AssertionError(f"{self.name}: no figure found")

    def negative(self, rng: Rng) -> Layout:
        """A positive spoilt in one thing, or mixed again with the same sizes."""
        # Chosen once: trying another change after a failure would favour those that seldom fail.
        change = self.misses[rng.integers(len(self.misses))] if rng.random() < NEAR_MISS else self.mixed
        for attempt in range(ATTEMPTS):
            if attempt % 100 == 0:  # one change does not spoil a figure that has the pattern twice
                start = self.positive(rng)
            placed = change(start, rng)
            if placed is not None and self.holds(placed) is False:
                return placed
        raise AssertionError(f"{self.name}: no negative found")

    def holds(self, shapes: Layout) -> bool | None:
        """Whether the rule holds; None where a learnt concept could be in doubt."""
        return None if rules.doubtful(self.name, shapes) else rules.RULES[self.name](shapes)

    def sized(self, rng: Rng) -> list[Shape]:
        return [Shape("square", "red", 0.5, 0.5, size) for size in rng.uniform(*self.sizes, self.objects)]

    def mixed(self, shapes: Layout, rng: Rng) -> Layout | None:
        """Other kinds and, where the pattern is about places, other places."""
        kinds = [("circle" if self.style is NINE else _any(SHAPES, rng), _any(COLORS, rng)) for _ in shapes]
        placed = _as(shapes, kinds)
        return tuple(placed) if self.style is NINE else _scatter(placed, rng)


def _any(names: Sequence[str], rng: Rng) -> str:
    return names[int(rng.integers(len(names)))]


def _as(shapes: Sequence[Shape], kinds: Sequence[Kind]) -> list[Shape]:
    return [replace(s, shape=shape, color=color) for s, (shape, color) in zip(shapes, kinds, strict=True)]


def _shuffled(kinds: list[Kind], rng: Rng) -> list[Kind]:
    return [kinds[i] for i in rng.permutation(len(kinds))]


def _random_kinds(count: int, rng: Rng) -> list[Kind]:
    return [(_any(SHAPES, rng), _any(COLORS, rng)) for _ in range(count)]


def _pairs(varied: int, rng: Rng) -> list[Kind]:
    """A pair equal in shape and colour, and `varied` pairs equal in shape only."""
    shape, color = _any(SHAPES, rng), _any(COLORS, rng)
    kinds = [(shape, color), (shape, color)]
    for _ in range(varied):
        shape = _any(SHAPES, rng)
        kinds += [(shape, COLORS[i]) for i in rng.permutation(3)[:2]]
    return _shuffled(kinds, rng)


def _near_red_triangle(rng: Rng) -> list[Kind]:
    """The first two kinds are the red triangle and what will be close to it."""
    return [("triangle", "red"), (_any(SHAPES[:2], rng), _any(COLORS[1:], rng)), *_random_kinds(4, rng)]


def _with_a_pair(rng: Rng) -> list[Kind]:
    kinds = _random_kinds(4, rng)
    return _shuffled([*kinds, kinds[0]], rng)


def _three_of_each(rng: Rng) -> list[Kind]:
    return _shuffled([("circle", color) for color in COLORS for _ in range(3)], rng)


def _close_pair(shapes: Sequence[Shape], rng: Rng) -> Layout | None:
    """The first two close to each other, the others away from all."""
    one = placing.anywhere(shapes[0], rng)
    two = placing.first(partial(placing.at_distance, shapes[1], one, 0.075, rules.CLOSE, rng), (one,))
    return None if two is None else placing.scattered(shapes[2:], rng, (one, two), apart=rules.FAR)


def _close_pair_among_others(shapes: Sequence[Shape], rng: Rng) -> Layout | None:
    """The first two close to each other, the others wherever there is room, some of them in pairs."""
    one = placing.anywhere(shapes[0], rng)
    placed: Layout = (one,)
    for i, shape in enumerate(shapes[1:], 1):
        if i == 1 or (i == 3 and rng.random() < 0.4):  # the last placed gets a neighbour
            propose = partial(placing.at_distance, shape, placed[-1], 0.068, rules.CLOSE, rng)
        else:
            propose = partial(placing.anywhere, shape, rng)
        found = placing.first(propose, placed)
        if found is None:
            return None
        placed = (*placed, found)
    return placed


def _scatter(shapes: Sequence[Shape], rng: Rng) -> Layout | None:
    return (placing.clustered if rng.random() < 0.2 else placing.scattered)(shapes, rng)


def recolored(shapes: Layout, rng: Rng) -> Layout:
    """One object in another colour."""
    i = int(rng.integers(len(shapes)))
    return _with(shapes, i, replace(shapes[i], color=_any([c for c in COLORS if c != shapes[i].color], rng)))


def reshaped(shapes: Layout, rng: Rng) -> Layout | None:
    """One object of another shape, where there is room for it."""
    i = int(rng.integers(len(shapes)))
    changed = replace(shapes[i], shape=_any([s for s in SHAPES if s != shapes[i].shape], rng))
    return _with(shapes, i, changed) if placing.fits(changed, shapes[:i] + shapes[i + 1 :]) else None


def moved(shapes: Layout, rng: Rng) -> Layout | None:
    """One object in another place."""
    i = int(rng.integers(len(shapes)))
    changed = placing.anywhere(shapes[i], rng)
    return _with(shapes, i, changed) if placing.fits(changed, shapes[:i] + shapes[i + 1 :]) else None


def _with(shapes: Layout, i: int, changed: Shape) -> Layout:
    return *shapes[:i], changed, *shapes[i + 1 :]


PATTERNS = {
    pattern.name: pattern
    for pattern in (
        Pattern("twopairs", 4, PAIR_SIZES, lambda rng: _pairs(1, rng), _scatter, (recolored, reshaped)),
        Pattern("threepairs", 6, PAIR_SIZES, lambda rng: _pairs(2, rng), _scatter, (recolored, reshaped)),
        Pattern("closeby", 4, SMALL_SIZES, lambda rng: _random_kinds(4, rng), _close_pair, (moved,)),
        Pattern("red_triangle", 6, SMALL_SIZES, _near_red_triangle, _close_pair_among_others,
                (recolored, reshaped, moved)),
        Pattern("online_pair", 5, LINE_SIZES, _with_a_pair, placing.aligned, (recolored, reshaped, moved)),
        Pattern("nine_circles", 9, CIRCLE_SIZES, _three_of_each, placing.on_grid, (recolored,), NINE),
    )
}


def free(rng: Rng) -> Figure:
    """A figure of no pattern: 2 to 10 objects of any kind and size, laid out in one of several ways."""
    while True:
        style = NINE if rng.random() < 0.3 else PLAIN
        low, high = ((0.04, 0.09), LINE_SIZES, PAIR_SIZES, CIRCLE_SIZES)[rng.integers(4)]
        count = int(rng.integers(2, 11))
        sizes = rng.uniform(low, high, count)
        shapes = [Shape(shape, color, 0.5, 0.5, size)
                  for (shape, color), size in zip(_random_kinds(count, rng), sizes, strict=True)]
        layout = (placing.scattered, placing.clustered, placing.clustered, placing.aligned, placing.on_grid)
        placed = layout[rng.integers(len(layout) - (count == 10))](shapes, rng)
        if placed is not None and all(placing.fits(s, placed[:i]) for i, s in enumerate(placed)):
            return Figure(placed, style)
