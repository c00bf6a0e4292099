"""Figures in varied looks: true to their boxes, never in what is reserved, and nothing in pictures of nothing."""

from __future__ import annotations

import math

import numpy as np
import pytest

from nsfrc.data import looks
from nsfrc.data.figures import COLORS, PLAIN, SHAPES, Figure, Shape, Style, gap
from nsfrc.data.render import render
from nsfrc.perception.attributes import KANDINSKY
from nsfrc.training.detector_data import SOURCES, collect
from tests.amount import sample


def test_no_look_comes_near_what_is_reserved() -> None:
    seen = [looks.look(np.random.default_rng([1, i])) for i in range(sample(200, 5000))]
    for style in seen:
        assert all(math.dist(style.background, ground) >= looks.CLEAR for ground in looks.GROUNDS.values())
        for place, color in enumerate(style.colors):
            assert math.dist(color, style.background) >= looks.CONTRAST
            assert all(math.dist(color, palette[place]) >= looks.APART for palette in looks.PALETTES.values())
    assert min(sum(s.background) for s in seen) < 90 and max(sum(s.background) for s in seen) > 720
    assert {style.smooth for style in seen} == {True, False}
    assert {style.outline is None for style in seen} == {True, False}


def test_reserved_looks_can_be_told_apart_from_each_other() -> None:
    for palette in looks.PALETTES.values():
        assert any(min(math.dist(c, ground) for c in palette) >= looks.CONTRAST for ground in looks.GROUNDS.values())
    for ground in looks.GROUNDS.values():
        assert any(min(math.dist(c, ground) for c in palette) >= looks.CONTRAST for palette in looks.PALETTES.values())


def test_figures_have_up_to_twelve_shapes_inside_that_do_not_overlap() -> None:
    made = [looks.shapes(np.random.default_rng([2, i]), looks.TURN) for i in range(sample(60, 1000))]
    assert all(looks.lie_well(shapes) for shapes in made)
    assert {1, 12} <= {len(shapes) for shapes in made}
    sizes = [shape.size for shapes in made for shape in shapes]
    assert 0.024 <= min(sizes) < 0.03 and 0.25 < max(sizes) <= 0.3
    assert max(abs(shape.angle) for shapes in made for shape in shapes) > looks.TURN / 2


def test_many_figures_have_small_shapes_alone_most_of_which_touch() -> None:
    made = [looks.shapes(np.random.default_rng([3, i])) for i in range(sample(200, 2000))]
    small = [shapes for shapes in made if len(shapes) > 3 and max(shape.size for shape in shapes) < looks.SMALL[1]]
    assert 0.2 * len(made) < len(small) < 0.4 * len(made)
    beside = [min(gap(shape, other) for other in shapes if other is not shape) for shapes in small for shape in shapes]
    assert min(beside) >= 0 and np.median(beside) < 0.013


@pytest.mark.parametrize("kind", SHAPES)
@pytest.mark.parametrize("angle", [0.2, -0.1])
def test_turned_shapes_fill_their_box(kind: str, angle: float) -> None:
    one = Shape(kind, "blue", 0.4, 0.6, 0.25, angle)
    ys, xs = np.nonzero(np.any(render(Figure((one,))) != PLAIN.background, axis=2))
    assert [xs.min(), ys.min(), xs.max() + 1, ys.max() + 1] == pytest.approx([v * 640 for v in one.box], abs=2)
    area = {"square": 1.0, "circle": math.pi / 4, "triangle": math.sqrt(3) / 4}[kind]
    assert len(xs) == pytest.approx(area * (0.25 * 640) ** 2, rel=0.03)


@pytest.mark.parametrize("kind", SHAPES)
def test_outlines_and_hard_edges(kind: str) -> None:
    one, black, ground = Shape(kind, "red", 0.5, 0.5, 0.5), (0, 0, 0), (200, 210, 220)
    style = Style(200, ground, PLAIN.colors, outline=black, rim=0.02, smooth=False)
    picture = render(Figure((one,), style))
    assert {tuple(color) for color in picture.reshape(-1, 3).tolist()} == {black, ground, PLAIN.colors[0]}
    rim = np.all(picture == black, axis=2).sum()
    around = {"square": 4.0, "circle": math.pi, "triangle": 3.0}[kind] * 100
    assert rim == pytest.approx(4 * around, rel=0.15)


@pytest.mark.parametrize("kind", looks.NOTHINGS)
def test_pictures_of_nothing(kind: str) -> None:
    one, other = (looks.nothing(np.random.default_rng(i), kind) for i in (1, 2))
    assert one.dtype == np.uint8 and one.ndim == 3 and one.shape[2] == 3 and one.shape[0] == one.shape[1]
    assert len(np.unique(one.reshape(-1, 3), axis=0)) == 1 if kind in ("black", "blank") else one.std() > 1
    assert one.shape != other.shape or not np.array_equal(one, other)


def test_what_training_is_given() -> None:
    """The same pictures every time; boxes lie where colours are, and some pictures are empty."""
    first, again = (collect(SOURCES["varied"], False, 0, (96, 96), 40) for _ in "ab")
    assert first.pixels.equal(again.pixels)
    other = collect(SOURCES["varied"], True, 0, (96, 96), 4)
    assert not other.pixels.equal(first.pixels[:4])
    assert any(len(classes) == 0 for classes in first.classes)
    assert {KANDINSKY.classes[c].split()[0] for classes in first.classes for c in classes} == set(COLORS)
    for pixels, boxes in zip(first.pixels.numpy(), first.boxes, strict=True):
        assert boxes.shape[1] == 4 and (boxes >= 0).all() and (boxes <= 1).all()
        for x1, y1, x2, y2 in boxes * 96:
            inside = pixels[int((y1 + y2) / 2), int((x1 + x2) / 2)].astype(int)
            assert np.abs(inside - np.median(pixels.reshape(-1, 3), axis=0)).max() > 15
