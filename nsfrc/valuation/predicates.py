"""The neural predicates that come with nsfrc. Each is called once for all of its N ground atoms."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any, ClassVar, TypeVar

import torch

from nsfrc.errors import NsfrcError
from nsfrc.valuation.arguments import Attributes, Input, Objects
from nsfrc.valuation.concepts import shipped
from nsfrc.valuation.registry import neural_predicate
from nsfrc.vocabulary import ATTRIBUTES, BY_NAME

F = TypeVar("F", bound=Callable[..., Any])

# Squared distances get this added before their root, whose slope is infinite at 0. Roots change by 1e-5 at most.
TINY = 1e-10


def shipped_predicate(*names: str) -> Callable[[F], F]:
    """Register a function, or a class of modules, that values predicates of `nsfrc/vocabulary.py`."""

    def register(function: F) -> F:
        for name in names:
            neural_predicate(name, symmetric=BY_NAME[name].symmetric)(function)
        if isinstance(function, type):
            (function.name,) = names  # type: ignore[attr-defined]
        return function

    return register


@shipped_predicate("in")
def objectness(obj: Objects, image: Input) -> torch.Tensor:
    """Whether the object is there at all."""
    return obj["objectness"]


@shipped_predicate(*ATTRIBUTES)
def attribute(obj: Objects, value: Attributes) -> torch.Tensor:
    """Whether the object has the attribute: Σ slice ⊙ one-hot."""
    return value.of(obj)


class Concept(torch.nn.Module, ABC):
    """σ(w·x + b) of something measured; w and b start as learnt by `nsfrc train concept NAME`.

    One number x [B, N] has one w; k numbers x [B, N, k] have a w each, w [k].
    """

    name: ClassVar[str]  # as it is registered

    def __init__(self) -> None:
        super().__init__()
        learnt = shipped(self.name)
        self.w = torch.nn.Parameter(torch.tensor(learnt["w"], dtype=torch.float32))
        self.b = torch.nn.Parameter(torch.tensor(learnt["b"], dtype=torch.float32))

    @abstractmethod
    def measure(self, *objects: Objects) -> torch.Tensor:
        """What x is: one number an atom, [B, N], or k of them, [B, N, k]."""

    def forward(self, *objects: Objects) -> torch.Tensor:
        weighted = self.w * self.measure(*objects)
        return torch.sigmoid((weighted if self.w.ndim == 0 else weighted.sum(dim=-1)) + self.b)


@shipped_predicate("closeby")
class Closeby(Concept):
    """Two objects lie close to each other."""

    def measure(self, *objects: Objects) -> torch.Tensor:
        if len(objects) != 2:
            raise NsfrcError(f"closeby is a relation between two objects, not {len(objects)}")
        return distance(objects[0].centre, objects[1].centre)


@shipped_predicate("online")
class Online(Concept):
    """Three or more objects lie on one straight line."""

    def measure(self, *objects: Objects) -> torch.Tensor:
        if len(objects) < 3:
            raise NsfrcError(f"online is a relation between three or more objects, not {len(objects)}")
        return line_residual(torch.stack([obj.centre for obj in objects], dim=-2))


class Seen(Concept):
    """Where objects of a 3D scene are, as its camera sees them: σ(w·x + b) times the objectness of each of them.

    Of a vector's entries x goes from left to right in the image, y along the ground towards the camera, z upwards.
    """

    def forward(self, *objects: Objects) -> torch.Tensor:
        value = super().forward(*objects)
        for obj in objects:
            value = value * obj["objectness"]
        return value


class Side(Seen):
    """On which side of the image an object is. Its entry x says it alone, since the camera looks at x = 0.5."""

    def measure(self, *objects: Objects) -> torch.Tensor:
        if len(objects) != 1:
            raise NsfrcError(f"{self.name} is about one object, not {len(objects)}")
        return objects[0]["x"]


@shipped_predicate("leftside")
class Leftside(Side):
    """The object lies in the left half of the image."""


@shipped_predicate("rightside")
class Rightside(Side):
    """The object lies in the right half of the image."""


@shipped_predicate("front")
class Front(Seen):
    """The first object lies in front of the second: nearer to the camera, along the ground."""

    def measure(self, *objects: Objects) -> torch.Tensor:
        if len(objects) != 2:
            raise NsfrcError(f"front is a relation between two objects, not {len(objects)}")
        return torch.stack([obj[axis] for obj in objects for axis in ("x", "y", "z")], dim=-1)


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
