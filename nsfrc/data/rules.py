"""What each pattern says, in plain Python on the true objects: written apart from the Prolog programs.

The generator goes by these; every figure is then checked with the compiled program as well, so that a mistake in
either shows.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import combinations, permutations

import numpy as np

from nsfrc.data.figures import Shape, distance

CLOSE = 0.107  # centres of things close to each other are at most so far apart,
FAR = 0.236  # and of others at least so far; nothing that matters lies between
ONLINE = 0.0085  # root mean square distance from the best line, of objects that lie on one,
ASTRAY = 0.04  # and at least, of objects that do not

Objects = Sequence[Shape]


def twopairs(objects: Objects) -> bool:
    return any(_alike(a) and _varied(b) for a, b in _pairings(objects))


def threepairs(objects: Objects) -> bool:
    return any(_alike(a) and _varied(b) and _varied(c) for p in _pairings(objects) for a, b, c in permutations(p))


def closeby(objects: Objects) -> bool:
    return any(distance(a, b) <= CLOSE for a, b in combinations(objects, 2))


def red_triangle(objects: Objects) -> bool:
    return any(distance(a, b) <= CLOSE for a, b in permutations(objects, 2) if _red_triangle_and_other(a, b))


def online_pair(objects: Objects) -> bool:
    return astray(objects) <= ONLINE and any(_alike(pair) for pair in combinations(objects, 2))


def nine_circles(objects: Objects) -> bool:
    return set(Counter(o.color for o in objects).values()) == {3} and len(objects) == 9


def doubtful(pattern: str, objects: Objects) -> bool:
    """Whether something that decides the label lies between the two sides of a learnt concept."""
    if pattern == "online_pair":
        return ONLINE < astray(objects) < ASTRAY
    if pattern == "closeby":
        return any(CLOSE < distance(a, b) < FAR for a, b in combinations(objects, 2))
    return pattern == "red_triangle" and any(
        CLOSE < distance(a, b) < FAR for a, b in permutations(objects, 2) if _red_triangle_and_other(a, b)
    )


def astray(objects: Objects) -> float:
    """Root mean square distance of the objects' centres from the straight line that fits them best."""
    points = np.array([(o.x, o.y) for o in objects])
    return float(np.linalg.svd(points - points.mean(axis=0), compute_uv=False)[-1] / np.sqrt(len(points)))


def _red_triangle_and_other(a: Shape, b: Shape) -> bool:
    return (a.color, a.shape) == ("red", "triangle") and a.color != b.color and a.shape != b.shape


def _alike(pair: Objects) -> bool:
    return pair[0].shape == pair[1].shape and pair[0].color == pair[1].color


def _varied(pair: Objects) -> bool:
    return pair[0].shape == pair[1].shape and pair[0].color != pair[1].color


def _pairings(objects: Objects) -> Iterator[tuple[tuple[Shape, Shape], ...]]:
    """All ways to part the objects into pairs, pairs in every order of the first two."""
    if not objects:
        yield ()
        return
    head, *rest = objects
    for i, other in enumerate(rest):
        for others in _pairings(rest[:i] + rest[i + 1 :]):
            yield (head, other), *others
            if len(others) == 1:
                yield others[0], (head, other)


RULES = {rule.__name__: rule for rule in (twopairs, threepairs, closeby, red_triangle, online_pair, nine_circles)}
