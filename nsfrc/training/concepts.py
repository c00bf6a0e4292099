"""Learns the neural predicates that have parameters from labelled examples.

An example is k points, the places of objects, as a perception would give them. What is learnt is σ(w·x + b) of the
number or numbers x measured of them, so this is a logistic regression. The classes hardly overlap, if at all; a
penalty on w keeps it finite.
"""

from __future__ import annotations

import shlex
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch

from nsfrc.distributed import copies, mean_of, share, total, world
from nsfrc.errors import NsfrcError
from nsfrc.training import concepts_clevr, concepts_kandinsky

CONCEPTS = {**concepts_kandinsky.CONCEPTS, **concepts_clevr.CONCEPTS}
EXAMPLES, FEWEST = 5000, 10
HELD_OUT = 0.2
# Of (w·gap)²: leaves about σ(±5) at the edges of the two classes, which is certain enough and still has a slope.
PENALTY = 1e-5


@dataclass(frozen=True)
class Learnt:
    """The outcome: σ(w·x + b); accuracies on what was trained on and on what was held out.

    w: one number or, where x is several, a tuple. It is 0.5 where x, in the direction of w, is `boundary`.
    """

    name: str
    w: float | tuple[float, ...]
    b: float
    examples: int
    seed: int
    train_accuracy: float
    validation_accuracy: float
    scenes: Path | None = None

    @property
    def boundary(self) -> float:
        return -self.b / (self.w if isinstance(self.w, float) else float(np.linalg.norm(self.w)))

    @property
    def command(self) -> str:
        scenes = "" if self.scenes is None else f" --scenes {shlex.quote(str(self.scenes))}"
        return f"nsfrc train concept {self.name}{scenes} --examples {self.examples} --seed {self.seed}"

    def entry(self) -> dict[str, Any]:
        """What a file of concepts holds under the concept's name."""
        made_by = {
            "command": self.command, "examples": self.examples, "seed": self.seed,
            "train_accuracy": self.train_accuracy, "validation_accuracy": self.validation_accuracy,
        }
        return {"w": self.w if isinstance(self.w, float) else list(self.w), "b": self.b, "made_by": made_by}

    def spoken(self) -> str:
        concept = CONCEPTS[self.name]
        if isinstance(self.w, float):
            return f"{self.name}: 0.5 at {concept.boundary.format(self.boundary)}"
        direction = np.array(self.w) / np.linalg.norm(self.w)
        parts = zip(direction, concept.terms, strict=True)
        terms = " ".join(f"{part:+.2f}·{term}" for part, term in parts if abs(part) >= 0.005)
        return f"{self.name}: 0.5 where {terms} = {self.boundary:.3f}"


def learn(name: str, examples: int | None = None, seed: int = 0, scenes: Path | None = None) -> Learnt:
    """Learn a concept; a fifth of the examples is held out.

    They are made, half of them positive, or with `scenes` taken from a folder of CLEVR scenes. examples: how many;
    5000 if not given, or all that the folder has.
    """
    if name not in CONCEPTS:
        raise NsfrcError(f"there is no concept {name!r} to learn: there are {', '.join(CONCEPTS)}")
    if examples is not None and examples < FEWEST:
        raise NsfrcError(f"{examples} examples are too few to learn {name} from: use {FEWEST} or more")
    concept = CONCEPTS[name]
    points, labels = found(name, scenes, examples, seed) if scenes else labelled(name, examples or EXAMPLES, seed)
    x = concept.measure(torch.from_numpy(points))
    y = torch.from_numpy(labels).to(x)
    held = int(len(x) * HELD_OUT)
    w, b = _fit(x[held:], y[held:], concept.gap)
    right = ((_weighted(w, x) + b > 0) == (y > 0.5)).double()
    # Seven digits are more than the last steps of the fit are good for on another machine.
    rounded = [float(f"{part:.7g}") for part in w.tolist()]
    return Learnt(
        name, rounded[0] if x.ndim == 1 else tuple(rounded), float(f"{b:.7g}"), len(x), seed,
        round(right[held:].mean().item(), 6), round(right[:held].mean().item(), 6), scenes,
    )


def labelled(name: str, count: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Made examples: points [count, k, d] as a perception sees them, float64, and labels [count], in random order."""
    rng = np.random.default_rng(seed)
    concept, half = CONCEPTS[name], count // 2
    points = np.concatenate([concept.positive(half, rng), concept.negative(count - half, rng)])
    labels = np.arange(count) < half
    order = rng.permutation(count)
    return points[order] + rng.normal(0, concept.noise, points.shape), labels[order]


def found(name: str, scenes: Path, most: int | None, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Examples from CLEVR scenes: points [n, k, 3] as a perception sees them, and labels [n]; n is at most `most`."""
    rng = np.random.default_rng(seed)
    points, labels = concepts_clevr.from_folder(name, scenes, rng)
    points, labels = points[:most], labels[:most]
    if len(labels) < FEWEST or labels.all() or not labels.any():
        raise NsfrcError(
            f"{scenes} has {labels.sum()} examples of {name} and {(~labels).sum()} of its opposite: some of both are "
            f"needed, {FEWEST} in all; give a folder with more scenes, or leave out --scenes to generate examples"
        )
    return points + rng.normal(0, CONCEPTS[name].noise, points.shape), labels


def _weighted(w: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
    """w·x [n] of w [m] and x [n, m], or of w [1] and x [n]."""
    return (w * x.reshape(len(x), -1)).sum(dim=1)


def _fit(x: torch.Tensor, y: torch.Tensor, gap: float) -> tuple[torch.Tensor, float]:
    """w [m], b of the penalised logistic regression of y [n] on x [n, m], or w [1] on x [n]."""
    middle = x.mean(dim=0)
    scaled = (x - middle) / gap
    parameters = torch.zeros(scaled[0].numel() + 1, dtype=x.dtype, requires_grad=True)
    optimiser = torch.optim.LBFGS(
        [parameters], max_iter=500, tolerance_grad=1e-12, tolerance_change=1e-15, line_search_fn="strong_wolfe"
    )

    own, times = share(len(y)), copies(len(y))

    def loss() -> torch.Tensor:
        optimiser.zero_grad()
        slopes, offset = parameters[:-1], parameters[-1]
        logits = _weighted(slopes, scaled[own]) + offset
        each = torch.nn.functional.binary_cross_entropy_with_logits(logits, y[own], reduction="none")
        value = mean_of(each, len(y), times) + PENALTY * slopes.square().sum() / world()
        value.backward()
        assert parameters.grad is not None
        parameters.grad.copy_(total(parameters.grad))
        return total(value.detach())

    optimiser.step(loss)
    w = parameters[:-1].detach() / gap
    return w, (parameters[-1].detach() - (w * middle).sum()).item()
