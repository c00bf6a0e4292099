"""Labelled Kandinsky figures: figure number `index` of a pattern is the same whatever else is made."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from nsfrc.data import patterns
from nsfrc.data.figures import COLORS, SHAPES, Figure
from nsfrc.errors import NsfrcError, did_you_mean

FREE = "free"
PATTERNS = tuple(patterns.PATTERNS)
NAMES = (*PATTERNS, FREE)

# Entries of an object vector, as perception gives them.
DIMENSIONS = ("x1", "y1", "x2", "y2", *COLORS, *SHAPES, "objectness")


@dataclass(frozen=True)
class Labelled:
    """A figure and whether it has the pattern; None for a figure of no pattern."""

    figure: Figure
    label: bool | None


def chosen_name(text: str) -> str:
    """The name of a pattern as a user may write it, with hyphens too."""
    name = text.replace("-", "_")
    if name not in NAMES:
        hint = did_you_mean(name, NAMES) or f"there are {', '.join(NAMES)}"
        raise NsfrcError(f"there is no pattern called {text!r}: {hint}")
    return name


def figure(pattern: str, seed: int, index: int) -> Labelled:
    """Figure `index` of a pattern; even ones have it, odd ones do not."""
    rng = np.random.default_rng([seed, NAMES.index(pattern), index])
    if pattern == FREE:
        return Labelled(patterns.free(rng), None)
    chosen = patterns.PATTERNS[pattern]
    label = index % 2 == 0
    shapes = chosen.positive(rng) if label else chosen.negative(rng)
    return Labelled(Figure(tuple(shapes[i] for i in rng.permutation(len(shapes))), chosen.style), label)


def truth(figure: Figure, objects: int) -> np.ndarray:
    """What a perfect perception would say of a figure: object vectors, float32 [objects, 11]."""
    vectors = np.zeros((objects, len(DIMENSIONS)), dtype=np.float32)
    for row, shape in zip(vectors, figure.shapes, strict=False):
        row[:4] = shape.box
        row[DIMENSIONS.index(shape.color)] = row[DIMENSIONS.index(shape.shape)] = row[-1] = 1
    return vectors
