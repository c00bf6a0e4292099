"""How good slots are on scenes they were not trained on: objects found with all attributes right, average precision."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from nsfrc.data.clevr.scenes import COLORS, DIMENSIONS, MATERIALS, SHAPES, SIZES
from nsfrc.perception.camera import SPAN

NEAR = 0.5  # units of the world from a thing's middle, within which it counts as found; a small thing is 0.7 wide
DISTANCES = (math.inf, 1.0, NEAR, 0.25)
SURE = 0.5  # objectness from which a slot says that there is something
COORDS = slice(DIMENSIONS.index("x"), DIMENSIONS.index("z") + 1)
GROUPS = tuple(
    slice(DIMENSIONS.index(names[0]), DIMENSIONS.index(names[-1]) + 1)
    for names in (SHAPES, SIZES, MATERIALS, tuple(COLORS))
)


@dataclass(frozen=True)
class Score:
    """found: share of things that one sure slot near them says all attributes of.

    precision: average precision of slots, the surest first, when so far from a thing is near enough.
    """

    found: float
    precision: dict[float, float]


def score(said: np.ndarray, truth: np.ndarray) -> Score:
    """Compare object vectors [N, S, 19] with those of the things [N, S, 19]; rows of zeros are not things."""
    there = [rows[rows[:, 0] > 0] for rows in truth]
    things = sum(len(rows) for rows in there)
    order = np.argsort(-said[:, :, 0], axis=1, kind="stable")
    surest = np.take_along_axis(said, order[:, :, None], axis=1)
    gaps = [distances(*pair) for pair in zip(surest, there, strict=True)]
    hits = {reach: np.stack([match(table, reach) for table in gaps]) for reach in DISTANCES}
    sure = surest[:, :, 0]
    found = hits[NEAR][sure >= SURE].sum() / max(1, things)
    return Score(float(found), {reach: average_precision(sure.ravel(), hit.ravel(), things)
                                for reach, hit in hits.items()})


def distances(said: np.ndarray, things: np.ndarray) -> np.ndarray:
    """How far slots [S, 19] are from things [T, 19], in the world; infinite where an attribute differs: [S, T]."""
    away = said[:, None, COORDS].astype(np.float64) - things[None, :, COORDS]
    apart = SPAN * np.linalg.norm(away, axis=2)
    same = np.ones(apart.shape, dtype=bool)
    for group in GROUPS:
        same &= said[:, group].argmax(1)[:, None] == things[:, group].argmax(1)[None, :]
    return np.where(same, apart, np.inf)


def match(apart: np.ndarray, reach: float) -> np.ndarray:
    """Which slots, in order, are a thing within reach that none before them was: [S, T] → [S]."""
    left = np.where(apart <= reach, apart, np.inf)
    hit = np.zeros(len(left), dtype=bool)
    for row in range(len(left)):
        if left.shape[1] and left[row].min() < np.inf:
            hit[row] = True
            left[:, left[row].argmin()] = np.inf
    return hit


def average_precision(confidence: np.ndarray, hits: np.ndarray, things: int) -> float:
    """Area under precision over recall, precision being the best at that recall or a higher one."""
    order = np.argsort(-confidence, kind="stable")
    right = hits[order]
    precision = np.cumsum(right) / np.arange(1, len(right) + 1)
    best = np.maximum.accumulate(precision[::-1])[::-1]
    return float(best[right].sum() / max(1, things))
