"""Shapes that do not overlap, and pixels that show them."""

from __future__ import annotations

import math

import numpy as np
import pytest

from nsfrc.data.figures import COLORS, PLAIN, SHAPES, Figure, Shape, gap
from nsfrc.data.kandinsky import DIMENSIONS, truth
from nsfrc.data.render import render


def shape(kind: str, x: float, y: float, size: float = 0.2, color: str = "red") -> Shape:
    return Shape(kind, color, x, y, size)


@pytest.mark.parametrize(("a", "b", "expected"), [
    (shape("circle", 0.2, 0.5), shape("circle", 0.5, 0.5), 0.1),
    (shape("circle", 0.2, 0.5), shape("square", 0.5, 0.5), 0.1),
    (shape("square", 0.2, 0.5), shape("square", 0.5, 0.5), 0.1),
    (shape("square", 0.2, 0.5), shape("square", 0.4, 0.6), 0.0),
    (shape("triangle", 0.3, 0.5), shape("square", 0.3, 0.5 + 0.1 * math.sqrt(3) / 2 + 0.15), 0.05),
    (shape("circle", 0.5, 0.5), shape("square", 0.5, 0.5, 0.1), -0.15),
])
def test_gap_is_the_room_between_shapes(a: Shape, b: Shape, expected: float) -> None:
    assert gap(a, b) == pytest.approx(expected)
    assert gap(b, a) == pytest.approx(expected)


def test_boxes_may_overlap_where_shapes_do_not() -> None:
    a, b = shape("circle", 0.4, 0.4), shape("circle", 0.55, 0.55)
    assert gap(a, b) > 0
    assert a.box[2] > b.box[0] and a.box[3] > b.box[1]


@pytest.mark.parametrize("seed", range(40))
def test_gap_agrees_with_pixels(seed: int) -> None:
    """Two shapes overlap exactly when drawing both covers less than each alone does."""
    rng = np.random.default_rng(seed)
    a, b = (Shape(SHAPES[rng.integers(3)], "red", *rng.uniform(0.35, 0.65, 2), rng.uniform(0.1, 0.3)) for _ in "ab")
    drawn = [np.any(render(Figure(shapes)) != PLAIN.background, axis=2) for shapes in ((a,), (b,))]
    both = int((drawn[0] & drawn[1]).sum())
    if gap(a, b) > 2 / PLAIN.side:
        assert both == 0
    if gap(a, b) < -3 / PLAIN.side:
        assert both > 0


@pytest.mark.parametrize("kind", SHAPES)
def test_pixels_fill_the_box_in_the_right_colour(kind: str) -> None:
    one = shape(kind, 0.4, 0.6, 0.25, "blue")
    picture = render(Figure((one,)))
    blue = np.all(picture == PLAIN.colors[COLORS.index("blue")], axis=2)
    ys, xs = np.nonzero(np.any(picture != PLAIN.background, axis=2))
    assert [xs.min(), ys.min(), xs.max() + 1, ys.max() + 1] == pytest.approx([v * 640 for v in one.box], abs=1.5)
    share = {"square": 1.0, "circle": math.pi / 4, "triangle": 0.5}[kind]
    x1, y1, x2, y2 = (v * 640 for v in one.box)
    assert blue.sum() / ((x2 - x1) * (y2 - y1)) == pytest.approx(share, abs=0.03)


def test_truth_is_what_perfect_perception_says() -> None:
    vectors = truth(Figure((shape("triangle", 0.5, 0.5, 0.2, "yellow"),)), 3)
    assert vectors.shape == (3, 11) and not vectors[1:].any()
    named = dict(zip(DIMENSIONS, vectors[0], strict=True))
    assert [name for name in DIMENSIONS[4:] if named[name] == 1] == ["yellow", "triangle", "objectness"]
    assert named["x2"] - named["x1"] == pytest.approx(0.2)
