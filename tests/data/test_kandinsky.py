"""The generator: labels, near misses, no leaks, the same figures for the same seed."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cache

import numpy as np
import pytest

from nsfrc.data import agreement, placing, rules
from nsfrc.data.figures import COLORS, SHAPES, Shape, distance, gap
from nsfrc.data.kandinsky import FREE, NAMES, PATTERNS, Labelled, figure
from nsfrc.data.patterns import PATTERNS as MAKERS
from tests.amount import sample

COUNTS = dict(zip(PATTERNS, (4, 6, 4, 6, 5, 9), strict=True))


@cache
def made(pattern: str) -> list[Labelled]:
    """Positives and negatives in turn."""
    return [figure(pattern, 8, i) for i in range(sample(600, 800))]


@pytest.mark.parametrize("pattern", PATTERNS)
def test_labels_agree_with_rule_and_program(pattern: str) -> None:
    figures = made(pattern)[:200]
    assert [one.label for one in figures] == [True, False] * 100
    for one in figures:
        assert len(one.figure.shapes) == COUNTS[pattern]
        assert rules.RULES[pattern](one.figure.shapes) is one.label
        assert not rules.doubtful(pattern, one.figure.shapes)
    scores = agreement.scores(pattern, figures)
    assert min(scores[::2]) > 0.8 and max(scores[1::2]) < 0.2


@pytest.mark.parametrize("pattern", NAMES)
def test_shapes_touch_but_never_overlap(pattern: str) -> None:
    figures = [one.figure for one in made(pattern)[:150]]
    for drawn in figures:
        for shape in drawn.shapes:
            assert shape.inside(0)
        for a, b in itertools.combinations(drawn.shapes, 2):
            assert gap(a, b) >= 0
    if pattern in ("twopairs", "threepairs", "online_pair", FREE):
        assert any(gap(a, b) < 0.004 for drawn in figures for a, b in itertools.combinations(drawn.shapes, 2))


@pytest.mark.parametrize("pattern", PATTERNS)
def test_sizes_do_not_tell_the_label(pattern: str) -> None:
    """The mean size of positives and negatives differs by less than chance allows (4 standard errors)."""
    sizes = [np.array([s.size for one in made(pattern)[odd::2] for s in one.figure.shapes]) for odd in (0, 1)]
    error = np.hypot(*(s.std() / np.sqrt(len(s)) for s in sizes))
    assert abs(sizes[0].mean() - sizes[1].mean()) < 4 * error
    assert abs(sizes[0].std() - sizes[1].std()) < 4 * error
    low, high = MAKERS[pattern].sizes
    assert all(low <= s.min() and s.max() <= high for s in sizes)


def differences(before: tuple[Shape, ...], after: tuple[Shape, ...]) -> int:
    """How many things differ: shapes, colours, places."""
    return sum(
        (a.shape != b.shape) + (a.color != b.color) + (distance(a, b) > 1e-9) + (a.size != b.size)
        for a, b in zip(before, after, strict=True)
    )


@pytest.mark.parametrize("pattern", PATTERNS)
def test_near_misses_differ_in_one_thing(pattern: str) -> None:
    maker = MAKERS[pattern]
    for seed in range(20):
        rng = np.random.default_rng(seed)
        start = maker.positive(rng)
        for change in maker.misses:
            changed = next(c for _ in range(500) if (c := change(start, rng)) is not None)
            assert differences(start, changed) == 1


def one_change_away(shapes: tuple[Shape, ...], rule: Callable[[Sequence[Shape]], bool]) -> bool:
    """Whether another colour or shape of one object makes the rule hold."""
    others = ((i, replace(s, **{part: value})) for i, s in enumerate(shapes)
              for part, values in (("color", COLORS), ("shape", SHAPES)) for value in values)
    return any(rule((*shapes[:i], changed, *shapes[i + 1 :])) for i, changed in others)


def negatives(pattern: str) -> list[tuple[Shape, ...]]:
    return [one.figure.shapes for one in made(pattern)[1::2]]


@pytest.mark.parametrize("pattern", ["twopairs", "threepairs", "nine_circles"])
def test_most_negatives_are_near_misses(pattern: str) -> None:
    near = [one_change_away(shapes, rules.RULES[pattern]) for shapes in negatives(pattern)]
    assert np.mean(near) > 0.75  # without near misses about a half


def test_no_single_thing_tells_the_label() -> None:
    """Negatives fail for every reason there is, each of them often."""
    on_line = [rules.astray(shapes) <= rules.ONLINE for shapes in negatives("online_pair")]
    assert 0.35 < np.mean(on_line) < 0.6
    with_pair = [len({(s.shape, s.color) for s in shapes}) < 5 for shapes in negatives("online_pair")]
    assert 0.2 < np.mean(with_pair) < 0.6
    for pattern in ("twopairs", "threepairs"):
        paired = [all(n % 2 == 0 for n in Counter(s.shape for s in shapes).values()) for shapes in negatives(pattern)]
        assert 0.3 < np.mean(paired) < 0.6
    close = [rules.closeby(shapes) for shapes in negatives("red_triangle")]
    red = [any((s.shape, s.color) == ("triangle", "red") for s in shapes) for shapes in negatives("red_triangle")]
    assert 0.4 < np.mean(close) < 0.9 and 0.3 < np.mean(red) < 0.9


def test_a_figure_does_not_depend_on_the_others() -> None:
    assert figure("twopairs", 3, 17) == figure("twopairs", 3, 17)
    assert figure("twopairs", 3, 17) != figure("twopairs", 4, 17)
    assert figure("twopairs", 3, 17) != figure("twopairs", 3, 19)


def test_pattern_free_figures_are_of_every_kind() -> None:
    figures = [figure(FREE, 0, i) for i in range(300)]
    assert {len(one.figure.shapes) for one in figures} == set(range(2, 11))
    assert all(one.label is None for one in figures)
    assert {(s.shape, s.color) for one in figures for s in one.figure.shapes} == set(
        itertools.product(("square", "circle", "triangle"), ("red", "yellow", "blue"))
    )
    sizes = [s.size for one in figures for s in one.figure.shapes]
    assert min(sizes) < 0.045 and max(sizes) > 0.26
    assert {one.figure.style.side for one in figures} == {600, 640}


def test_lines_of_any_direction_are_straight() -> None:
    rng = np.random.default_rng(0)
    shapes = [Shape("circle", "red", 0, 0, 0.08)] * 5
    lines = [line for _ in range(200) if (line := placing.aligned(shapes, rng)) is not None]
    assert len(lines) > 50
    assert max(rules.astray(line) for line in lines) < rules.ONLINE
    assert any(np.ptp([s.x for s in line]) < 0.02 for line in lines), "no vertical line among them"


@pytest.mark.parametrize(("kinds", "holds"), [
    ("rs rs bc yc", True), ("rs rs bc bc", False), ("rs rs rs bs", True), ("rs bs rc yc", False),
    ("rs rs bc yt", False), ("rs rs rs rs", False),
])
def test_twopairs_rule(kinds: str, holds: bool) -> None:
    names = {"r": "red", "y": "yellow", "b": "blue", "s": "square", "c": "circle", "t": "triangle"}
    objects = [Shape(names[k[1]], names[k[0]], 0.1 * i, 0.5, 0.05) for i, k in enumerate(kinds.split())]
    for order in itertools.permutations(objects):
        assert rules.twopairs(order) is holds
