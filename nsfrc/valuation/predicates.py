"""The neural predicates that come with nsfrc. Each is called once for all of its N ground atoms."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import ClassVar

import torch

from nsfrc.errors import NsfrcError
from nsfrc.valuation.arguments import Attributes, Input, Objects
from nsfrc.valuation.concepts import shipped
from nsfrc.valuation.registry import neural_predicate

# Squared distances get this added before their root, whose slope is infinite at 0. Roots change by 1e-5 at most.
TINY = 1e-10


@neural_predicate("in")
def objectness(obj: Objects, image: Input) -> torch.Tensor:
    """Whether the object is there at all."""
    return obj["objectness"]


@neural_predicate("color")
@neural_predicate("shape")
@neural_predicate("size")
@neural_predicate("material")
def attribute(obj: Objects, value: Attributes) -> torch.Tensor:
    """Whether the object has the attribute: Σ slice ⊙ one-hot."""
    return value.of(obj)


class Concept(torch.nn.Module, ABC):
    """σ(w·x + b) of something measured, x [B, N]; w and b start as learnt by `nsfrc train concept NAME`."""

    name: ClassVar[str]

    def __init__(self) -> None:
        super().__init__()
        learnt = shipped(self.name)
        self.w = torch.nn.Parameter(torch.tensor(learnt["w"], dtype=torch.float32))
        self.b = torch.nn.Parameter(torch.tensor(learnt["b"], dtype=torch.float32))

    @abstractmethod
    def measure(self, *objects: Objects) -> torch.Tensor:
        """What x is: one number an atom, [B, N]."""

    def forward(self, *objects: Objects) -> torch.Tensor:
        return torch.sigmoid(self.w * self.measure(*objects) + self.b)


@neural_predicate("closeby", symmetric=True)
class Closeby(Concept):
    """Two objects lie close to each other."""

    name = "closeby"

    def measure(self, *objects: Objects) -> torch.Tensor:
        if len(objects) != 2:
            raise NsfrcError(f"closeby is a relation between two objects, not {len(objects)}")
        return distance(objects[0].centre, objects[1].centre)


@neural_predicate("online", symmetric=True)
class Online(Concept):
    """Three or more objects lie on one straight line."""

    name = "online"

    def measure(self, *objects: Objects) -> torch.Tensor:
        if len(objects) < 3:
            raise NsfrcError(f"online is a relation between three or more objects, not {len(objects)}")
        return line_residual(torch.stack([obj.centre for obj in objects], dim=-2))


def distance(first: torch.Tensor, second: torch.Tensor) -> torch.Tensor:
    """How far points [..., 2] are from points [..., 2]: [...]; smooth where they coincide."""
    return ((first - second).square().sum(dim=-1) + TINY).sqrt()


def line_residual(points: torch.Tensor) -> torch.Tensor:
    """Root mean square distance of points [..., n, 2] to the straight line that makes it least: [...].

    It is the root of the smaller eigenvalue of the points' covariance matrix, whose eigenvector is the line's normal.
    The normal is held fixed in the gradient, which is exact (once): it minimises what comes out, so its own change
    counts for nothing. That leaves no division, and no difference of nearly equal numbers.
    """
    away = points - points.mean(dim=-2, keepdim=True)
    with torch.no_grad():
        x, y = away.unbind(-1)
        angle = 0.5 * torch.atan2(2 * (x * y).sum(-1), (x * x - y * y).sum(-1))
        normal = torch.stack([-angle.sin(), angle.cos()], dim=-1)
    off = (away * normal.unsqueeze(-2)).sum(dim=-1)
    return (off.square().mean(dim=-1) + TINY).sqrt()
