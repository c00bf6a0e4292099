"""Pictures for `benchmarks.eyes`: figures of the patterns in looks that no training drew, and pictures of nothing.

What stands in the tables is drawn here from seeds of its own, picture by picture, the same ones every time.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from nsfrc.benchmarks.kandinsky import EYES_SEED
from nsfrc.data import kandinsky, looks, patterns
from nsfrc.data.figures import PLAIN, Figure, Palette, Shape, Style, distance
from nsfrc.data.render import render

Rng = np.random.Generator
SIZES = ((0.016, 0.024), (0.024, 0.03), (0.03, 0.04), (0.04, 0.05), (0.05, 0.07), (0.07, 0.13), (0.13, 0.3),
         (0.3, 0.36), (0.36, 0.42))
LEAST_DRAWN, MOST_DRAWN = min(low for low, _ in looks.SIZES), max(high for _, high in looks.SIZES)  # for training
CONTRASTS = ((15.0, 25.0), (25.0, 40.0), (40.0, 55.0), (55.0, 80.0), (80.0, 120.0))
TURNS = ((0, 6), (6, 12), (12, 20), (20, 30), (30, 45))  # degrees
QUALITIES = (90, 50, 25, 10)  # of JPEG
HIDDEN = ((0.02, 0.1), (0.1, 0.2), (0.2, 0.35), (0.35, 0.5))  # how much of one object another covers
GRID = 200  # pixels, to measure what is covered


@dataclass(frozen=True, eq=False)
class Picture:
    """pixels: uint8 [H, W, 3]; shapes: what is to be seen. pattern, label: the program to ask, and the right answer."""

    pixels: np.ndarray
    shapes: tuple[Shape, ...]
    pattern: str | None = None
    label: bool | None = None


@dataclass(frozen=True)
class Group:
    """A row of the table. new: whether training draws nothing of the kind. picture: a number, random numbers → it."""

    about: str
    value: str
    new: bool
    picture: Callable[[int, Rng], Picture]

    def pictures(self, count: int) -> Iterator[Picture]:
        for index in range(count):
            yield self.picture(index, np.random.default_rng([EYES_SEED, *map(ord, self.about + self.value), index]))


def groups() -> Iterator[Group]:
    """All rows, in the order of the table."""
    for pattern in kandinsky.PATTERNS:
        yield Group("pattern", pattern, False, partial(_fresh, pattern))
    for name, palette in looks.PALETTES.items():
        yield Group("palette", name, True, partial(_in_palette, palette))
    for name, ground in looks.GROUNDS.items():
        yield Group("ground", name, True, partial(_on_ground, ground))
    for sizes in SIZES:
        new = not LEAST_DRAWN < sum(sizes) / 2 < MOST_DRAWN
        yield Group("size", _band(*sizes), new, partial(_of_size, sizes))
    for contrast in CONTRASTS:
        yield Group("contrast", _band(*contrast), contrast[0] < looks.CONTRAST, partial(_of_contrast, contrast))
    for turn in TURNS:
        yield Group("turned by", f"{_band(*turn)}°", turn[1] > 12, partial(_turned, turn))
    for quality in QUALITIES:
        yield Group("JPEG quality", str(quality), quality < 25, partial(_as_jpeg, quality))
    for hidden in HIDDEN:
        yield Group("covered", _band(*hidden), True, partial(_covered, hidden))
    for kind in looks.NOTHINGS:
        yield Group("nothing", kind, False, partial(_nothing, kind))


def _band(low: float, high: float) -> str:
    return f"{low:g} to {high:g}"


def _figure(index: int) -> tuple[str, kandinsky.Labelled]:
    """Patterns in turn, so that every group has all of them, with and without the pattern."""
    pattern = kandinsky.PATTERNS[index // 2 % len(kandinsky.PATTERNS)]
    return pattern, kandinsky.figure(pattern, EYES_SEED, index)


def _shown(index: int, style: Style, quality: int | None = None) -> Picture:
    pattern, labelled = _figure(index)
    pixels = render(replace(labelled.figure, style=style))
    pixels = pixels if quality is None else looks.jpeg(pixels, quality)
    return Picture(pixels, labelled.figure.shapes, pattern, labelled.label)


def _fresh(pattern: str, index: int, rng: Rng) -> Picture:
    labelled = kandinsky.figure(pattern, EYES_SEED + 1, index)
    return Picture(render(labelled.figure), labelled.figure.shapes, pattern, labelled.label)


def _in_palette(palette: Palette, index: int, rng: Rng) -> Picture:
    """On a reserved ground from which all its colours stand out as far as in training."""
    fit = [ground for ground in looks.GROUNDS.values() if _least(palette, ground) >= looks.CONTRAST]
    return _shown(index, Style(640, fit[rng.integers(len(fit))], palette))


def _on_ground(ground: tuple[int, int, int], index: int, rng: Rng) -> Picture:
    """In a reserved palette that stands out from it."""
    fit = [palette for palette in looks.PALETTES.values() if _least(palette, ground) >= looks.CONTRAST]
    return _shown(index, Style(640, ground, fit[rng.integers(len(fit))]))


def _least(palette: Palette, ground: tuple[int, int, int]) -> float:
    return min(looks.contrast(color, ground) for color in palette)


def _of_size(sizes: tuple[float, float], index: int, rng: Rng) -> Picture:
    """Two pairs, whose objects may have any size, in the usual colours."""
    pattern = replace(patterns.PATTERNS["twopairs"], sizes=sizes)
    label = index % 2 == 0
    shapes = pattern.positive(rng) if label else pattern.negative(rng)
    return Picture(render(Figure(shapes, PLAIN)), shapes, "twopairs", label)


def _of_contrast(band: tuple[float, float], index: int, rng: Rng) -> Picture:
    """Palettes as in training, of which the colour nearest to the ground is so near to it."""
    while True:
        ground = looks.any_ground(rng)
        palette = looks.any_palette(rng)
        if band[0] <= _least(palette, ground) < band[1]:
            return _shown(index, Style(640, ground, palette))


def _turned(band: tuple[int, int], index: int, rng: Rng) -> Picture:
    """Figures of no pattern in the usual colours, squares and triangles turned by as much to either side."""
    while True:
        shapes = tuple(replace(s, angle=math.radians(rng.uniform(*band) * rng.choice([-1, 1])))
                       for s in looks.shapes(rng, sizes=(0.1, 0.2)))
        if looks.lie_well(shapes):
            return Picture(render(Figure(shapes, PLAIN)), shapes)


def _as_jpeg(quality: int, index: int, rng: Rng) -> Picture:
    return _shown(index, _figure(index)[1].figure.style, quality=quality)


def _covered(band: tuple[float, float], index: int, rng: Rng) -> Picture:
    """Three objects, one of them covered in part by another of another colour; shapes of patterns never are."""
    while True:
        one, over, other = (
            Shape(looks.SHAPES[rng.integers(3)], color, rng.uniform(0.15, 0.85), rng.uniform(0.15, 0.85),
                  rng.uniform(0.12, 0.25))
            for color in rng.permutation(looks.COLORS)
        )
        if distance(one, over) < 0.3 and min(distance(other, one), distance(other, over)) > 0.4 and \
                band[0] <= _share_covered(one, over) < band[1]:
            shapes = (one, over, other)
            return Picture(render(Figure(shapes, PLAIN)), shapes)


def _share_covered(one: Shape, over: Shape) -> float:
    """How much of one shape another covers."""
    style = Style(GRID, (0, 0, 0), ((255, 0, 0),) * 3)
    under, above = (render(Figure((shape,), style))[..., 0] > 127 for shape in (one, over))
    return float((under & above).sum() / max(1, under.sum()))


def _nothing(kind: str, index: int, rng: Rng) -> Picture:
    return Picture(looks.nothing(rng, kind), ())
