"""Learns the neural predicates that have parameters from labelled, generated examples.

An example is k points, the centres of objects, as a detector would give them. What is learnt is σ(w·x + b) of one
measured number x, so this is a logistic regression. The classes do not overlap; a penalty on w keeps it finite.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from nsfrc.errors import NsfrcError
from nsfrc.valuation.predicates import distance, line_residual

NOISE = 0.003  # standard deviation of a detector's centres, as a fraction of the image
EDGE = 0.04  # centres are at least this far from the border
HELD_OUT = 0.2
# Of (w·gap)²: leaves about σ(±5) at the edges of the two classes, which is certain enough and still has a slope.
PENALTY = 1e-5

CLOSE, FAR = (0.06, 0.12), (0.22, 1.0)  # centre distances of objects close by and not
ON, OFF = 0.008, 0.03  # root mean square distance to the best line: at most, at least


@dataclass(frozen=True)
class Concept:
    """How examples of a concept are made and measured. gap: between the measured values of the two classes.

    positive, negative (count, rng) → points [count, k, 2]; measure: points [n, k, 2] → [n].
    """

    positive: Callable[[int, np.random.Generator], np.ndarray]
    negative: Callable[[int, np.random.Generator], np.ndarray]
    measure: Callable[[torch.Tensor], torch.Tensor]
    gap: float
    boundary: str


@dataclass(frozen=True)
class Learnt:
    """The outcome: σ(w·x + b), 0.5 at x = boundary; accuracies on what was trained on and on what was held out."""

    name: str
    w: float
    b: float
    examples: int
    seed: int
    train_accuracy: float
    validation_accuracy: float

    @property
    def boundary(self) -> float:
        return -self.b / self.w

    @property
    def command(self) -> str:
        return f"nsfrc train concept {self.name} --examples {self.examples} --seed {self.seed}"

    def entry(self) -> dict[str, Any]:
        """What a file of concepts holds under the concept's name."""
        made_by = {
            "command": self.command, "examples": self.examples, "seed": self.seed,
            "train_accuracy": self.train_accuracy, "validation_accuracy": self.validation_accuracy,
        }
        return {"w": self.w, "b": self.b, "made_by": made_by}

    def spoken(self) -> str:
        return f"{self.name}: 0.5 at {CONCEPTS[self.name].boundary.format(self.boundary)}"


def learn(name: str, examples: int = 5000, seed: int = 0) -> Learnt:
    """Learn a concept from so many generated examples, half of them positive; a fifth is held out."""
    if name not in CONCEPTS:
        raise NsfrcError(f"there is no concept {name!r} to learn: there are {', '.join(CONCEPTS)}")
    if examples < 10:
        raise NsfrcError(f"{examples} examples are too few to learn {name} from: use 10 or more")
    concept = CONCEPTS[name]
    points, labels = labelled(name, examples, seed)
    x = concept.measure(torch.from_numpy(points))
    y = torch.from_numpy(labels).to(x)
    held = int(examples * HELD_OUT)
    w, b = _fit(x[held:], y[held:], concept.gap)
    right = ((w * x + b > 0) == (y > 0.5)).double()
    # Seven digits are more than the last steps of the fit are good for on another machine.
    return Learnt(
        name, float(f"{w:.7g}"), float(f"{b:.7g}"), examples, seed,
        round(right[held:].mean().item(), 6), round(right[:held].mean().item(), 6),
    )


def labelled(name: str, count: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Points [count, k, 2] as a detector sees them, float64, and labels [count], in random order."""
    rng = np.random.default_rng(seed)
    half = count // 2
    points = np.concatenate([CONCEPTS[name].positive(half, rng), CONCEPTS[name].negative(count - half, rng)])
    labels = np.arange(count) < half
    order = rng.permutation(count)
    return points[order] + rng.normal(0, NOISE, points.shape), labels[order]


def _fit(x: torch.Tensor, y: torch.Tensor, gap: float) -> tuple[float, float]:
    """w, b of the penalised logistic regression of y [n] on x [n]."""
    middle = x.mean()
    scaled = (x - middle) / gap
    slope_and_offset = torch.zeros(2, dtype=x.dtype, requires_grad=True)
    optimiser = torch.optim.LBFGS(
        [slope_and_offset], max_iter=500, tolerance_grad=1e-12, tolerance_change=1e-15, line_search_fn="strong_wolfe"
    )

    def loss() -> torch.Tensor:
        optimiser.zero_grad()
        slope, offset = slope_and_offset
        value = torch.nn.functional.binary_cross_entropy_with_logits(slope * scaled + offset, y)
        value = value + PENALTY * slope.square()
        value.backward()
        return value

    optimiser.step(loss)
    slope, offset = slope_and_offset.tolist()
    return slope / gap, offset - slope / gap * middle.item()


def _draw(make: Callable[[int], np.ndarray], fits: Callable[[np.ndarray], np.ndarray], count: int) -> np.ndarray:
    """The first `count` of what `make` gives, many at a time, that lie inside the image and fit."""
    kept: list[np.ndarray] = []
    while sum(map(len, kept)) < count:
        points = make(max(64, count))
        inside = ((points > EDGE) & (points < 1 - EDGE)).all(axis=(1, 2))
        kept.append(points[inside & fits(points)])
    return np.concatenate(kept)[:count]


def _pairs(apart: tuple[float, float]) -> Callable[[int, np.random.Generator], np.ndarray]:
    """Two points at a distance from `apart`, in any direction."""

    def make(count: int, rng: np.random.Generator) -> np.ndarray:
        def some(n: int) -> np.ndarray:
            first, angle = rng.uniform(0, 1, (n, 2)), rng.uniform(0, 2 * np.pi, n)
            step = rng.uniform(*apart, n)[:, None] * np.stack([np.cos(angle), np.sin(angle)], axis=1)
            return np.stack([first, first + step], axis=1)

        return _draw(some, lambda points: np.ones(len(points), dtype=bool), count)

    return make


def _residual(points: np.ndarray) -> np.ndarray:
    """Root mean square distance of points [n, k, 2] to their best line: [n]."""
    away = points - points.mean(axis=1, keepdims=True)
    return np.linalg.svd(away, compute_uv=False)[:, -1] / np.sqrt(points.shape[1])


def _lines(n: int, rng: np.random.Generator, wander: np.ndarray) -> np.ndarray:
    """Five points along lines in any direction, off them by `wander` [n, 5]: [n, 5, 2]."""
    angle = rng.uniform(0, np.pi, n)
    along = np.stack([np.cos(angle), np.sin(angle)], axis=1)
    across = np.stack([-np.sin(angle), np.cos(angle)], axis=1)
    place = rng.uniform(-0.5, 0.5, (n, 5)) * rng.uniform(0.4, 1.0, (n, 1))
    middle = rng.uniform(0.2, 0.8, (n, 1, 2))
    return middle + place[:, :, None] * along[:, None] + wander[:, :, None] * across[:, None]


def _on_line(count: int, rng: np.random.Generator) -> np.ndarray:
    def some(n: int) -> np.ndarray:
        return _lines(n, rng, rng.normal(0, 1, (n, 5)) * rng.uniform(0, ON, (n, 1)))

    return _draw(some, lambda points: _residual(points) <= ON, count)


def _off_line(count: int, rng: np.random.Generator) -> np.ndarray:
    """Half of them lines from which one to three points were moved, half five points anywhere."""

    def strayed(n: int) -> np.ndarray:
        moved = np.arange(5) < rng.integers(1, 4, (n, 1))  # places along the line are in random order
        stray = np.where(moved, rng.uniform(-0.3, 0.3, (n, 5)), rng.normal(0, ON / 2, (n, 5)))
        return _lines(n, rng, stray)

    off = [_draw(strayed, lambda points: _residual(points) >= OFF, count - count // 2)]
    off.append(_draw(lambda n: rng.uniform(0, 1, (n, 5, 2)), lambda points: _residual(points) >= OFF, count // 2))
    return np.concatenate(off)


CONCEPTS = {
    "closeby": Concept(
        _pairs(CLOSE), _pairs(FAR), lambda points: distance(points[:, 0], points[:, 1]), FAR[0] - CLOSE[1],
        "a distance of {:.3f} of the image width",
    ),
    "online": Concept(
        _on_line, _off_line, line_residual, OFF - ON,
        "a root mean square distance of {:.4f} of the image width to the best line",
    ),
}
