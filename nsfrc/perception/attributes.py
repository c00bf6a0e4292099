"""What a detector tells apart: a class is one value of every attribute, such as a colour and a shape."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from itertools import product

import torch


@dataclass(frozen=True)
class Attributes:
    """Groups of values; classes are their combinations, the last group changing fastest.

    Attributes((("red", "blue"), ("square", "circle"))).classes
        → ("red square", "red circle", "blue square", "blue circle")
    """

    groups: tuple[tuple[str, ...], ...]

    @cached_property
    def classes(self) -> tuple[str, ...]:
        return tuple(" ".join(values) for values in product(*self.groups))

    @cached_property
    def values(self) -> tuple[str, ...]:
        """Every value of every group: the names of what `marginals` gives."""
        return tuple(value for group in self.groups for value in group)

    def index(self, *values: str) -> int:
        """The class that has these values, one of each group."""
        number = 0
        for group, value in zip(self.groups, values, strict=True):
            number = number * len(group) + group.index(value)
        return number

    def members(self) -> torch.Tensor:
        """Which values each class has: [classes, values] of 0 and 1."""
        rows = [[float(value in combined) for value in self.values] for combined in product(*self.groups)]
        return torch.tensor(rows)

    def marginals(self, probabilities: torch.Tensor) -> torch.Tensor:
        """Probabilities of the classes [..., classes] → of the values [..., values], group after group."""
        sizes = [len(group) for group in self.groups]
        assert probabilities.shape[-1] == math.prod(sizes)
        first = probabilities.ndim - 1
        grid = probabilities.unflatten(-1, sizes)
        axes = range(first, first + len(sizes))
        return torch.cat([grid.sum([a for a in axes if a != axis]) if len(sizes) > 1 else grid for axis in axes], -1)


KANDINSKY = Attributes((("red", "yellow", "blue"), ("square", "circle", "triangle")))
CLEVR = Attributes((
    ("sphere", "cube", "cylinder"), ("large", "small"), ("rubber", "metal"),
    ("cyan", "blue", "yellow", "purple", "red", "green", "gray", "brown"),
))
